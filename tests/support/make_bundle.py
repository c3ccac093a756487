"""Make the bundled data from the full data set: `python -m tests.support.make_bundle FULL_DATA_SET [PROJECT]`.

Writes `orchestrator/demo/data/` (drafters, three tensors of the target, a few training rows) and the truth that belongs
to it under `tests/golden/standalone/`: rows the real SGLang served, its histograms, and SpecForge's predictions.
"""

import gzip
import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

TRAIN_ROWS = (1, 2, 5, 9, 10, 12, 15, 16, 18, 20)
"""The shortest of the captured training rows, greedy and sampled ones."""
SERVED_ROWS = {"train": (5,), "heldout": (8,)}
UNSEEN_ROWS = (6, 8, 10, 11, 15, 17, 22)
"""The shortest of the held-out rows, five greedy and two sampled ones: about as many as among the training rows."""
SERVED_RUNS = ("std_right", "embed_right", "embed_story_wrong", "embed_override_1_16")
TARGET_TENSORS = ("model.embed_tokens.weight", "model.norm.weight", "lm_head.weight")
STORY = "story_4state/rows_0-2000"


def main(full: Path, project: Path) -> None:
    """Write both folders anew."""
    data, golden = project / "orchestrator" / "demo" / "data", project / "tests" / "golden" / "standalone"
    for drafter in ("drafter_embed", "drafter_std"):
        _copy_model(full / drafter / "specforge_sglang", data / drafter)
    _write_target(full / "target", data / "target")
    _write_rows(full / "train", data)
    _write_served(full, golden)
    _write_predictions(full, golden)
    _write_unseen(full, golden)
    for path in [*data.rglob("*"), *golden.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)  # save_file writes 0600


def _copy_model(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(source / name, target / name)


def _write_target(source: Path, target: Path) -> None:
    """Only what the test reads; as a shard, so that the index is used, too."""
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / "config.json", target / "config.json")
    with safe_open(source / "model.safetensors", framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in TARGET_TENSORS}
    shard = "model-00001-of-00001.safetensors"
    save_file(tensors, target / shard, metadata={"format": "pt"})
    index = {"metadata": {}, "weight_map": dict.fromkeys(TARGET_TENSORS, shard)}
    (target / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")


def _write_rows(source: Path, data: Path) -> None:
    lines = (source / "merged.jsonl").read_text(encoding="utf-8").splitlines()
    folder = data / "rows" / "rows_0-2000"
    folder.mkdir(parents=True, exist_ok=True)
    for new, old in enumerate(TRAIN_ROWS):
        shutil.copyfile(source / STORY / f"data_{old}.ckpt.gz", folder / f"data_{new}.ckpt.gz")
    (data / "merged.jsonl").write_text("".join(lines[old] + "\n" for old in TRAIN_ROWS), encoding="utf-8")


def _write_served(full: Path, golden: Path) -> None:
    runs = json.loads((full / "served_sglang.json").read_text(encoding="utf-8"))["runs"]
    told: dict[str, dict[str, list[dict[str, object]]]] = {}
    for split, rows in SERVED_ROWS.items():
        folder = golden / "served" / split / "rows_0-2000"
        folder.mkdir(parents=True, exist_ok=True)
        for new, old in enumerate(rows):
            plain = (full / split / "served_4state_fp32" / "rows_0-2000" / f"data_{old}.ckpt").read_bytes()
            (folder / f"data_{new}.ckpt.gz").write_bytes(gzip.compress(plain, 9, mtime=0))
        for run in runs:
            if run["split"] == split and run["label"] in SERVED_RUNS:
                told.setdefault(split, {})[run["label"]] = [
                    {key: run["requests"][old][key] for key in ("n_prompt", "spec_correct_drafts_histogram")}
                    for old in rows
                ]
    (golden / "served.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _write_predictions(full: Path, golden: Path) -> None:
    predictions = load_file(full / "golden" / "specforge_preds.safetensors")
    kept: dict[str, torch.Tensor] = {}
    for new, old in enumerate(TRAIN_ROWS):
        kept[f"row_{new}.target_argmax"] = predictions[f"train.row_{old}.target_argmax"]
        for drafter in ("drafter_embed", "drafter_std"):
            for wiring in ("embed", "std"):
                name = f"train.{drafter}.wiring_{wiring}.row_{old}.pred_tokens"
                kept[f"{drafter}.wiring_{wiring}.row_{new}.pred_tokens"] = predictions[name]
    for drafter in ("embed", "std"):
        name = f"heldout.drafter_{drafter}.wiring_{drafter}.row_0.step0_draft_logits"
        kept[f"drafter_{drafter}.heldout_row_0.logits"] = predictions[name]
    save_file(kept, golden / "specforge.safetensors")
    heldout = golden / "heldout" / "rows_0-2000"
    heldout.mkdir(parents=True, exist_ok=True)
    plain = (full / "heldout" / STORY / "data_0.ckpt").read_bytes()
    (heldout / "data_0.ckpt.gz").write_bytes(gzip.compress(plain, 9, mtime=0))


def _write_unseen(full: Path, golden: Path) -> None:
    folder = golden / "unseen" / "rows_0-2000"
    folder.mkdir(parents=True, exist_ok=True)
    for new, old in enumerate(UNSEEN_ROWS):
        plain = (full / "heldout" / STORY / f"data_{old}.ckpt").read_bytes()
        (folder / f"data_{new}.ckpt.gz").write_bytes(gzip.compress(plain, 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else Path.cwd())
