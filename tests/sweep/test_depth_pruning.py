"""What a drafter test foretells to be hopeless is left out of a sweep, and nothing that it does not speak of."""

from typing import Any

import pytest

from orchestrator.compare.prediction import Depth, Prediction
from orchestrator.compare.stats import Estimate
from orchestrator.compare.step_cost import StepCost
from orchestrator.compare.walk import Walk
from orchestrator.errors import InvalidRunError, UsageError
from orchestrator.sweep.depth_pruning import hopeless
from orchestrator.sweep.pruning import MARGIN

COST = StepCost(base=1.0, per_step=0.1, source="the test")


def depth(steps: int, low: float, high: float) -> Depth:
    """Speed-ups from `low` to `high`."""
    value = (low + high) / 2
    speedup = Estimate(value=value, low=low, high=high, rows=20)
    walk = Walk(histogram=(50, 50), tokens=151, greedy=True)
    return Depth(steps=steps, accept_length=speedup, walk=walk, break_even=1.0, speedup=speedup)


def told(*bounds: tuple[float, float], cost: StepCost | None = COST) -> Prediction:
    depths = tuple(depth(steps, *one) for steps, one in enumerate(bounds, start=1))
    return Prediction(reading="r", depths=depths, cost=cost, best_steps=1, judged_steps=1, pays=True, suspicious=False)


def job(steps: int | None, **changes: Any) -> dict[str, Any]:
    value = {"draft": "/d", "num_steps": steps, "eagle_topk": 1, "temperature": 0.0, "concurrency": [1]}
    return {**value, "request_rate": [], **changes}


def test_only_what_is_surely_below_the_best_is_left_out() -> None:
    best_low = 1.5
    just = best_low / (1 + MARGIN)
    found = hopeless(
        told((1.0, just - 0.01), (best_low, 1.7), (1.3, just + 0.01)), "/d", {"a": job(1), "b": job(2), "c": job(3)}
    )
    assert set(found) == {"a"}
    assert found["a"].startswith(
        "cannot win: foretold at most 1.42x plain decoding at one user (95 %, r, r = 1 + 0.1 k as the test says)"
    )
    assert found["a"].endswith("and 2 steps reach at least 1.50x")


def test_where_no_depth_surely_pays_only_what_is_below_plain_decoding_is() -> None:
    found = hopeless(told((0.7, 0.9), (0.9, 1.1)), "/d", {"a": job(1), "b": job(2)})
    assert set(found) == {"a"}
    assert found["a"].endswith("and plain decoding is 1x")


@pytest.mark.parametrize(
    "changes",
    [
        {"eagle_topk": 4},
        {"temperature": 0.7},
        {"concurrency": [4]},
        {"concurrency": [], "request_rate": [0.5]},
        {"draft": "/other"},
        {"num_steps": 7},
        {"num_steps": None},
    ],
)
def test_what_it_does_not_speak_of_stays(changes: dict[str, Any]) -> None:
    jobs = {"a": job(1), "b": job(1, **changes)}
    assert set(hopeless(told((0.5, 0.6), (1.5, 1.6)), "/d", jobs)) == {"a"}


def test_a_depth_that_the_sweep_has_not_beats_none_of_its_points() -> None:
    deep = told((1.1, 1.2), (1.3, 1.4), (2.0, 2.1))
    assert set(hopeless(deep, "/d", {"a": job(1), "b": job(2), "c": job(3)})) == {"a", "b"}
    assert set(hopeless(deep, "/d", {"a": job(1), "b": job(2)})) == {"a"}
    assert hopeless(deep, "/d", {"a": job(1)}) == {}
    other = {"server_args": ["--tp", "2"]}  # another target's speed: another plain decoding
    assert hopeless(deep, "/d", {"a": job(1), "c": job(3, **other)}) == {}


def test_without_a_cost_or_with_another_drafter_nothing_is_said() -> None:
    with pytest.raises(InvalidRunError, match="nobody what a speculative step costs"):
        hopeless(told((1.0, 1.1), cost=None), "/d", {"a": job(1)})
    with pytest.raises(UsageError, match="another drafter than any point has: /else"):
        hopeless(told((1.0, 1.1)), "/else", {"a": job(1)})
