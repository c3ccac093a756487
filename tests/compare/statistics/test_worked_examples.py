"""Examples worked out once with scipy 1.17.1, to the digits given there."""

import math

import pytest
import scipy.stats

from orchestrator.compare.statistics import benjamini_hochberg, compare_series, geometric_mean, holm, mean
from orchestrator.compare.statistics.bootstrap import paired_bootstrap
from orchestrator.compare.statistics.effect import Effect, change_of, t_test
from orchestrator.compare.statistics.equivalence import equivalence_p
from orchestrator.compare.statistics.paired import paired_effect, paired_log_ratio
from orchestrator.compare.statistics.prompts import alone, pair, ratios
from orchestrator.compare.statistics.ranks import mann_whitney, wilcoxon
from orchestrator.compare.statistics.sides import of_figure, of_runs, welch
from orchestrator.compare.stats import pooled_ratio
from tests.support.made_series import LENGTH, THROUGHPUT, prompts, runs

BASE = [2.10, 2.35, 1.80, 2.60, 2.05, 2.45, 1.95, 2.20, 2.75, 2.15]
CANDIDATE = [2.25, 2.40, 1.95, 2.55, 2.30, 2.65, 2.05, 2.32, 2.95, 2.33]
BASE_TOKENS, BASE_VERIFIES = [256] * 6 + [180, 90], [128, 120, 142, 110, 134, 125, 95, 50]
NEW_TOKENS, NEW_VERIFIES = [256] * 6 + [175, 94], [112, 109, 128, 101, 119, 116, 85, 48]
A = (90.1, 89.6, 90.4, 90.0, 89.9)
B = (91.0, 90.2, 91.3, 90.6, 90.9)
C = (90.2, 89.8, 90.1, 90.3, 89.7)
NOISY = (88, 93, 85, 96, 90)


@pytest.mark.parametrize(
    ("n", "p"), [(2, 0.3333333), (3, 0.1), (4, 0.0285714), (5, 0.0079365), (6, 0.0021645), (7, 0.00058275)]
)
def test_least_p_of_mann_whitney(n: int, p: float) -> None:
    found = mann_whitney(range(n), range(n, 2 * n))
    assert found.p == pytest.approx(p, rel=1e-4)
    assert found.statistic == 0
    assert ("can never fall below" in found.note) == (n <= 3)


@pytest.mark.parametrize(("n", "p"), [(5, 0.0625), (6, 0.03125), (8, 0.0078125)])
def test_least_p_of_wilcoxon(n: int, p: float) -> None:
    found = wilcoxon([2.0 * value for value in range(1, n + 1)], [float(value) for value in range(1, n + 1)])
    assert found.p == p
    assert ("can never fall below" in found.note) == (n <= 5)


def test_paired_differences_of_scalars() -> None:
    effect = paired_effect(pair(prompts(CANDIDATE), prompts(BASE)), "plain")
    assert effect is not None
    t, change = t_test(effect, "t"), change_of(effect)
    assert change.value == pytest.approx(0.135)
    assert effect.variance**0.5 == pytest.approx(0.0863134, abs=1e-7)
    assert (t.statistic, t.p) == pytest.approx((4.946017, 0.000795638), rel=1e-6)
    assert (change.low, change.high) == pytest.approx((0.0732551, 0.1967449), abs=1e-7)


def test_wilcoxon_with_ties_is_exact_and_its_approximation_named() -> None:
    exact = wilcoxon(CANDIDATE, BASE)
    assert (exact.statistic, exact.p, exact.note) == (1.5, 6 / 1024, "exact")
    rough = wilcoxon(CANDIDATE, BASE, exact_up_to=9)
    assert rough.p == pytest.approx(0.00792278, abs=1e-8)
    assert rough.note == "normal approximation"


def test_paired_logs_of_scalars() -> None:
    effect = paired_log_ratio(CANDIDATE, BASE)
    assert effect is not None
    change = change_of(effect)
    assert change.value == pytest.approx(0.0616175, abs=1e-7)
    assert (change.low, change.high) == pytest.approx((0.0338574, 0.0901229), abs=1e-7)
    assert t_test(effect, "t").p == pytest.approx(0.00064092, abs=1e-8)
    names = [test.name for test in compare_series(LENGTH, prompts(CANDIDATE), prompts(BASE)).tests]
    assert names == ["paired t, linearised log ratio", "Wilcoxon signed-rank", "paired t of logs"]


def test_paired_pooled_accept_length() -> None:
    found = compare_series(LENGTH, prompts(NEW_TOKENS, NEW_VERIFIES), prompts(BASE_TOKENS, BASE_VERIFIES))
    assert (found.theirs.value, found.ours.value) == pytest.approx((1.9977876, 2.2066015), abs=1e-7)
    assert found.change.value == pytest.approx(0.1045226, abs=1e-7)
    assert found.change.standard_error == pytest.approx(0.00754117, abs=1e-8)
    assert (found.change.low, found.change.high) == pytest.approx((0.0850012, 0.1243951), abs=1e-7)
    assert found.tests[0].p == pytest.approx(3.3757e-06, rel=1e-4)
    assert found.tests[1].p == 0.0078125
    assert (found.verdict, found.pairs, found.bootstrap) == ("improved", 8, None)


def test_paired_bootstrap_of_the_same() -> None:
    pairs = pair(prompts(NEW_TOKENS, NEW_VERIFIES), prompts(BASE_TOKENS, BASE_VERIFIES))
    found = paired_bootstrap(pairs, "log", 20_000, seed=7)
    assert (found.low, found.high) == pytest.approx((0.0891, 0.1197), abs=5e-5)
    assert found.value == pytest.approx(0.1045226, abs=1e-7)


def test_pairing_cuts_the_error() -> None:
    mine = of_figure(pooled_ratio(NEW_TOKENS, NEW_VERIFIES), "log")
    other = of_figure(pooled_ratio(BASE_TOKENS, BASE_VERIFIES), "log")
    assert mine is not None
    assert other is not None
    unpaired = welch(mine, other, "log")
    assert unpaired.standard_error == pytest.approx(0.0425866, abs=1e-7)
    assert t_test(unpaired, "t").p == pytest.approx(0.035, abs=5e-4)
    keys = [f"q{index}" for index in range(8)]
    ours, theirs = prompts(NEW_TOKENS, NEW_VERIFIES, keys=keys), prompts(BASE_TOKENS, BASE_VERIFIES)
    found = compare_series(LENGTH, ours, theirs)
    assert found.change.standard_error == pytest.approx(5.6 * 0.00754117, rel=0.01)
    assert found.pairs is None
    assert "compared as independent" in found.note


def test_pooled_is_not_the_mean_over_prompts() -> None:
    series = prompts([512, 512, 60, 512, 40], [200, 150, 40, 300, 20])
    each = ratios(alone(series))
    assert each == pytest.approx([2.56, 3.413333, 1.5, 1.706667, 2.0], abs=1e-6)
    assert mean(each).value == pytest.approx(2.236)
    found = compare_series(LENGTH, series, series)
    assert found.ours.value == pytest.approx(2.3042254, abs=1e-7)
    assert found.ours.standard_error == pytest.approx(0.3968211, abs=1e-7)


def test_runs() -> None:
    found = compare_series(THROUGHPUT, runs(*B), runs(*A))
    logs, ranks, plain = found.tests
    assert logs.p == pytest.approx(0.00947167, abs=1e-8)
    assert (found.change.low, found.change.high) == pytest.approx((0.0029203, 0.0148843), abs=1e-7)
    assert (ranks.statistic, ranks.p) == pytest.approx((24, 0.0158730), abs=1e-7)
    assert mann_whitney(A, B).statistic == 1
    assert (plain.statistic, plain.p) == pytest.approx((3.508232, 0.00956378), rel=1e-6)
    assert found.verdict == "equivalent"
    assert compare_series(THROUGHPUT, runs(*B), runs(*A), margin=0.01).verdict == "small change"


def test_plain_welch() -> None:
    mine, other = of_runs(B, "plain"), of_runs(A, "plain")
    assert mine is not None
    assert other is not None
    effect = welch(mine, other, "plain")
    assert effect.freedom == pytest.approx(7.143989, abs=1e-6)
    change = change_of(effect)
    assert (change.low, change.high) == pytest.approx((0.262978, 1.337022), abs=1e-6)


@pytest.mark.parametrize(
    ("ours", "margin", "p", "verdict"),
    [
        (C, 0.02, 4.334e-06, "equivalent"),
        (B, 0.02, 0.00158545, "equivalent"),
        (B, 0.01, 0.336959, "small change"),
        (NOISY, 0.02, 0.242789, "inconclusive"),
    ],
)
def test_equivalence(ours: tuple[float, ...], margin: float, p: float, verdict: str) -> None:
    found = compare_series(THROUGHPUT, runs(*ours), runs(*A), margin=margin)
    assert found.equivalence_p == pytest.approx(p, rel=1e-3)
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("ours", "low", "high", "error"),
    [(C, 0.9966196, 1.0038396, 0.00193738), (NOISY, 0.959312, 1.049828, 0.0212036)],
)
def test_the_90_percent_interval_goes_with_it(ours: tuple[float, ...], low: float, high: float, error: float) -> None:
    mine, other = of_runs(ours, "log"), of_runs(A, "log")
    assert mine is not None
    assert other is not None
    effect = welch(mine, other, "log")
    assert effect.standard_error == pytest.approx(error, rel=1e-5)
    change = change_of(effect, confidence=0.9)
    assert (change.low, change.high) == pytest.approx((low - 1, high - 1), abs=1e-6)
    p = equivalence_p(effect, 0.02)
    assert p is not None
    assert (p <= 0.05) == (low - 1 > -0.02 and high - 1 < 0.02)


def test_equivalence_looks_both_ways() -> None:
    low, high = math.log(0.98), math.log(1.02)
    for value, p in ((low, 0.5), (high, 0.5), (low + 0.01, 0.000526413), (high - 0.01, 0.000526413)):
        effect = Effect(scale="log", value=value, standard_error=0.002, freedom=8, samples=5, sides=2)
        expected = max(scipy.stats.t.sf((value - low) / 0.002, 8), scipy.stats.t.sf((high - value) / 0.002, 8))
        assert equivalence_p(effect, 0.02) == pytest.approx(expected)
        assert equivalence_p(effect, 0.02) == pytest.approx(p, rel=0.01)
    assert equivalence_p(effect, 1.5) == pytest.approx(0, abs=1e-12)


def test_three_against_three() -> None:
    found = compare_series(THROUGHPUT, runs(46.7, 50.2, 56.8), runs(90.1, 89.6, 90.4))
    _, ranks, plain = found.tests
    assert (plain.statistic, plain.p) == pytest.approx((-13.062994, 0.00553843), rel=1e-6)
    assert ranks.p == pytest.approx(0.1)
    assert ranks.note == "exact; 3 against 3 can never fall below p = 0.1"
    assert found.verdict == "regressed"
    assert "fewer than 5 runs a side" in found.note


def test_corrections() -> None:
    ps = [0.001, 0.012, 0.021, 0.04, 0.30]
    assert holm(ps) == pytest.approx([0.005, 0.048, 0.063, 0.08, 0.30])
    assert benjamini_hochberg(ps) == pytest.approx([0.005, 0.03, 0.035, 0.05, 0.30])
    assert holm(ps[::-1]) == pytest.approx([0.30, 0.08, 0.063, 0.048, 0.005])


def test_geometric_mean_of_speedups() -> None:
    assert geometric_mean([1.475, 1.783, 1.239, 1.673]).value == pytest.approx(1.5280151, abs=1e-7)


def test_mean_over_runs() -> None:
    found = mean(A)
    assert (found.value, found.standard_error) == pytest.approx((90.0, 0.1303841), abs=1e-7)
    assert (found.low, found.high) == pytest.approx((89.637996, 90.362004), abs=1e-6)


def test_the_spread_of_a_ratio_of_two_runs_as_hyperfine_tells_it() -> None:
    mine, other = of_runs(A, "plain"), of_runs(B, "plain")
    assert mine is not None
    assert other is not None
    relative = math.sqrt(sum((side.variance or 0.0) / side.centre**2 for side in (mine, other)))
    ratio = mine.centre / other.centre
    assert (ratio, ratio * relative) == pytest.approx((0.9911894, 0.0055824), abs=1e-7)
    logs, other_logs = of_runs(A, "log"), of_runs(B, "log")
    assert logs is not None
    assert other_logs is not None
    assert math.sqrt(welch(logs, other_logs, "log").variance) == pytest.approx(relative, rel=1e-3)
