"""A capture as an input of a decision: only what it surely says."""

import json
from dataclasses import replace

import pytest

from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.from_capture import fed_of, resolved_of
from orchestrator.diagnosis.decision.inputs import Known
from remote_payload.schema.capture import CaptureResult, ServedState, StateMatch
from remote_payload.schema.capture_rule import CaptureRule
from tests.diagnosis.decision.scenes import FED_WRONG, TRAINED, sound

TOKENS = 640


def match(slot, state, error=3e-8, *, exact=TOKENS, offset=0):
    return StateMatch(against="captured", slot=slot, state=state, token_offset=offset, tokens=TOKENS, exact=exact,
                      error=error, cosine=1.0, scale=1.0)  # fmt: skip


def captured(states, *, error=3e-8, exact=TOKENS, offset=0, tokens=TOKENS, **more):
    """What a server that feeds these captured states would have returned."""
    served = []
    for place, state in enumerate(states):
        near = match(place, state, error, exact=exact, offset=offset)
        served.append(ServedState(slot=place, tokens=tokens, rms=1.0, matches=(near, match(9, 7, 0.9, exact=0))))
    values = {
        "method": "speculating",
        "sglang_version": "0.5.23",
        "target_config": json.dumps({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 8}),
        "draft_config": "{}",
        "rule": CaptureRule(version="0.5.23", target_class="LlamaForCausalLM"),
        "served": tuple(served),
        "compared_rows": 8,
        "compared_tokens": tokens,
        "captured_states": 4,
        "seconds": 1.0,
    }
    return CaptureResult(**{**values, **more})


def test_a_capture_of_the_trained_states_leaves_a_sound_pair_healthy():
    fed = fed_of(captured(TRAINED), "capture-1", TRAINED)
    assert fed is not None
    assert (fed.states, fed.exact, fed.worst_error) == (TRAINED, True, 3e-8)
    assert (fed.target_class, fed.target_layers, fed.tokens) == ("LlamaForCausalLM", 8, TOKENS)
    assert decide(sound(fed=fed)).verdict == "healthy"


def test_a_capture_of_other_states_is_wiring_without_anything_else():
    fed = fed_of(captured(FED_WRONG), "capture-1", TRAINED)
    found = decide(Known(fed=fed))
    assert found.causes == ("wiring",)
    assert found.fix is not None
    assert found.fix.config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [-1, 1, 3]


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        (captured(TRAINED, error=0.04, exact=3), "as_trained"),
        (captured(TRAINED, error=0.4, exact=0), "unlike"),
        (captured(TRAINED, offset=1), "shifted"),
    ],
)
def test_near_is_not_the_same(found, answer):
    fed = fed_of(found, "capture-1", TRAINED)
    assert fed is not None
    assert decide(Known(fed=fed)).place["fed"] == answer


@pytest.mark.parametrize(
    "found",
    [
        captured((), why_not="this SGLang has no such flag", method="none"),
        captured(()),
        captured(TRAINED, tokens=8),
        captured(TRAINED, method="aux_flag"),
    ],
)
def test_what_says_nothing_of_the_drafter_is_no_input(found):
    assert fed_of(found, "capture-1", TRAINED) is None


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        ('{"text_config": {"num_hidden_layers": 61}}', 61),
        ("[]", None),
        ("{", None),
        ('{"num_hidden_layers": true}', None),
    ],
)
def test_layers_are_those_of_the_text_model(text, layers):
    fed = fed_of(replace(captured(TRAINED), target_config=text), "capture-1")
    assert fed is not None
    assert fed.target_layers == layers


def test_a_source_that_was_not_read_tells_nothing():
    resolved = resolved_of(captured(TRAINED, rule=None))
    assert resolved.states is None
    assert resolved.reasoning


def test_states_a_token_off_are_no_other_states_and_no_fault_of_the_engine():
    for offset, way in ((1, "next"), (-1, "previous")):
        fed = fed_of(captured(TRAINED, offset=offset), "capture-1", TRAINED)
        assert fed is not None
        assert (set(fed.states), fed.token_offset) == ({None}, offset)
        found = decide(sound(fed=fed, served=None))
        assert (found.causes, found.certain, found.fix) == ((), False, None)
        (told,) = [item for signal in found.signals if signal.axis == "fed" for item in signal.results]
        assert f"that of the {way} token in the rows: rows or server are off by one token" in told.summary
