"""What a drafter test foretells to be hopeless is left out of a sweep, and nothing that it does not speak of."""

import dataclasses
import hashlib
from typing import Any

import pytest

from orchestrator.compare.prediction import Depth, Prediction
from orchestrator.compare.stats import Estimate
from orchestrator.compare.step_cost import StepCost
from orchestrator.compare.walk import Walk
from orchestrator.errors import InvalidRunError, UsageError
from orchestrator.sweep.depth_pruning import hopeless
from orchestrator.sweep.pruning import MARGIN
from orchestrator.sweep.tested import DrafterRead, replaced, replaced_target
from remote_payload.schema.folder import FolderFacts

COST = StepCost(base=1.0, per_step=0.1, source="the test")
OF = DrafterRead(draft="/d", target="/t", weights_sha256="a", files=("model.safetensors",), config_json="{}")


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
    value = {"model": "/t", "draft": "/d", "num_steps": steps, "eagle_topk": 1, "temperature": 0.0, "concurrency": [1]}
    return {**value, "request_rate": [], **changes}


def test_only_what_is_surely_below_the_best_is_left_out() -> None:
    best_low = 1.5
    just = best_low / (1 + MARGIN)
    found = hopeless(
        told((1.0, just - 0.01), (best_low, 1.7), (1.3, just + 0.01)), OF, {"a": job(1), "b": job(2), "c": job(3)}
    )
    assert set(found) == {"a"}
    assert found["a"].startswith(
        "cannot win: foretold at most 1.42x plain decoding at one user (95 %, r, r = 1 + 0.1 k as the test says)"
    )
    assert found["a"].endswith("and 2 steps reach at least 1.50x")


def test_where_no_depth_surely_pays_only_what_is_below_plain_decoding_is() -> None:
    found = hopeless(told((0.7, 0.9), (0.9, 1.1)), OF, {"a": job(1), "b": job(2)})
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
        {"model": "/other"},
        {"num_steps": 7},
        {"num_steps": None},
    ],
)
def test_what_it_does_not_speak_of_stays(changes: dict[str, Any]) -> None:
    jobs = {"a": job(1), "b": job(1, **changes)}
    assert set(hopeless(told((0.5, 0.6), (1.5, 1.6)), OF, jobs)) == {"a"}


def test_a_depth_that_the_sweep_has_not_beats_none_of_its_points() -> None:
    deep = told((1.1, 1.2), (1.3, 1.4), (2.0, 2.1))
    assert set(hopeless(deep, OF, {"a": job(1), "b": job(2), "c": job(3)})) == {"a", "b"}
    assert set(hopeless(deep, OF, {"a": job(1), "b": job(2)})) == {"a"}
    assert hopeless(deep, OF, {"a": job(1)}) == {}
    other = {"server_args": ["--tp", "2"]}  # another target's speed: another plain decoding
    assert hopeless(deep, OF, {"a": job(1), "c": job(3, **other)}) == {}


def test_without_a_cost_or_with_another_drafter_nothing_is_said() -> None:
    with pytest.raises(InvalidRunError, match="nobody what a speculative step costs"):
        hopeless(told((1.0, 1.1), cost=None), OF, {"a": job(1)})
    with pytest.raises(UsageError, match="another drafter than any point has: /d"):
        hopeless(told((1.0, 1.1)), OF, {"a": job(1, draft="/else")})


def test_of_another_target_or_of_none_nothing_is_said() -> None:
    with pytest.raises(UsageError, match="for another target than any point serves: /t"):
        hopeless(told((1.0, 1.1)), OF, {"a": job(1, model="/quite-another"), "b": job(1, draft="/else")})
    with pytest.raises(InvalidRunError, match="read no target"):
        hopeless(told((1.0, 1.1)), dataclasses.replace(OF, target=None), {"a": job(1)})


def test_a_drafter_that_was_trained_anew_in_its_place_is_another() -> None:
    assert OF.whole == (("/d/model.safetensors",), ("/d/config.json",))
    text = '{\n"a": 1\n}'
    of = dataclasses.replace(OF, config_json=text)
    own, windows = (hashlib.sha256(one.encode()).hexdigest() for one in (text, text.replace("\n", "\r\n")))
    assert replaced(of, ("a", own)) is None
    assert replaced(of, ("a", windows)) is None  # as text it was read the same
    assert replaced(of, ("b", own)) == ("/d", "its weights")
    assert replaced(of, (None, None)) == ("/d", "its weights and its config.json")  # no longer there
    with pytest.raises(InvalidRunError, match="does not tell which weights"):
        replaced(dataclasses.replace(of, weights_sha256=None), ("a", own))


def test_the_target_is_known_by_samples_of_its_weights() -> None:
    then = FolderFacts(path="/t", weights_sha256="a", config_sha256="c")
    of = dataclasses.replace(OF, target_folder=then)
    assert replaced_target(of, dataclasses.replace(then, path="/elsewhere")) is None
    assert replaced_target(of, dataclasses.replace(then, weights_sha256="b")) == ("/t", "its weights")
    assert replaced_target(of, dataclasses.replace(then, config_sha256=None)) == ("/t", "its config.json")
    for read, now in ((OF, then), (of, FolderFacts(path="/t"))):
        with pytest.raises(InvalidRunError, match="whether what lies under /t is still the target of the test"):
            replaced_target(read, now)
