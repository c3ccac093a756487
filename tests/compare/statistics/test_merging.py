from dataclasses import replace

import pytest

from orchestrator.compare.metrics import METRICS
from orchestrator.compare.statistics import compare_series, merge_series
from orchestrator.errors import UsageError
from tests.support.made_series import LENGTH, number, prompts, runs


def test_each_run_is_one_sample_and_one_that_is_there_twice_counts_once() -> None:
    first, second = runs(90, 91, name="a"), runs(89, name="b")
    merged = merge_series([first, second, first])
    assert (merged.keys, merged.y) == (("a-0/1, mean of 2", "b-0/1"), (90.5, 89.0))
    assert merge_series([first]) is first
    assert merge_series([first, first]) is first


def test_the_interval_of_a_set_is_over_its_runs_not_over_their_repeats() -> None:
    """scipy 1.17.1, Welch on the logs of the six run means."""
    old, new = (
        merge_series([runs(0.995 * mean, 1.005 * mean, name=f"r{mean}") for mean in means])
        for means in ((100, 101, 102), (103, 104, 105))
    )
    found = compare_series(METRICS["output_throughput_tok_s"], new, old)
    assert (found.n_ours, found.n_theirs) == (3, 3)
    assert (found.change.low, found.change.high) == pytest.approx((0.0071658, 0.0527484), abs=5e-7)
    assert found.tests[0].p == pytest.approx(0.0213588, abs=5e-7)


def test_one_key_with_two_numbers_is_refused() -> None:
    with pytest.raises(UsageError, match="one number for `run-0/1`, found: 90 and 91"):
        merge_series([runs(90), runs(91)])


def test_prompts_are_means_over_the_runs_that_answered_them() -> None:
    merged = merge_series([prompts([10, 20], [5, 8]), prompts([14], [7]), prompts([30], [10], keys=["other"])])
    assert merged.keys == ("p0", "p1", "other")
    assert (merged.y, merged.x) == ((12.0, 20.0, 30.0), (6.0, 8.0, 10.0))
    assert merge_series([prompts([1, 0]), prompts([0, 0])]).y == (0.5, 0.0)


def test_asking_some_prompts_more_often_changes_no_figure() -> None:
    one = prompts([10, 90, 20, 33, 41, 7], [5, 30, 8, 11, 19, 4])
    again = prompts([10], [5])
    found = compare_series(LENGTH, merge_series([one, again, again]), one)
    assert (found.change.value, found.ours.value) == (0.0, found.theirs.value)


def test_conversations_stay_together() -> None:
    with_clusters = prompts([1, 2], clusters=["c", "c"])
    merged = merge_series([prompts([3], keys=["lone"]), with_clusters])
    assert merged.clusters == ("lone", "c", "c")


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (replace(runs(1, name="b"), unit="req/s"), "unit"),
        (replace(runs(1, name="b"), definition="otherwise"), "definition"),
        (replace(runs(1, name="b"), metric="total_throughput_tok_s"), "metric"),
        (number(90), "kind of samples"),
    ],
)
def test_other_quantities_are_refused(other, what: str) -> None:
    with pytest.raises(UsageError, match=f"one {what} in a set"):
        merge_series([runs(90), other])


def test_numbers_without_samples_are_no_set() -> None:
    with pytest.raises(UsageError, match="2 numbers without"):
        merge_series([number(90), number(91)])
    with pytest.raises(UsageError, match="denominator"):
        merge_series([prompts([1]), prompts([1], [1])])
    with pytest.raises(ValueError, match="found none"):
        merge_series([])
