"""The rank tests against scipy's, and against every possible arrangement where there are ties."""

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.compare.statistics.ranks import EXACT_PAIRS, EXACT_RUNS, mann_whitney, wilcoxon

SMALL = st.integers(-4, 4).map(float)


@given(ours=st.lists(SMALL, min_size=1, max_size=8), shift=st.integers(-2, 2))
@settings(deadline=None, max_examples=60)
def test_wilcoxon_counts_every_assignment_of_signs(ours: list[float], shift: int) -> None:
    theirs = [float(shift)] * len(ours)
    found = wilcoxon(ours, theirs)
    differences = [a - b for a, b in zip(ours, theirs, strict=True) if a != b]
    if not differences:
        assert found.p is None
        return
    ranks = scipy.stats.rankdata(np.abs(differences))
    centre = ranks.sum() / 2
    far = abs(ranks[np.array(differences) > 0].sum() - centre)
    sums = [ranks[list(signs)].sum() for signs in itertools.product([False, True], repeat=len(ranks))]
    assert found.p == pytest.approx(np.mean([abs(one - centre) >= far - 1e-9 for one in sums]))


@given(ours=st.lists(SMALL, min_size=1, max_size=5), theirs=st.lists(SMALL, min_size=1, max_size=5))
@settings(deadline=None, max_examples=60)
def test_mann_whitney_counts_every_division(ours: list[float], theirs: list[float]) -> None:
    found = mann_whitney(ours, theirs)
    if len({*ours, *theirs}) == 1:
        assert found.p is None
        return
    ranks = scipy.stats.rankdata([*ours, *theirs])
    at = ranks[: len(ours)].sum()
    sums = np.array([sum(some) for some in itertools.combinations(ranks, len(ours))])
    tails = ((sums <= at + 1e-9).mean(), (sums >= at - 1e-9).mean())
    assert found.p == pytest.approx(min(1.0, 2 * min(tails)))
    assert found.statistic == scipy.stats.mannwhitneyu(ours, theirs).statistic


def test_without_ties_both_are_scipys_exact_tests() -> None:
    generator = np.random.default_rng(1)
    ours, theirs = generator.normal(0.3, 1, 24).tolist(), generator.normal(0, 1, 24).tolist()
    assert wilcoxon(ours, theirs).p == pytest.approx(scipy.stats.wilcoxon(ours, theirs, method="exact").pvalue)
    assert mann_whitney(ours, theirs[:20]).p == pytest.approx(
        scipy.stats.mannwhitneyu(ours, theirs[:20], method="exact").pvalue
    )


def test_large_samples_are_approximated_as_scipy_does_and_say_so() -> None:
    generator = np.random.default_rng(2)
    ours, theirs = (generator.integers(0, 30, EXACT_PAIRS + 60) / 10 for _ in range(2))
    found = wilcoxon(ours.tolist(), theirs.tolist())
    zeros = int((ours == theirs).sum())
    assert found.note == f"normal approximation; {zeros} pairs without a difference left out"
    expected = scipy.stats.wilcoxon(np.round(ours - theirs, 10), method="approx", correction=False)
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    some, other = ours[: EXACT_RUNS // 2], theirs[: EXACT_RUNS // 2 + 1]
    found = mann_whitney(some.tolist(), other.tolist())
    expected = scipy.stats.mannwhitneyu(some, other, method="asymptotic", use_continuity=False)
    assert found.note == "normal approximation"
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))


def test_the_approximation_comes_near_the_exact_count_where_it_takes_over() -> None:
    generator = np.random.default_rng(3)
    ours, theirs = generator.normal(0.2, 1, EXACT_PAIRS), generator.normal(0, 1, EXACT_PAIRS)
    exact, rough = wilcoxon(ours.tolist(), theirs.tolist()), wilcoxon(ours.tolist(), theirs.tolist(), exact_up_to=0)
    assert (exact.note, rough.note) == ("exact", "normal approximation")
    assert rough.p == pytest.approx(exact.p, rel=0.02)


def test_rounding_noise_makes_no_ranks() -> None:
    ours, theirs = [0.1 + 0.2, 0.3, 0.7, 1.1], [0.3, 0.1 + 0.2, 0.7, 1.0]
    found = wilcoxon(ours, theirs)
    assert found.note == "exact; 3 pairs without a difference left out; 1 pair can never fall below p = 1"
    assert mann_whitney([0.1 + 0.2] * 2, [0.3] * 2).note == "all values are equal"


def test_nothing_to_rank() -> None:
    assert (wilcoxon([], []).p, wilcoxon([], []).note) == (None, "no pairs")
    assert (wilcoxon([1.0, 2.0], [1.0, 2.0]).p, mann_whitney([], [1.0]).p) == (None, None)
    assert wilcoxon([0.0], [0.0]).note == "no pair differs"
