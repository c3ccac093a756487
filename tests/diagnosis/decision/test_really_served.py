"""What a real SGLang did with sound and broken pairs, judged again: the causes named, and its rule of the states."""

from pathlib import Path

import pytest

from orchestrator.diagnosis.decision.decide import ACCEPTANCE, decide
from orchestrator.diagnosis.decision.from_capture import fed_of
from orchestrator.diagnosis.effective_capture import resolve
from tests.diagnosis.test_effective_capture import LLAMA, rule
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
    if set(case.expected) & set(ACCEPTANCE) and "economics" not in case.expected:  # which waits for every answer
        assert told.certain, told.rows
    if case in SOUND:
        assert told.place["fed"] == "as_trained"
        assert {told.place["served_train"], told.place["served_heldout"]} == {"as_predicted"}


def test_a_wrong_map_hides_no_wrong_states_where_the_head_tells_the_right_one(tmp_path: Path) -> None:
    name = "LV-story-default_ids-shifted_map"
    told = decide(diagnosed_runs.known(name, tmp_path / "unsaid"))
    assert set(told.causes) == {"loading", "wiring"}, told.headline
    assert "the map that lm_head's own rows tell" in told.headline
    word = decide(diagnosed_runs.known(name, tmp_path / "said", "embed,2,4"))
    assert set(word.causes) == {"loading", "wiring"}, word.headline
    assert "[layer 2, layer 4, layer 5]" in word.headline


def test_the_rule_says_what_the_server_returned() -> None:
    """Of SGLang 0.5.23's own source, for every way in which the kept pairs' configs name their ids."""
    said = set()
    for name in diagnosed_runs.names():
        captured = diagnosed_runs.captured(name)
        fed = fed_of(captured, "capture")
        assert fed is not None
        assert fed.sglang_version == "0.5.23"
        for source in (rule("0.5.23", LLAMA), *([] if captured.rule is None else [captured.rule])):
            effective = resolve(source, captured.draft_config, captured.target_config)
            assert effective.states == fed.states, name
        said.add(fed.states)
    assert said == {(2, 4, 5), (0, 2, 4)}
