"""What a real SGLang did with sound and broken pairs, judged again: the causes that are named, and the rule it kept."""

from pathlib import Path

import pytest

from orchestrator.diagnosis.decision.decide import decide
from tests.support import diagnosed_runs
from tests.support.served_cases import CASES, SOUND

QUICK = ("sound-numbered_layer", "LP-story-default_ids-too_many_drafts")
"""One of each kind: reading a pair's runs takes half a second."""


def test_the_kept_pairs_are_those_that_can_be_made() -> None:
    assert set(diagnosed_runs.names()) <= set(CASES)
    assert set(QUICK) <= set(diagnosed_runs.names())


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in diagnosed_runs.names()],
)
def test_the_causes_that_are_named(name: str, tmp_path: Path) -> None:
    case, known = CASES[name], diagnosed_runs.known(name, tmp_path)
    told = decide(known)
    assert set(told.causes) == set(case.expected), told.headline
    if case in SOUND:
        assert told.place["fed"] == "as_trained"
        assert {told.place["served_train"], told.place["served_heldout"]} == {"as_predicted"}
    if known.resolved is not None and known.resolved.states is not None:
        assert known.fed is not None
        assert known.resolved.states == known.fed.states
