"""One deep run against a server of each depth, played token by token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.compare.figures import reading_figures
from orchestrator.compare.prediction import predict
from orchestrator.compare.step_cost import StepCost
from remote_payload.schema import ReadingHits, RowFacts
from tests.support.made_results import leading, made_hits, made_readings, made_row

READING = "slots 0,1,2 offset +1"


def deep(share: float, rows: int = 12) -> tuple[tuple[RowFacts, ...], tuple[ReadingHits, ...]]:
    facts, hits, _ = made_readings({((0, 1, 2), 1): share}, rows=rows, steps=4)
    return facts, hits


@given(
    prompt=st.integers(1, 3),
    lengths=st.lists(st.integers(0, 4), min_size=5, max_size=30),
    steps=st.integers(1, 4),
)
def test_every_depth_is_a_server_of_that_depth(prompt: int, lengths: list[int], steps: int) -> None:
    mask = [0] * prompt + [1] * len(lengths)
    at = dict(enumerate([0] * (prompt - 1) + lengths + [0]))
    rows, hits = (made_row(0, mask),), (made_hits(READING, 0, mask, 4, leading(at)),)
    found = predict(READING, rows, hits, None).depths[steps - 1]
    position, histogram = prompt - 1, [0] * (steps + 1)
    while position + steps < len(mask):
        accepted = min(at[position], steps)
        histogram[accepted] += 1
        position += accepted + 1
    assert list(found.walk.histogram) == histogram
    assert found.steps == steps


def test_the_deepest_is_the_readings_own_walk_with_its_interval() -> None:
    rows, hits = deep(0.7)
    found = predict(READING, rows, hits, None)
    own = reading_figures(READING, rows, hits)
    assert found.depths[-1].accept_length == own.accept_length_walk
    assert found.depths[-1].walk == own.walk
    values = [depth.accept_length.value or 0.0 for depth in found.depths]
    assert values == sorted(values)
    assert (found.cost, found.judged, found.best_steps, found.pays) == (None, None, None, None)
    assert all(depth.speedup is None and depth.break_even is None for depth in found.depths)


def test_a_speed_up_is_the_accept_length_over_the_cost() -> None:
    rows, hits = deep(0.7)
    found = predict(READING, rows, hits, StepCost(base=1.0, per_step=0.1, source="test"))
    for depth in found.depths:
        assert depth.break_even == pytest.approx(1 + 0.1 * depth.steps)
        assert depth.speedup is not None
        assert depth.speedup.value == pytest.approx(depth.accept_length.value / depth.break_even)
        assert depth.speedup.low == pytest.approx(depth.accept_length.low / depth.break_even)
    speedups = [depth.speedup.value for depth in found.depths if depth.speedup]
    assert found.judged is not None
    assert found.judged.speedup is not None
    assert found.judged.speedup.value == max(speedups)
    assert found.best_steps == found.judged_steps
    assert found.pays is True
    assert not found.suspicious


def test_a_cost_above_the_accept_length_does_not_pay_and_one_below_one_is_suspicious() -> None:
    rows, hits = deep(0.3)
    assert predict(READING, rows, hits, StepCost(base=3.66, source="the story")).pays is False
    length = predict(READING, rows, hits, None).depths[-1].accept_length.value
    assert length is not None
    assert predict(READING, rows, hits, StepCost(base=length, source="test")).pays is None
    assert predict(READING, rows, hits, StepCost(base=0.9, source="test")).suspicious
    few = predict(READING, *deep(0.7, rows=3), StepCost(base=1.0, source="test"))
    assert (few.best_steps, few.judged_steps) == (None, 4)  # r is the same at every depth: no depth is best
    assert few.pays is None  # three rows give no interval


def test_a_limit_of_tokens_stops_every_depth() -> None:
    rows, hits = deep(0.7)
    short = predict(READING, rows, hits, None, max_new_tokens=8)
    assert all(depth.walk.tokens <= 8 * len(rows) for depth in short.depths)


def test_more_rows_narrow_the_interval() -> None:
    def width(rows: int) -> float:
        length = predict(READING, *deep(0.7, rows=rows), None).depths[-1].accept_length
        assert length.low is not None
        assert length.high is not None
        return length.high - length.low

    assert width(48) < width(12)
