"""A copy of the bundled example that can be broken: its drafter, target, rows and some rows it never saw."""

import gzip
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

PROJECT = Path(__file__).parents[2]
DATA = PROJECT / "orchestrator" / "demo" / "data"
GOLDEN = PROJECT / "tests" / "golden" / "standalone"

Tensors = dict[str, torch.Tensor]


@dataclass
class Scene:
    """One copy; `settings` are the job's."""

    root: Path
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def draft(self) -> Path:
        return self.root / "draft"

    @property
    def target(self) -> Path:
        return self.root / "target"

    def tensors(self) -> Tensors:
        return load_file(self.draft / "model.safetensors")

    def edit_tensors(self, change: Callable[[Tensors], None]) -> None:
        tensors = self.tensors()
        change(tensors)
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, self.draft / "model.safetensors")

    def edit_target(self, change: Callable[[Tensors], None]) -> None:
        (path,) = self.target.glob("*.safetensors")
        tensors = load_file(path)
        change(tensors)
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)

    def target_tensor(self, name: str) -> torch.Tensor:
        (path,) = self.target.glob("*.safetensors")
        return load_file(path)[name]

    def edit_config(self, change: Callable[[dict[str, Any]], None]) -> None:
        path = self.draft / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        change(config)
        path.write_text(json.dumps(config), encoding="utf-8")

    def rows(self, split: str = "rows") -> list[Path]:
        return sorted(self.root.joinpath(split).rglob("*.ckpt"), key=lambda path: int(path.stem.split("_")[1]))

    def merge(self) -> Path:
        """Let the job read the rows' merged JSONL as well."""
        path = self.root / "merged.jsonl"
        shutil.copyfile(DATA / "merged.jsonl", path)
        self.settings["merged"] = path
        return path

    def edit_rows(self, change: Callable[[int, Tensors], None], split: str = "rows") -> None:
        """Change every row's dict in place; the states are [1, T, n * Ht]."""
        for number, path in enumerate(self.rows(split)):
            row = torch.load(path, weights_only=True)
            change(number, row)
            torch.save(row, path)


def make_scene(root: Path, drafter: str = "drafter_std", *, heldout: bool = False) -> Scene:
    """Copy the example: as it is, it is sound."""
    root.mkdir(parents=True, exist_ok=True)
    shutil.copytree(DATA / drafter, root / "draft")
    shutil.copytree(DATA / "target", root / "target")
    _copy_rows(DATA / "rows", root / "rows")
    scene = Scene(root, {"states": (0, 2, 4, 5), "draft": root / "draft", "target": root / "target"})
    scene.settings |= {"rows": root / "rows", "capture_rows": 0}
    if heldout:
        _copy_rows(GOLDEN / "unseen", root / "heldout")
        scene.settings["heldout"] = root / "heldout"
    return scene


def _copy_rows(source: Path, folder: Path) -> None:
    """Unpacked: what is changed is written again, and packing takes longer than a test should."""
    to = folder / "rows_0-2000"
    to.mkdir(parents=True)
    for path in (source / "rows_0-2000").glob("*.ckpt.gz"):
        row = torch.load(io.BytesIO(gzip.decompress(path.read_bytes())), weights_only=True)
        torch.save(row, to / path.name.removesuffix(".gz"))
