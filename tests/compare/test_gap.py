"""Train against held-out: the three ways to compare, each where the data allow it."""

import random
from collections.abc import Sequence

import pytest

from orchestrator.compare.acceptance import RowCounts
from orchestrator.compare.figures import ReadingFigures, reading_figures
from orchestrator.compare.gap import gap, row_kind
from orchestrator.compare.walk import Walk
from remote_payload.schema import RowFacts
from tests.support.made_results import made_hits, made_row

MASK = [0] * 8 + [1] * 56
STEPS = 3


def split(
    shares: Sequence[float], *, sampled: Sequence[bool] | None = None, texts: Sequence[str] | None = None, seed: int = 0
) -> tuple[ReadingFigures, tuple[RowFacts, ...]]:
    """Rows that hit with these shares; a sampled row's tokens are the teacher's in three of four places."""
    rows, hits = [], []
    for number, share in enumerate(shares):
        draws = random.Random(f"{seed} {number}")
        table = [[draws.random() < share for _ in range(STEPS)] for _ in MASK]
        greedy = [1] * len(MASK)
        if sampled is not None and sampled[number]:
            greedy = [int(j % 4 != 0) for j in range(len(MASK))]
        digest = None if texts is None else texts[number]
        rows.append(made_row(number, MASK, greedy=greedy, tokens_sha256=digest))
        hits.append(made_hits("r", number, MASK, STEPS, lambda j, s, table=table: table[j][s]))
    return reading_figures("r", rows, hits), tuple(rows)


def test_all_rows_against_all_rows() -> None:
    train, heldout = split([0.8] * 20, seed=1), split([0.5] * 10, seed=2)
    found = gap(*train, *heldout)
    assert found.how == "unpaired"
    assert found.first_step.value == pytest.approx(0.3, abs=0.06)
    assert found.first_step.low is not None
    assert 0.15 < found.first_step.low < 0.3
    assert found.accept_length.value is not None
    assert found.accept_length.value > 0.5
    assert (found.train_rows, found.heldout_rows, found.unlike) == (20, 10, False)


def test_no_gap_has_an_interval_around_nothing() -> None:
    found = gap(*split([0.7] * 20, seed=3), *split([0.7] * 20, seed=4))
    assert found.first_step.low is not None
    assert found.first_step.high is not None
    assert found.first_step.low < 0 < found.first_step.high


def test_no_interval_of_a_share_or_a_length_leaves_what_it_can_be() -> None:
    """One row misses now and then, the others never: Student's t around 0.99 would reach beyond 1."""
    found = gap(*split([1.0] * 11 + [0.9], seed=13), *split([0.0] * 11 + [0.1], seed=14))
    assert found.train_first_step.value is not None
    assert 0.98 < found.train_first_step.value < 1
    assert found.train_first_step.high == 1
    assert found.train_accept_length.high == STEPS + 1
    assert (found.heldout_first_step.low, found.heldout_accept_length.low) == (0, 1)
    assert found.heldout_first_step.value is not None
    assert 0 < found.heldout_first_step.value < 0.02


def test_another_mixture_of_kinds_is_no_gap() -> None:
    """Greedy rows 15 points better than sampled ones, in both splits alike; only their shares differ."""
    many, few = [False] * 15 + [True] * 5, [False] * 5 + [True] * 15
    train = split([0.6 if kind else 0.75 for kind in many], sampled=many, seed=5)
    heldout = split([0.6 if kind else 0.75 for kind in few], sampled=few, seed=6)
    found = gap(*train, *heldout)
    assert found.how == "stratified"
    assert found.first_step.low is not None
    assert found.first_step.high is not None
    assert found.first_step.low < 0 < found.first_step.high
    assert found.train_first_step.value is not None
    assert found.heldout_first_step.value is not None
    assert found.train_first_step.value - found.heldout_first_step.value > 0.04  # what all rows together would say


def test_kinds_that_cannot_be_told_apart_are_said_to_be_unlike() -> None:
    greedy, sampled = split([0.75] * 12, seed=7), split([0.6] * 12, sampled=[True] * 12, seed=8)
    found = gap(*greedy, *sampled)
    assert (found.how, found.unlike) == ("unpaired", True)


def test_the_same_texts_are_paired_whatever_their_order() -> None:
    names = [f"{number:064x}" for number in range(12)]
    rows = [0.4 + 0.05 * number for number in range(12)]
    train = split(rows, texts=names, seed=9)
    turned = split(rows[::-1], texts=names[::-1], seed=10)
    found = gap(*train, *turned)
    assert found.how == "paired"
    assert found.first_step.low is not None
    assert found.first_step.high is not None
    assert found.first_step.low < 0 < found.first_step.high
    unpaired = gap(*split(rows, seed=9), *split(rows[::-1], seed=10))
    assert unpaired.first_step.standard_error is not None
    assert found.first_step.standard_error is not None
    assert found.first_step.standard_error < unpaired.first_step.standard_error / 2
    other = split(rows, texts=[*names[1:], "f" * 64], seed=11)
    assert gap(*train, *other).how == "unpaired"


def test_too_few_rows_give_no_interval() -> None:
    found = gap(*split([0.8] * 12, seed=12), *split([0.5] * 3, seed=13))
    assert found.first_step.value is not None
    assert found.first_step.low is None


@pytest.mark.parametrize(("wrong", "kind"), [(0, "greedy"), (1, "greedy"), (2, "sampled"), (20, "sampled")])
def test_a_flip_or_two_leave_a_long_row_greedy(wrong: int, kind: str) -> None:
    greedy = [1] * 64
    greedy[10 : 10 + wrong] = [0] * wrong
    assert row_kind(made_row(0, MASK, greedy=greedy)) == kind


def test_a_row_without_a_response_is_not_greedy() -> None:
    assert row_kind(made_row(0, [0] * 8)) == "sampled"


def test_the_stratified_interval_covers() -> None:
    """No gap, rows of two kinds, 300 tries: 95 % intervals miss in about 5 % of them."""
    missed = 0
    for seed in range(300):
        draws = random.Random(seed)
        sides = []
        for side in ("a", "b"):
            kinds = [number % 2 == 0 for number in range(16)]
            shares = [min(max(draws.gauss(0.6 if kind else 0.75, 0.1), 0), 1) for kind in kinds]
            sides.append((kinds, shares, f"{seed} {side}"))
        found = gap(*_quick(*sides[0]), *_quick(*sides[1]))
        assert found.how == "stratified"
        assert found.first_step.low is not None
        assert found.first_step.high is not None
        missed += not found.first_step.low <= 0 <= found.first_step.high
    assert 0.02 <= missed / 300 <= 0.08


def _quick(kinds: list[bool], shares: list[float], seed: str) -> tuple[ReadingFigures, tuple[RowFacts, ...]]:
    draws = random.Random(seed)
    rows, counts, requests = [], [], []
    for number, (kind, share) in enumerate(zip(kinds, shares, strict=True)):
        n = 40
        hits = sum(draws.random() < share for _ in range(n))
        greedy = [int(not kind or j % 4 != 0) for j in range(12)]
        rows.append(made_row(number, [0] * 2 + [1] * 10, greedy=greedy))
        counts.append(
            RowCounts(
                row=str(number),
                n=(n,),
                hits=(hits,),
                conditional_n=(n,),
                conditional_hits=(hits,),
                whole=n,
                whole_leading=hits,
            )
        )
        requests.append((Walk(histogram=(n - hits, hits), tokens=1 + n + hits, greedy=True),))
    figures = ReadingFigures(reading="r", steps=1, counts=tuple(counts), requests=tuple(requests))
    return figures, tuple(rows)
