"""One drafter in every dialect its peers write it in gives the same hits, and its peers' own figures.

The config files under `tests/golden/standalone/dialects/` are the peers' own (`speculators convert`, SafeAILab's, and
one with the ids in vLLM's numbering, which nothing else tells apart from SpecForge's); the weights are the bundled
drafters' under each peer's names.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from orchestrator.compare.rules import logged
from orchestrator.store.results import read_hits
from remote_payload.rundir import RunDir
from tests.standalone.running import DATA, GOLDEN, run_job

Tensors = dict[str, torch.Tensor]
IDS = {"std": [1, 3, 4], "embed": [-1, 1, 3]}
SLOTS = {"std": (1, 2, 3), "embed": (0, 1, 2)}


def weights(drafter: str) -> Tensors:
    return load_file(DATA / f"drafter_{drafter}" / "model.safetensors")


def embedding() -> torch.Tensor:
    return load_file(next((DATA / "target").glob("*.safetensors")))["model.embed_tokens.weight"]


def write_speculators(folder: Path, drafter: str) -> None:
    """Nested config, `layers.0.`, float32, an embedding of its own."""
    tensors = {
        name.replace("midlayer.", "layers.0."): tensor.float() if tensor.is_floating_point() else tensor
        for name, tensor in weights(drafter).items()
    }
    save_file(tensors | {"embed_tokens.weight": embedding().float()}, folder / "model.safetensors")


def write_safeailab(folder: Path, drafter: str) -> None:
    torch.save(weights(drafter), folder / "pytorch_model.bin")


def write_with_embedding(folder: Path, drafter: str) -> None:
    save_file(weights(drafter) | {"embed_tokens.weight": embedding()}, folder / "model.safetensors")


def write_plain(folder: Path, drafter: str) -> None:
    save_file(weights(drafter), folder / "model.safetensors")


DIALECTS: list[tuple[str, str, str, Callable[[Path, str], None]]] = [
    ("std", "speculators_0.9.0", "speculators", write_speculators),
    ("embed", "speculators_0.9.0", "speculators", write_speculators),
    ("std", "safeailab", "safeailab", write_safeailab),
    ("std", "vllm_config", "specforge", write_with_embedding),
    ("embed", "vllm_config", "specforge", write_plain),
    ("std", "specforge_hf", "specforge", write_with_embedding),
]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Each bundled drafter as SpecForge exported it for SGLang."""
    folder = tmp_path_factory.mktemp("own")
    return {drafter: measured(folder / drafter, DATA / f"drafter_{drafter}") for drafter in SLOTS}


def measured(folder: Path, draft: Path):
    settings = {"target": DATA / "target", "rows": DATA / "rows", "states": (0, 2, 4, 5)}
    return run_job(folder, draft=draft, sweep="wiring", capture_rows=0, **settings)


@pytest.mark.parametrize(("drafter", "config", "dialect", "write"), DIALECTS)
def test_every_dialect_gives_the_same_hits(tmp_path, own, drafter, config, dialect, write):
    draft = tmp_path / "draft"
    draft.mkdir()
    if config == "specforge_hf":  # SpecForge writes the same config.json for both of its exports
        text = (DATA / f"drafter_{drafter}" / "config.json").read_text(encoding="utf-8")
    else:
        text = (GOLDEN / "dialects" / f"{drafter}_{config}.json").read_text(encoding="utf-8")
    (draft / "config.json").write_text(text, encoding="utf-8")
    write(draft, drafter)
    out, expected = measured(tmp_path / "out", draft), own[drafter]
    best = max((facts for facts in out.result.readings if facts.stage == "full"), key=lambda facts: facts.leading_hits)
    assert best.slots == SLOTS[drafter]
    assert best.changes == ()
    for row in range(len(expected.rows)):
        assert out.hits[best.name, row] == expected.hits[best.name, row]
    found = out.result.checkpoint.dialect
    assert dialect in (found.name, *found.also_possible)
    assert found.evidence
    ids = json.loads(text).get("eagle_aux_hidden_state_layer_ids")
    assert out.result.declared.ignored_top_level_ids == (None if ids is None else tuple(ids))


@pytest.mark.parametrize("wiring", list(SLOTS))
@pytest.mark.parametrize("drafter", list(SLOTS))
def test_speculators_own_figures(tmp_path, drafter, wiring):
    """Its model and its metrics, run on these rows in float32 (tests/support/make_speculators_golden.py)."""
    config = json.loads((DATA / f"drafter_{drafter}" / "config.json").read_text(encoding="utf-8"))
    config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = IDS[wiring]  # what is declared is measured in full
    draft = tmp_path / "draft"
    draft.mkdir()
    (draft / "config.json").write_text(json.dumps(config), encoding="utf-8")
    write_plain(draft, drafter)
    out = measured(RunDir(tmp_path).result, draft)
    rows, hits = read_hits(RunDir(tmp_path))
    name = f"slots {','.join(map(str, SLOTS[wiring]))} offset +1"
    assert name in out.full()
    theirs = json.loads((GOLDEN / "speculators.json").read_text(encoding="utf-8"))
    figures = {item.figure: item.steps for item in logged(name, rows, hits) if item.rule == "speculators"}
    for figure, expected in theirs[f"drafter_{drafter} wiring_{wiring}"].items():
        ours = [step.value for step in figures[f"{figure}_s"]]
        assert ours == pytest.approx(expected, abs=0.01), figure
