"""The same comparisons made with scipy alone, on made numbers."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.compare.metrics import METRICS
from orchestrator.compare.statistics import compare_series, geometric_mean, with_bootstrap
from tests.support.made_series import LENGTH, THROUGHPUT, number, prompts, runs

SEEDS = st.integers(0, 2**32 - 1)


@given(seed=SEEDS, ours=st.integers(3, 7), theirs=st.integers(3, 7))
@settings(deadline=None, max_examples=30)
def test_runs(seed: int, ours: int, theirs: int) -> None:
    generator = np.random.default_rng(seed)
    a, b = (generator.normal(90, 3, count) for count in (ours, theirs))
    found = compare_series(THROUGHPUT, runs(*a), runs(*b))
    logs, plain = (
        scipy.stats.ttest_ind(np.log(a), np.log(b), equal_var=False),
        scipy.stats.ttest_ind(a, b, equal_var=False),
    )
    bounds = logs.confidence_interval(0.95)
    assert (found.change.low, found.change.high) == pytest.approx((np.expm1(bounds.low), np.expm1(bounds.high)))
    assert [found.tests[0].p, found.tests[2].p] == pytest.approx([logs.pvalue, plain.pvalue])
    assert found.tests[1].p == pytest.approx(scipy.stats.mannwhitneyu(a, b, method="exact").pvalue)
    interval = scipy.stats.ttest_1samp(np.log(a), 0).confidence_interval(0.95)
    assert (found.ours.low, found.ours.high) == pytest.approx((np.exp(interval.low), np.exp(interval.high)))
    assert found.ours.value == pytest.approx(scipy.stats.gmean(a))
    assert found.ours.value / found.theirs.value - 1 == pytest.approx(found.change.value)


@given(seed=SEEDS, count=st.integers(3, 9))
@settings(deadline=None, max_examples=30)
def test_runs_against_a_number(seed: int, count: int) -> None:
    a = np.random.default_rng(seed).normal(90, 3, count)
    found = compare_series(THROUGHPUT, runs(*a), number(88))
    expected = scipy.stats.ttest_1samp(np.log(a), np.log(88))
    bounds = expected.confidence_interval(0.95)
    assert found.tests[0].p == pytest.approx(expected.pvalue)
    assert (found.change.low, found.change.high) == pytest.approx(
        (np.expm1(bounds.low - np.log(88)), np.expm1(bounds.high - np.log(88)))
    )


@given(seed=SEEDS, count=st.integers(5, 40))
@settings(deadline=None, max_examples=30)
def test_shares_of_equally_many_positions_are_the_paired_t_test(seed: int, count: int) -> None:
    generator, metric = np.random.default_rng(seed), METRICS["first_step_accuracy"]
    a, b = generator.binomial(50, 0.75, count), generator.binomial(50, 0.7, count)
    found = compare_series(
        metric,
        *(prompts(hits, [50] * count, metric=metric.name, unit="share") for hits in (a, b)),
    )
    expected = scipy.stats.ttest_rel(a / 50, b / 50)
    bounds = expected.confidence_interval(0.95)
    assert found.tests[0].p == pytest.approx(expected.pvalue, nan_ok=True)
    assert (found.change.low, found.change.high) == pytest.approx((bounds.low, bounds.high))


@given(seed=SEEDS)
@settings(deadline=None, max_examples=20)
def test_the_linearised_error_is_near_the_jackknife_and_the_bootstrap(seed: int) -> None:
    generator, count = np.random.default_rng(seed), 40
    y = generator.integers(100, 300, count).astype(float)
    x, other = y / generator.normal(2.2, 0.2, count), y / generator.normal(2.0, 0.2, count)
    ours, theirs = prompts(y, x), prompts(y, other)
    found = with_bootstrap(compare_series(LENGTH, ours, theirs), ours, theirs)
    left_out = [np.log((other.sum() - other[i]) / (x.sum() - x[i])) for i in range(count)]
    jackknife = np.sqrt((count - 1) * np.var(left_out))
    assert found.change.standard_error == pytest.approx(jackknife, rel=0.05)
    assert found.bootstrap is not None
    assert (found.bootstrap.low, found.bootstrap.high) == pytest.approx(
        (found.change.low, found.change.high), abs=0.6 * found.change.standard_error
    )


@given(seed=SEEDS, count=st.integers(2, 9))
@settings(deadline=None, max_examples=20)
def test_geometric_mean(seed: int, count: int) -> None:
    values = np.random.default_rng(seed).uniform(0.8, 2.5, count)
    found = geometric_mean(values.tolist())
    interval = scipy.stats.ttest_1samp(np.log(values), 0).confidence_interval(0.95)
    assert (found.value, found.low, found.high) == pytest.approx(
        (scipy.stats.gmean(values), np.exp(interval.low), np.exp(interval.high))
    )
    assert geometric_mean([1.0, 0.0]).value is None
    assert (geometric_mean([1.5]).value, geometric_mean([1.5]).low) == (pytest.approx(1.5), None)
