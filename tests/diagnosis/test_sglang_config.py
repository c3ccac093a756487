"""The config.json that is offered for SGLang means the same drafter as speculators' nested one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.diagnosis.sglang_config import whole_config
from remote_payload.standalone.checkpoint.config import read_drafter_config
from tests.support.made_results import made_checkpoint
from tests.support.tiny import write_model

GOLDEN = Path(__file__).parents[1] / "golden" / "standalone" / "dialects"
START = "for SGLang, write as the drafter's config.json: "
SAME = ("hidden_size", "target_hidden_size", "intermediate_size", "attention", "layers", "vocab_size",
        "draft_vocab_size", "rms_norm_eps", "max_positions", "rope", "fc_bias", "norm_output")  # fmt: skip


@pytest.mark.parametrize("name", [path.stem for path in sorted(GOLDEN.glob("*speculators*.json"))])
def test_it_means_the_same_drafter(tmp_path, name):
    text = (GOLDEN / f"{name}.json").read_text(encoding="utf-8")
    nested = read_drafter_config(write_model(tmp_path / "nested", json.loads(text), {}))
    facts = replace(
        made_checkpoint(),
        config_json=text,
        draft_vocab_size=nested.draft_vocab_size,
        target_hidden_size=nested.target_hidden_size,
    )
    line = whole_config(facts, (1, 3, 4))
    assert line.startswith(START)
    flat = read_drafter_config(write_model(tmp_path / "flat", json.loads(line.removeprefix(START)), {}))
    assert (flat.nested, flat.architecture) == (False, "LlamaForCausalLMEagle3")
    assert (flat.config_ids, flat.top_level_ids) == ((1, 3, 4), None)
    assert [getattr(flat, key) for key in SAME] == [getattr(nested, key) for key in SAME]


def test_a_flat_config_and_another_layer_have_none():
    assert whole_config(made_checkpoint(), (1, 3, 4)) is None
    latent = replace(made_checkpoint(), attention="latent", config_json='{"transformer_layer_config": {}}')
    assert whole_config(latent, None) is None
