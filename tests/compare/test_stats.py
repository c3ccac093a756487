import math

import pytest

from orchestrator.compare.stats import (
    MIN_ROWS,
    paired_difference,
    paired_ratio,
    pooled_ratio,
    student_t_quantile,
    unpaired_difference,
    wilson,
)

BASE_TOKENS, BASE_VERIFIES = [256] * 6 + [180, 90], [128, 120, 142, 110, 134, 125, 95, 50]
NEW_TOKENS, NEW_VERIFIES = [256] * 6 + [175, 94], [112, 109, 128, 101, 119, 116, 85, 48]


def test_wilson_agrees_with_the_published_example() -> None:
    share = wilson(63, 215)
    assert (share.low, share.high) == pytest.approx((0.2362444, 0.3570685), abs=1e-7)
    assert share.value == 63 / 215


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (7, 7)])
def test_wilson_stays_within_zero_and_one_and_has_width_at_the_edges(hits: int, n: int) -> None:
    share = wilson(hits, n)
    assert share.low is not None
    assert share.high is not None
    assert 0.0 <= share.low < share.high <= 1.0


def test_wilson_of_nothing_is_unknown_and_nonsense_is_refused() -> None:
    assert wilson(0, 0).value is None
    with pytest.raises(ValueError, match="0 <= hits <= n"):
        wilson(3, 2)


def test_pooled_ratio_is_the_ratio_of_sums_with_the_linearised_error() -> None:
    estimate = pooled_ratio([512, 512, 60, 512, 40], [200, 150, 40, 300, 20])
    assert estimate.value == pytest.approx(2.3042254, abs=1e-7)
    assert estimate.standard_error == pytest.approx(0.3968211, abs=1e-7)


def test_paired_ratio_agrees_with_the_worked_example() -> None:
    change = paired_ratio((NEW_TOKENS, NEW_VERIFIES), (BASE_TOKENS, BASE_VERIFIES))
    assert change.value == pytest.approx(0.1045226, abs=1e-7)
    assert change.standard_error == pytest.approx(0.00754117, abs=1e-8)
    assert (change.low, change.high) == pytest.approx((0.0850012, 0.1243951), abs=1e-7)


def test_paired_difference_equals_the_paired_t_interval_when_rows_are_equally_long() -> None:
    base = [2.10, 2.35, 1.80, 2.60, 2.05, 2.45, 1.95, 2.20, 2.75, 2.15]
    new = [2.25, 2.40, 1.95, 2.55, 2.30, 2.65, 2.05, 2.32, 2.95, 2.33]
    change = paired_difference((new, [1] * 10), (base, [1] * 10))
    assert change.value == pytest.approx(0.135)
    assert (change.low, change.high) == pytest.approx((0.0732551, 0.1967449), abs=1e-7)


def test_a_clustered_interval_is_wider_than_one_that_takes_positions_as_independent() -> None:
    hits, n = [50, 0, 50, 0, 50, 0], [50] * 6  # all the variation lies between rows
    clustered, naive = pooled_ratio(hits, n), wilson(150, 300)
    assert clustered.low is not None
    assert naive.low is not None
    assert clustered.low < naive.low - 0.2


def test_few_rows_give_a_value_and_no_interval() -> None:
    rows = MIN_ROWS - 1
    change = paired_difference(([9] * rows, [10] * rows), ([1] * rows, [10] * rows))
    assert change.value == pytest.approx(0.8)
    assert change.low is None
    assert change.high is None


def test_rows_in_which_nothing_was_counted_are_no_rows() -> None:
    hits, n = [9, 8, 9, 7, 0, 0, 0], [10, 10, 10, 10, 0, 0, 0]
    assert pooled_ratio(hits, n).rows == 4
    assert pooled_ratio(hits, n).low is None
    assert pooled_ratio([], []).value is None
    assert paired_difference(([0], [0]), ([0], [0])).value is None
    assert paired_ratio(([0], [3]), ([1], [3])).value is None


def test_unequal_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="same rows"):
        paired_difference(([1, 2], [3, 3]), ([1], [3]))


def test_unpaired_difference_is_welch() -> None:
    a = pooled_ratio([90.1, 89.6, 90.4, 90.0, 89.9], [1] * 5)
    b = pooled_ratio([91.0, 90.2, 91.3, 90.6, 90.9], [1] * 5)
    change = unpaired_difference(b, a)
    assert (change.low, change.high) == pytest.approx((0.262978, 1.337022), abs=1e-6)
    assert unpaired_difference(a, pooled_ratio([1], [2])).low is None
    assert unpaired_difference(a, pooled_ratio([], [])).value is None


def test_unpaired_difference_of_constants_has_no_width() -> None:
    same = pooled_ratio([2] * 6, [1] * 6)
    assert unpaired_difference(same, same).high == 0.0


def test_t_quantile() -> None:
    assert student_t_quantile(0.975, 4) == pytest.approx(2.7764451, abs=1e-7)
    assert student_t_quantile(0.975, math.inf) == pytest.approx(1.959964, abs=1e-6)
