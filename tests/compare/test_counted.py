import pytest

from orchestrator.compare.counted import counted
from orchestrator.compare.definitions import CHAIN_ACCEPTANCE, STEP_ACCEPTANCE, read_out
from orchestrator.compare.statistics import compare_series
from orchestrator.report.diff_words import samples
from tests.support.made_series import LENGTH, prompts


@pytest.mark.parametrize(("number", "words"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs")])
def test_one_is_one(number: int, words: str) -> None:
    assert counted(number, "run") == words


def test_another_plural_is_given() -> None:
    assert [counted(n, "row was", "rows were") for n in (1, 2)] == ["1 row was", "2 rows were"]


def test_one_pair_is_no_pairs() -> None:
    one = compare_series(LENGTH, prompts([10.0], [5.0]), prompts([10.0, 11.0], [5.0, 5.0]))
    assert samples(one) == "1 pair"
    assert "1 prompt that only one side answered is left out" in one.note


def test_definitions_of_one_draft_are_read_out_as_such() -> None:
    assert read_out(CHAIN_ACCEPTANCE.format(before=1)).startswith("of the chains whose first draft hit,")
    assert read_out(STEP_ACCEPTANCE.format(before=1)).startswith("of the verify steps that accepted 1 draft,")
    assert read_out(STEP_ACCEPTANCE.format(before=2)) == STEP_ACCEPTANCE.format(before=2)
