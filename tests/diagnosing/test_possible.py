"""States that a pair cannot have, as they are named by hand."""

import dataclasses
import json

import pytest

from orchestrator.diagnosing.possible import require_models, require_possible
from orchestrator.errors import CheckpointError, UsageError
from remote_payload.schema.capture_rule import CaptureRule, WiringFacts
from tests.diagnosing.test_stages import asked

FACTS = WiringFacts(
    rule=CaptureRule(version="0.5.23", target_class="LlamaForCausalLM"),
    target_config=json.dumps({"text_config": {"num_hidden_layers": 8, "hidden_size": 64}}),
    draft_config="{}",
    fc_shape=(64, 192),
)


@pytest.mark.parametrize(
    ("trained", "labels", "facts", "told"),
    [
        ("embed,2,8", "embed,2,4,8", FACTS, None),  # 8 is the last layer's output
        (None, None, FACTS, None),
        ("embed,2,9", "embed,2,4,5", FACTS, "--trained: expected states of a target of 8 layers, 0 (embed) to 8"),
        ("embed,2", "embed,2,4,5", FACTS, "fc.weight takes, 3, one a block of its columns, found 2: embed,2"),
        ("embed,2,4", "embed,2,61", FACTS, "--states: expected states of a target of 8 layers"),
        ("2,2,4", "embed,2,4,5", None, "--trained: expected different states, found: 2,2,4"),
        ("embed,2,99", "embed,2,4,5", None, None),  # nothing was read on the host
        ("embed,2", "embed,2,4,5", dataclasses.replace(FACTS, fc_shape=None), None),
        ("embed,2", "embed,2,4,5", dataclasses.replace(FACTS, fc_shape=(64, 200)), None),  # told by K2 and K1
        ("embed,2,99", "embed,2,4,5", dataclasses.replace(FACTS, target_config="[]"), None),
    ],
)
def test_what_is_named_beside_what_lies_on_the_host(
    trained: str | None, labels: str | None, facts: WiringFacts | None, told: str | None
) -> None:
    about = dataclasses.replace(asked(), trained=trained, samples={} if labels is None else {"states": labels})
    if told is None:
        require_possible(about, facts)
        return
    with pytest.raises(UsageError) as refused:
        require_possible(about, facts)
    assert told in refused.value.message
    assert "embed" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("changes", "draft", "told"),
    [
        ({}, "/srv/d", None),
        ({"draft_config": None}, "/srv/d/", "the drafter's config.json could not be read on host `g1`: /srv/d/config"),
        ({"draft_config": "[]"}, "~/d", "the drafter's config.json is no JSON object on host `g1`: ~/d/config.json"),
        ({"target_config": None}, "/srv/d", "the target's config.json could not be read on host `g1`: /srv/t/config"),
        ({"draft_config": None}, "lab/draft", None),  # a name on a hub
    ],
)
def test_a_folder_that_is_not_there_starts_no_stage(changes: dict[str, None], draft: str, told: str | None) -> None:
    facts = dataclasses.replace(FACTS, **changes)
    if told is None:
        require_models(facts, "g1", "/srv/t", draft)
        return
    with pytest.raises(CheckpointError) as refused:
        require_models(facts, "g1", "/srv/t", draft)
    assert told in refused.value.message
