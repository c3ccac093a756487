"""How many states a drafter's fc takes, and what SGLang does where that is another number than it captures."""

import json
from typing import Any

import pytest

from orchestrator.diagnosis.fc_width import fc_width
from remote_payload.schema.capture_rule import CaptureRule, WiringFacts

DRAFT = {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 48, "target_hidden_size": 64}
IDS = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3]}}


def facts(columns: int | None, draft: dict[str, Any], *, counts: bool | None = True) -> WiringFacts:
    return WiringFacts(
        rule=CaptureRule(version="0.5.23", target_class="LlamaForCausalLM", counts_states=counts),
        target_config=json.dumps({"text_config": {"hidden_size": 64}}),
        draft_config=json.dumps({**DRAFT, **draft}),
        fc_shape=None if columns is None else (48, columns),
    )


@pytest.mark.parametrize(
    ("told", "captured", "fits", "takes", "words"),
    [
        (facts(192, {}), (2, 4, 5), True, 3, "fc.weight takes 192 numbers, 3 states of 64: as many as are captured"),
        (facts(128, IDS), (2, 4), True, 2, "as many as are captured"),
        (facts(192, {}), None, None, 3, "how many are captured is not known"),
        (facts(None, {}), (2, 4, 5), None, None, "fc.weight was not found in its safetensors files"),
        (facts(200, {}), (2, 4, 5), False, None, "no multiple of the 64 of this target's states"),
        # The ids name two, the weights take three: SGLang sizes fc by the ids and cannot load it.
        (facts(192, IDS), (2, 4), False, 3, "SGLang makes its fc for 128, 2 states of 64 by the ids of `eagle_config`"),
        (facts(128, {}), (2, 4, 5), False, 2, "for 192, 3 states of 64, as the config names none: the server ends as"),
        (facts(256, {"num_aux_hidden_states": 4}), (2, 4, 5), False, 4, "but 3 would be captured: the server ends at"),
        (facts(256, {"num_aux_hidden_states": 4}, counts=False), (1, 2, 4, 5), False, 4, "as this version always does"),
        (facts(192, {"architectures": ["Other"], **IDS}), (2, 4, 5), True, 3, "as many as are captured"),
        (facts(128, {}, counts=None), (2, 4, 5), False, 2, "but 3 would be captured"),
        (facts(64, {"hidden_size": 64, "num_aux_hidden_states": 1}), (5,), False, 1, "skips fc"),
    ],
)
def test_fc_beside_what_is_captured(
    told: WiringFacts, captured: tuple[int, ...] | None, fits: bool | None, takes: int | None, words: str
) -> None:
    found = fc_width(told, captured)
    assert (found.fits, found.takes) == (fits, takes)
    assert words in found.summary
