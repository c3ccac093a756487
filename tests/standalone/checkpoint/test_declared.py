"""What SGLang captures, by target class; the Kimi rows were seen on running servers."""

from dataclasses import replace

import pytest

from remote_payload.standalone.checkpoint.config import read_drafter_config
from remote_payload.standalone.checkpoint.declared import declare
from tests.support.tiny import Tiny, drafter_config, write_model


@pytest.fixture
def config_with(tmp_path):
    def make(ids, **more):
        value = drafter_config(Tiny()) | more
        value["eagle_config"] = {} if ids is None else {"eagle_aux_hidden_state_layer_ids": ids}
        return read_drafter_config(write_model(tmp_path / "draft", value, {}))

    return make


@pytest.mark.parametrize(
    ("target", "layers", "ids", "captured"),
    [
        ("LlamaForCausalLM", 8, None, (2, 4, 5)),
        ("LlamaForCausalLM", 8, [1, 3, 4], (2, 4, 5)),
        ("LlamaForCausalLM", 8, [-1, 1, 3], (0, 2, 4)),
        ("LlamaForCausalLM", 8, [4, 1, 3], (2, 4, 5)),
        ("Qwen3ForCausalLM", 28, None, (2, 14, 25)),
        ("DeepseekV3ForCausalLM", 61, None, (2, 30, 58)),
        ("DeepseekV3ForCausalLM", 61, [2, 30, 58], (2, 30, 58)),
        ("DeepseekV3ForCausalLM", 61, [1, 29, 57], (2, 30, 58)),
        ("DeepseekV3ForCausalLM", 61, [0, 3, 31], (0, 3, 31)),
        ("DeepseekV3ForCausalLM", 61, [30, 1, 57], (1, 30, 57)),
        ("DeepseekV3ForCausalLM", 61, [2, 30, 60], (2, 30, 60)),
        ("KimiK25ForConditionalGeneration", 61, [2, 30, 58], (2, 30, 58)),
        ("GptOssForCausalLM", 24, [1, 11, 21], (2, 12, 22)),
        ("GptOssForCausalLM", 24, [2, 12, 24], (2, 12, 24)),
    ],
)
def test_captured_states(config_with, target, layers, ids, captured):
    declared = declare(config_with(ids), 3, target, layers, None)
    assert (declared.captured, declared.problem, declared.slots) == (captured, None, None)
    assert declared.config_ids == (None if ids is None else tuple(ids))


def test_a_flag_that_denies_the_states_an_fc_joins_is_a_problem(config_with):
    value = {"eagle_aux_hidden_state_layer_ids": [1, 3, 4], "use_aux_hidden_state": False}
    config = replace(config_with(None), flat={"eagle_config": value})
    declared = declare(config, 3, "LlamaForCausalLM", 8, (2, 4, 5))
    assert (declared.captured, declared.slots) == ((), None)
    assert "final state alone" in declared.problem
    at_the_top = replace(config, flat={"use_aux_hidden_state": False, "eagle_config": {}})  # SGLang never looks there
    assert declare(at_the_top, 3, "LlamaForCausalLM", 8, (2, 4, 5)).captured == (2, 4, 5)
    without_fc = replace(config, reads_final_state=True)
    declared = declare(without_fc, 1, "LlamaForCausalLM", 8, (2, 4, 5))
    assert (declared.problem, declared.slots) == (None, (0,))


@pytest.mark.parametrize(
    ("target", "layers", "ids", "captured"),
    [
        ("KimiK25ForConditionalGeneration", 61, [-1, 2, 30], (2, 30)),
        ("LlamaForCausalLM", 8, [1, 3, 7], (2, 4)),
        ("LlamaForCausalLM", 8, [1, 3, 9], (2, 4)),
        ("LlamaForCausalLM", 8, [1, 3, 3], (2, 4)),
        ("LlamaForCausalLM", 8, [1, 3, 4, 5], (2, 4, 5, 6)),
    ],
)
def test_wrong_number_of_states_is_told(config_with, target, layers, ids, captured):
    declared = declare(config_with(ids), 3, target, layers, tuple(range(61)))
    assert declared.captured == captured
    assert "fc joins 3 states" in declared.problem
    assert f"capture {len(captured)}" in declared.problem
    assert declared.slots is None


@pytest.mark.parametrize(
    ("target", "layers", "says"),
    [("NewForCausalLM", 8, "NewForCausalLM"), ("LlamaForCausalLM", None, "num_hidden_layers")],
)
def test_what_cannot_be_told_is_not_guessed(config_with, target, layers, says):
    declared = declare(config_with(None), 3, target, layers, (0, 2, 4, 5))
    assert declared.captured is None
    assert declared.slots is None
    assert says in declared.problem


def test_slots_are_places_among_the_labels(config_with):
    config = config_with([-1, 1, 3])
    assert declare(config, 3, "LlamaForCausalLM", 8, (5, 0, 2, 4)).slots == (1, 2, 3)
    assert declare(config, 3, "LlamaForCausalLM", 8, (2, 4, 5)).slots is None
    assert declare(config, 3, "LlamaForCausalLM", 8, None).slots is None


def test_ids_at_the_top_level_are_ignored_and_told(config_with):
    declared = declare(config_with(None, eagle_aux_hidden_state_layer_ids=[0, 2, 4]), 3, "LlamaForCausalLM", 8, None)
    assert declared.ignored_top_level_ids == (0, 2, 4)
    assert declared.captured == (2, 4, 5)


def test_the_rule_names_its_versions(config_with):
    assert "0.5.22" in declare(config_with([-1, 1, 3]), 3, "LlamaForCausalLM", 8, None).valid_for
    assert "0.5.12 added 1" in declare(config_with([2, 30, 58]), 3, "DeepseekV3ForCausalLM", 61, None).valid_for
