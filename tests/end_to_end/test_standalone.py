"""The drafter test through a real sshd: the story's verdicts, and files that cannot be used, each named."""

import gzip
import io
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from orchestrator.demo.stage import DATA
from tests.support.laptop import Done, Laptop
from tests.support.sshd import SshServer

STATES = "embed,2,4,5"


@pytest.fixture
def story(server: SshServer) -> Path:
    """The bundled data, in the host's home."""
    folder = server.home / "story"
    shutil.copytree(DATA, folder)
    return folder


@pytest.fixture
def judge(laptop: Laptop, story: Path) -> Callable[..., Done]:
    """Run the drafter test on the host, by default on everything that is sound."""

    def run(**settings: str) -> Done:
        chosen = {
            "draft": str(story / "drafter_embed"),
            "target": str(story / "target"),
            "rows": str(story / "rows"),
            "states": STATES,
            "threads": "1",
            **settings,
        }
        flags = [f"--{key.replace('_', '-')}={value}" for key, value in chosen.items()]
        return laptop.run("run", "standalone", "--host", "gpu1", "--json", *flags)

    return run


def declare(draft: Path, ids: list[int]) -> None:
    path = draft / "config.json"
    config = json.loads(path.read_text())
    config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = ids
    path.write_text(json.dumps(config))


def wiring(done: Done) -> dict[str, Any]:
    assert done.code == 0, done.err
    found = done.objects[-1]["wiring"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("drafter", "ids", "verdict", "mended"),
    [
        ("drafter_embed", [1, 3, 4], "mis_wired", [-1, 1, 3]),
        pytest.param("drafter_embed", [-1, 1, 3], "sound", None, marks=pytest.mark.slow),
        pytest.param("drafter_std", [-1, 1, 3], "mis_wired", [1, 3, 4], marks=pytest.mark.slow),
        ("drafter_std", [1, 3, 4], "sound", None),
    ],
)
def test_the_storys_verdicts(
    judge: Callable[..., Done], story: Path, drafter: str, ids: list[int], verdict: str, mended: list[int] | None
) -> None:
    declare(story / drafter, ids)
    found = wiring(judge(draft=str(story / drafter)))
    assert found["verdict"] == verdict
    if mended is not None:
        assert any(str(mended) in line for line in found["fix"]), found["fix"]


@pytest.mark.slow
def test_unlabelled_rows_give_the_best_alone_and_say_so(laptop: Laptop, story: Path) -> None:
    folders = [f"--{name}={story / path}" for name, path in (("draft", "drafter_embed"), ("target", "target"))]
    done = laptop.run("run", "standalone", "--host", "gpu1", *folders, f"--rows={story / 'rows'}")
    assert done.code == 0, done.err
    assert "carry no labels" in done.out
    assert "slots 0,1,2 offset +1" in done.out


def change(path: Path, edit: Callable[[dict[str, torch.Tensor]], None]) -> None:
    """Edit a safetensors file."""
    tensors = load_file(path)
    edit(tensors)
    save_file(tensors, path)


def nan(tensors: dict[str, torch.Tensor]) -> None:
    tensors["fc.weight"][0, 0] = float("nan")


def narrow(tensors: dict[str, torch.Tensor]) -> None:
    tensors["fc.weight"] = tensors["fc.weight"][:, :-64].clone()


def renamed(tensors: dict[str, torch.Tensor]) -> None:
    tensors["extra.weight"] = tensors.pop("midlayer.hidden_norm.weight")
    tensors["lm_head.weight"] = tensors["lm_head.weight"][:-1].clone()


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (nan, ["fc.weight"]),
        (narrow, ["fc.weight"]),
        (renamed, ["hidden_norm.weight", "extra.weight", "lm_head.weight"]),
    ],
)
def test_tensors_that_do_not_fit_are_all_named(
    judge: Callable[..., Done], story: Path, edit: Callable[[dict[str, torch.Tensor]], None], words: list[str]
) -> None:
    change(story / "drafter_embed" / "model.safetensors", edit)
    done = judge()
    assert done.code in {30, 31}, done.err
    for word in words:
        assert word in done.err


def cut_short(draft: Path) -> None:
    weights = draft / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])


def no_safetensors(draft: Path) -> None:
    (draft / "model.safetensors").write_bytes(b"not safetensors at all" * 100)


def no_config(draft: Path) -> None:
    (draft / "config.json").unlink()


@pytest.mark.parametrize("damage", [shutil.rmtree, cut_short, no_safetensors, no_config])
def test_drafters_that_cannot_be_read(judge: Callable[..., Done], story: Path, damage: Callable[[Path], None]) -> None:
    damage(story / "drafter_embed")
    done = judge()
    assert done.code == 30, done.err
    assert "drafter_embed" in done.err
    assert "hint: " in done.err


def save_row(path: Path, row: object) -> None:
    buffer = io.BytesIO()
    torch.save(row, buffer)
    path.write_bytes(gzip.compress(buffer.getvalue()))


def test_one_bad_row_among_good_ones_is_named_skipped_and_counted(judge: Callable[..., Done], story: Path) -> None:
    rows = story / "rows" / "rows_0-2000"
    (rows / "data_90.ckpt.gz").write_bytes(b"\x1f\x8bgarbage")
    (rows / "data_91.ckpt").write_bytes(pickle.dumps({"input_ids": object}))
    good = torch.load(io.BytesIO(gzip.decompress((rows / "data_0.ckpt.gz").read_bytes())), weights_only=True)
    save_row(rows / "data_92.ckpt.gz", {**good, "input_ids": good["input_ids"][:-3]})
    save_row(rows / "data_93.ckpt.gz", {**good, "loss_mask": torch.zeros_like(good["loss_mask"])})
    done = judge()
    facts = done.objects[-1]["result"]["rows"]
    assert {item["name"] for item in facts["skipped"]} == {
        "rows_0-2000/data_90.ckpt.gz",
        "rows_0-2000/data_91.ckpt",
        "rows_0-2000/data_92.ckpt.gz",
        "rows_0-2000/data_93.ckpt.gz",
    }
    assert facts["used"] + 4 == facts["found"]


def empty(rows: Path) -> None:
    shutil.rmtree(rows)
    rows.mkdir()


def all_pickled(rows: Path) -> None:
    empty(rows)
    (rows / "data_0.ckpt").write_bytes(pickle.dumps({"input_ids": print}))


@pytest.mark.parametrize("damage", [shutil.rmtree, empty, all_pickled])
def test_rows_that_cannot_be_used(judge: Callable[..., Done], story: Path, damage: Callable[[Path], None]) -> None:
    damage(story / "rows" / "rows_0-2000")
    done = judge()
    assert done.code == 31, done.err
    assert "hint: " in done.err


def test_labels_that_do_not_fit_the_rows(judge: Callable[..., Done]) -> None:
    done = judge(states="0,2,4")
    assert done.code in {2, 31}, done.err
    assert "states" in done.err
