from collections.abc import Callable

import pytest

from orchestrator.compare.acceptance import (
    MaskRule,
    RowCounts,
    conditional_acceptance,
    count_row,
    step_accuracy,
)
from orchestrator.compare.chains import unpack_hits, unpack_row
from tests.support.made_results import judged_positions, leading, made_hits, made_row

ONE_TURN = [0] * 4 + [1] * 8
TWO_TURNS = [0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0]


def count(mask: list[int], steps: int, hit: Callable[[int, int], bool], rule: MaskRule = "serving") -> RowCounts:
    return count_row(unpack_hits(made_hits("r", 0, mask, steps, hit), unpack_row(made_row(0, mask))), rule)


def counts_slowly(rule: MaskRule, mask: list[int], j: int, s: int) -> bool:
    """The rules as their docstring words them, an index at a time."""
    tokens = len(mask)
    at = dict(enumerate(mask))
    if j + 1 + s > tokens - 1:
        return False
    if rule == "serving":
        return all(at.get(j + 1 + i, 0) for i in range(s + 1))
    if rule == "specforge":
        return j + s != tokens - 1 and bool(at.get(j + s, 0))
    return bool(at.get(j + 1 + s, 0))


@pytest.mark.parametrize("rule", ["serving", "specforge", "speculators"])
@pytest.mark.parametrize("mask", [ONE_TURN, TWO_TURNS, [1] * 5, [0, 0, 0, 1]])
@pytest.mark.parametrize("steps", [1, 3])
def test_every_rule_equals_its_slow_wording(rule: MaskRule, mask: list[int], steps: int) -> None:
    def hit(j: int, s: int) -> bool:
        return (j * 5 + s * 3) % 4 != 0

    found = count(mask, steps, hit, rule)
    judged = judged_positions(mask, steps)
    for s in range(steps):
        counted = [j for j in judged if counts_slowly(rule, mask, j, s)]
        reached = [j for j in counted if all(hit(j, i) for i in range(s))]
        assert found.n[s] == len(counted)
        assert found.hits[s] == sum(hit(j, s) for j in counted)
        assert found.conditional_n[s] == len(reached)
        assert found.conditional_hits[s] == sum(hit(j, s) for j in reached)


def test_serving_counts_from_the_last_prompt_token_to_the_end() -> None:
    found = count(ONE_TURN, 3, leading({}))
    assert found.n == (8, 7, 6)  # j = 3..10, 3..9, 3..8 of 12 tokens
    assert found.whole == 6


def test_whole_chains_give_the_mean_accept_length() -> None:
    found = count(ONE_TURN, 3, leading({3: 3, 4: 1, 5: 0, 6: 2, 7: 0, 8: 3, 9: 2, 10: 1}))
    assert (found.whole, found.whole_leading) == (6, 9)  # the chains of 9 and 10 run out of the row


def test_pooled_figures_carry_n_and_the_wilson_interval() -> None:
    rows = [count(ONE_TURN, 2, leading({3: 2, 4: 1})), count(TWO_TURNS, 2, leading({1: 1, 9: 2}))]
    first, second = step_accuracy(rows)
    assert (first.hits, first.n) == (4, 8 + 9)
    assert first.low is not None
    assert second.n == 7 + 7
    reached = conditional_acceptance(rows)[1]
    assert (reached.hits, reached.n) == (2, 4)


def test_nothing_reached_is_unknown_not_zero() -> None:
    assert conditional_acceptance([count(ONE_TURN, 2, leading({}))])[1].value is None
