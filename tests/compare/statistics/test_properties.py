"""What must hold for any numbers: the sides are mirror images, units and order are of no account."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.compare.comparison import Comparison
from orchestrator.compare.statistics import compare_series
from orchestrator.records.measurement import Series
from tests.support.made_series import ACCURACY, LENGTH, THROUGHPUT, prompts, runs

TOKENS = st.integers(1, 400).map(float)
SUMS = st.tuples(TOKENS, TOKENS).map(lambda both: (max(both), min(both)))
"""(tokens, verify steps) of a prompt: no accept length is below 1."""
ROWS = st.lists(st.tuples(SUMS, SUMS).map(lambda sides: (*sides[0], *sides[1])), min_size=1, max_size=25)
SPEEDS = st.lists(st.integers(500, 1500).map(lambda tenths: tenths / 10), min_size=1, max_size=8)
MIRRORED = {"improved": "regressed", "regressed": "improved"}


def logs(found: Comparison) -> list[float]:
    """Change and bounds where there are any, as logs."""
    return [
        math.log1p(value) for value in (found.change.value, found.change.low, found.change.high) if value is not None
    ]


def mirror(values: list[float]) -> list[float]:
    return [-values[0], *(-value for value in reversed(values[1:]))]


def ps(found: Comparison) -> list[float]:
    return [test.p for test in found.tests if test.p is not None]


def near(values: list[float]) -> object:
    return pytest.approx(values, rel=1e-6, abs=1e-9)


@given(rows=ROWS)
@settings(deadline=None, max_examples=60)
def test_prompts_swapped_are_mirrored(rows: list[tuple[float, ...]]) -> None:
    y, x, other_y, other_x = zip(*rows, strict=True)
    ours, theirs = prompts(y, x), prompts(other_y, other_x)
    there, back = compare_series(LENGTH, ours, theirs), compare_series(LENGTH, theirs, ours)
    assert logs(back) == near(mirror(logs(there)))
    assert ps(back) == near(ps(there))
    assert (there.ours, there.theirs, there.pairs) == (back.theirs, back.ours, back.pairs)


@given(ours=SPEEDS, theirs=SPEEDS)
@settings(deadline=None, max_examples=60)
def test_runs_swapped_are_mirrored(ours: list[float], theirs: list[float]) -> None:
    there, back = (
        compare_series(THROUGHPUT, runs(*a, name="a"), runs(*b, name="b")) for a, b in ((ours, theirs), (theirs, ours))
    )
    assert logs(back) == near(mirror(logs(there)))
    assert ps(back) == near(ps(there))
    if abs(abs(there.change.low or 9) - 0.02) > 0.001 and abs(abs(there.change.high or 9) - 0.02) > 0.001:
        assert back.verdict == MIRRORED.get(there.verdict, there.verdict)  # 1 / 1.02 is not 0.98, so not at the margin


@given(ours=SPEEDS, theirs=SPEEDS, factor=st.sampled_from([1e-3, 60.0, 1e6]))
@settings(deadline=None, max_examples=60)
def test_another_unit_changes_nothing(ours: list[float], theirs: list[float], factor: float) -> None:
    plain = compare_series(THROUGHPUT, runs(*ours), runs(*theirs))
    scaled = compare_series(THROUGHPUT, runs(*(v * factor for v in ours)), runs(*(v * factor for v in theirs)))
    assert logs(scaled) == near(logs(plain))
    assert ps(scaled) == near(ps(plain))
    assert scaled.needed == plain.needed or plain.needed is None or abs((scaled.needed or 0) - plain.needed) <= 1


@given(rows=ROWS, data=st.data())
@settings(deadline=None, max_examples=40)
def test_order_and_lone_conversations_are_of_no_account(rows: list[tuple[float, ...]], data: st.DataObject) -> None:
    y, x, other_y, other_x = zip(*rows, strict=True)
    ours, theirs = prompts(y, x), prompts(other_y, other_x)
    found = compare_series(LENGTH, ours, theirs)
    order = data.draw(st.permutations(range(len(rows))))
    shuffled = prompts([y[i] for i in order], [x[i] for i in order], keys=[f"p{i}" for i in order])
    assert logs(compare_series(LENGTH, shuffled, theirs)) == near(logs(found))
    each = compare_series(LENGTH, replace(ours, clusters=tuple(f"c{i}" for i in range(len(y)))), theirs)
    assert each == found


@given(rows=ROWS)
@settings(deadline=None, max_examples=60)
def test_figures_lie_in_their_intervals_and_verdicts_follow_from_them(rows: list[tuple[float, ...]]) -> None:
    y, x, other_y, other_x = zip(*rows, strict=True)
    shares = [
        prompts([min(a, b) for a, b in zip(some, all_of, strict=True)], all_of, metric=ACCURACY.name, unit="share")
        for some, all_of in ((y, x), (other_y, other_x))
    ]
    lengths: list[Series] = [prompts(y, x), prompts(other_y, other_x)]
    for metric, (ours, theirs) in ((LENGTH, lengths), (ACCURACY, shares)):
        found = compare_series(metric, ours, theirs)
        low, value, high = found.change.low, found.change.value, found.change.high
        if low is None or high is None:
            assert (found.verdict, len(rows) < 6) == ("inconclusive", True)
            continue
        assert value is not None
        assert low <= value <= high
        p = found.tests[0].p
        if p is not None and found.change.standard_error:
            assert (p < 0.05) == (low > 0 or high < 0) or p == pytest.approx(0.05, abs=1e-6)
        if found.verdict == "equivalent" and found.equivalence_p is not None:
            assert found.equivalence_p <= 0.025 + 1e-9  # the 95 % interval asks for more than the 90 % one of the test
