"""The worked numbers of the speed-up model, and what a user may type for a step's cost."""

import pytest

from orchestrator.compare.step_cost import (
    StepCost,
    best_steps,
    known_cost,
    measured_ratio,
    parse_step_cost,
    stored_costs,
)
from orchestrator.errors import ConfigError, UsageError

KIMI = (0.83, 0.60, 0.45, 0.36, 0.22, 0.16, 0.09, 0.06)  # chance that the first k draft tokens are all accepted


def lengths(joint: tuple[float, ...]) -> list[float]:
    return [1 + sum(joint[:steps]) for steps in range(1, len(joint) + 1)]


@pytest.mark.parametrize(("tok_s", "ratio"), [(46.7, 3.66), (56.8, 3.01)])
def test_the_storys_ratio(tok_s: float, ratio: float) -> None:
    assert round(measured_ratio(tok_s, 90.0, 1.9), 2) == ratio
    assert round(parse_step_cost(f"{tok_s}/90@1.9").base, 2) == ratio


@pytest.mark.parametrize(
    ("base", "per_step", "steps", "speedup"),
    [(1.0, 0.05, 6, 2.785), (1.0, 0.10, 4, 2.314), (1.2, 0.10, 5, 2.035), (1.4, 0.15, 4, 1.620)],
)
def test_the_best_depth_of_a_known_curve(base: float, per_step: float, steps: int, speedup: float) -> None:
    cost = StepCost(base=base, per_step=per_step, source="test")
    found = best_steps(lengths(KIMI), cost)
    assert found == steps
    assert round(lengths(KIMI)[steps - 1] / cost.ratio(steps), 3) == speedup


@pytest.mark.parametrize(
    ("alpha", "per_step", "steps", "speedup"),
    [
        (0.5, 0.05, 3, 1.6304),
        (0.5, 0.2, 1, 1.25),
        (0.7, 0.05, 6, 2.3529),
        (0.7, 0.1, 4, 1.9808),
        (0.8, 0.1, 6, 2.4696),
        (0.9, 0.2, 7, 2.3731),
    ],
)
def test_the_best_depth_of_independent_steps(alpha: float, per_step: float, steps: int, speedup: float) -> None:
    cost = StepCost(base=1.0, per_step=per_step, source="test")
    curve = lengths(tuple(alpha**step for step in range(1, 25)))
    assert best_steps(curve, cost) == steps
    assert round(curve[steps - 1] / cost.ratio(steps), 4) == speedup


def test_the_best_depth_is_where_another_step_no_longer_earns_its_cost() -> None:
    cost = StepCost(base=1.2, per_step=0.1, source="test")
    curve = lengths(KIMI)
    greedy = 1
    while greedy < len(KIMI) and KIMI[greedy] > cost.per_step * curve[greedy - 1] / cost.ratio(greedy):
        greedy += 1
    assert best_steps(curve, cost) == greedy
    assert best_steps([None, None], cost) is None
    assert best_steps([None, 2.0], cost) == 2
    assert best_steps([2.0, 2.0], StepCost(base=1.0, source="test")) == 1  # no step more than it needs


@pytest.mark.parametrize(
    ("text", "at_three"),
    [("1.9", 1.9), ("1.47+0.16k", 1.95), (" 1.47 + 0.16 * k ", 1.95), ("2", 2.0), (".5+.5k", 2.0)],
)
def test_what_a_step_costs_in_words(text: str, at_three: float) -> None:
    assert parse_step_cost(text).ratio(3) == pytest.approx(at_three)


@pytest.mark.parametrize(
    "text",
    ["", "x", "-1", "1.9k", "1+k", "nan", "inf", "1e300", "9" * 400, "0", "0/90@1.9", "46.7/0@1.9", "1.9+0.1", "1,9"],
)
def test_what_is_no_cost_names_the_forms(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected .*found: "):
        parse_step_cost(text)


def test_a_stored_cost_holds_for_its_target_and_gpu_alone() -> None:
    kimi = StepCost(base=1.473, per_step=0.16, target="Kimi-K2.5", gpu="H200", source="a")
    deepseek = StepCost(base=1.5, target="DeepseekV3ForCausalLM", source="b")
    anything = StepCost(base=2.0, gpu="A100", source="c")
    costs = (kimi, deepseek, anything)

    def found(target: str | None, target_class: str | None, device: str) -> StepCost | None:
        return known_cost(costs, target=target, target_class=target_class, device=device)

    assert found("/models/kimi-k2.5/", None, "NVIDIA H200") is kimi
    assert found("/models/x", "DeepseekV3ForCausalLM", "cpu") is deepseek
    assert found("/models/Kimi-K2.5-x", None, "NVIDIA H200") is None
    assert found(None, None, "NVIDIA A100-SXM4-80GB") is anything
    assert found("/models/kimi-k2.5", None, "AMD EPYC") is None


def test_stored_costs_are_read_strictly() -> None:
    (cost,) = stored_costs([{"base": 1.473, "per_step": 0.16, "target": "Kimi-K2.5"}], "/p/eagle3.toml")
    assert cost.ratio(3) == pytest.approx(1.953)
    assert cost.source == "/p/eagle3.toml"
    assert cost.words == "1.473 + 0.16 k"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"bse": 1.0}, "step_costs, table 1: `bse`: unknown key; allowed: base, per_step, source, target, gpu"),
        ({}, "step_costs, table 1: `base`: missing key"),
        ({"base": "1"}, "step_costs, table 1: `base`: expected float, found: '1'"),
        ({"base": -1.0}, "step_costs, table 1: `base` must be 0..1000000, found: -1.0"),
        ({"base": 0.0}, "step_costs, table 1: `base` and `per_step` must not both be 0"),
        ({"base": float("nan")}, "step_costs, table 1: `base`: expected a finite number, found: nan"),
    ],
)
def test_a_mistake_in_a_stored_cost_names_file_table_and_key(table: dict[str, object], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        stored_costs([table], "e.toml")
    assert caught.value.message.startswith(f"e.toml: {expected}")
