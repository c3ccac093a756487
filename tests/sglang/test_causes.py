"""Pairs, sound and broken, diagnosed anew on a real SGLang that is up: the same causes as when they were kept."""

from pathlib import Path

import pytest

from orchestrator.diagnosis.decision.decide import decide
from tests.support import diagnosed_runs
from tests.support.make_diagnosed_golden import make
from tests.support.served_cases import CASES

AGAIN = ("sound-default_ids_meant", "N-norm_output", "LP-story-default_ids-too_many_drafts")


@pytest.mark.slow
@pytest.mark.parametrize("name", AGAIN)
def test_a_pair_is_judged_as_it_was(name: str, tmp_path: Path, sglang_python: str) -> None:
    case = CASES[name]
    told = decide(diagnosed_runs.known_at(make(case, tmp_path, sglang_python)))
    assert set(told.causes) == set(case.expected), told.headline
    # In float32 what a sound computation foretells is what is served, request by request.
    assert told.place["served_train"] == "as_predicted", told.also
