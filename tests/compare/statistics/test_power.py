"""Sample sizes, against the textbook's figures and against what really happens."""

import math

import numpy as np
import pytest
import scipy.stats

from orchestrator.compare.statistics import compare_series
from orchestrator.compare.statistics.effect import t_test
from orchestrator.compare.statistics.power import POWERS_OF_FEW, detectable_change, samples_by_normal, samples_needed
from orchestrator.compare.statistics.sides import of_runs, welch
from tests.support.made_series import THROUGHPUT, runs


@pytest.mark.parametrize(
    ("cv", "change", "runs"), [(0.01, 0.02, 3.92), (0.02, 0.02, 15.7), (0.02, 0.05, 2.5), (0.05, 0.05, 15.7)]
)
def test_runs_by_normal_quantiles(cv: float, change: float, runs: float) -> None:
    assert samples_by_normal(2 * cv**2, change) == pytest.approx(runs, abs=0.05)


@pytest.mark.parametrize(("sd", "change", "pairs"), [(0.30, 0.10, 70.6), (0.30, 0.05, 282.6), (0.5, 0.1, 196.2)])
def test_pairs_by_normal_quantiles(sd: float, change: float, pairs: float) -> None:
    assert samples_by_normal(sd**2, change) == pytest.approx(pairs, abs=0.05)


def test_five_runs_a_side_at_one_percent() -> None:
    assert detectable_change(0.01 * math.sqrt(2 / 5)) == pytest.approx(0.0177, abs=5e-5)
    assert detectable_change(0.01 * math.sqrt(2 / 5), freedom=8) > 0.02


@pytest.mark.parametrize(("variance", "change", "sides"), [(2e-4, 0.02, 2), (9e-2, 0.1, 1), (5e-3, 0.05, 2)])
def test_needed_is_the_least_number_that_does(variance: float, change: float, sides: int) -> None:
    n = samples_needed(variance, change, sides)  # type: ignore[arg-type]
    assert n is not None
    assert n >= samples_by_normal(variance, change)
    assert detectable_change(math.sqrt(variance / n), sides * (n - 1)) <= change
    assert detectable_change(math.sqrt(variance / (n - 1)), sides * (n - 2)) > change


def test_no_number_is_given_for_what_nobody_would_measure() -> None:
    assert samples_needed(1.0, 1e-6, 1) is None
    assert samples_needed(1.0, 0.0, 1) is None


def test_the_detectable_change_is_detected_in_four_of_five_cases() -> None:
    generator, runs, spread = np.random.default_rng(11), 5, 0.02
    change = detectable_change(spread * math.sqrt(2 / runs), 2 * (runs - 1))
    found = 0
    for _ in range(1000):
        ours = of_runs(np.exp(generator.normal(change, spread, runs)).tolist(), "log")
        theirs = of_runs(np.exp(generator.normal(0, spread, runs)).tolist(), "log")
        assert ours is not None
        assert theirs is not None
        p = t_test(welch(ours, theirs, "log"), "").p
        found += p is not None and p < 0.05
    assert 735 <= found <= 815  # 776 is true; by normal quantiles the change would be smaller, and found in 663


def test_no_fewer_runs_are_asked_for_than_are_judged() -> None:
    """Two starts a side would do by the formula, and are no verdict."""
    found = compare_series(THROUGHPUT, runs(90.1, 90.0, 89.95, 90.02), runs(90.05, 90.0, 89.97, 90.01))
    assert found.spread is not None
    assert samples_needed(found.spread.variance, found.margin, 2) == 2
    assert found.needed == 3


@pytest.mark.parametrize(("runs_a_side", "power"), sorted(POWERS_OF_FEW.items()))
def test_the_power_of_few_runs_is_what_really_happens(runs_a_side: int, power: float) -> None:
    generator, count = np.random.default_rng(5), 20_000
    change = detectable_change(math.sqrt(2 / runs_a_side), 2 * (runs_a_side - 1))
    ours, theirs = generator.standard_normal((2, count, runs_a_side))
    found = scipy.stats.ttest_ind(ours + change, theirs, axis=1, equal_var=False).pvalue < 0.05
    assert found.mean() == pytest.approx(power, abs=0.01)
