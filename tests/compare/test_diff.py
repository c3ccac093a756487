import pytest

from orchestrator.compare.baseline import metric_kind
from orchestrator.compare.diff import MeasuredRun, Verdict, diff_numbers, diff_runs, judge, metrics_of
from orchestrator.compare.figures import ReadingFigures, reading_figures
from orchestrator.compare.stats import Estimate
from orchestrator.records import BaselineNumber
from tests.support.made_results import made_readings

NAME = "slots 0,1,2 offset +1"


def figures(share: float, *, rows: int = 12, steps: int = 3) -> ReadingFigures:
    row_facts, hits, _ = made_readings({((0, 1, 2), 1): share}, rows=rows, steps=steps)
    return reading_figures(NAME, row_facts, hits)


def run(share: float, *, rows: int = 12, steps: int = 3, declared: bool = True) -> MeasuredRun:
    best = figures(share, rows=rows, steps=steps)
    return MeasuredRun(run_id=f"run-{share}", best=best, declared=best if declared else None)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.03, 0.05, "improved"),
        (-0.05, -0.03, "regressed"),
        (-0.01, 0.01, "equivalent"),
        (0.005, 0.015, "equivalent"),  # certain, and too small to matter
        (0.01, 0.05, "inconclusive"),
        (-0.05, 0.05, "inconclusive"),
        (None, None, "cannot tell"),
    ],
)
def test_the_verdict_follows_from_interval_and_margin(low: float | None, high: float | None, expected: Verdict) -> None:
    assert judge(Estimate(value=0.0, low=low, high=high, rows=9), margin=0.02) == expected


@pytest.mark.parametrize("steps", [1, 3, 16])
def test_a_typed_metric_is_known_as_what_a_run_reports(steps: int) -> None:
    reported = metrics_of(run(0.6, rows=1, steps=steps))
    assert {name: metric.kind for name, metric in reported.items()} == {name: metric_kind(name) for name in reported}
    for other in (
        "first_step_accuracy",
        "served.accept_length_walk",
        "best.step1_acceptance",
        "best.step17_acceptance",
    ):
        assert metric_kind(other) is None


def test_served_accept_length_and_best_accuracy_decide() -> None:
    primary = {name for name, metric in metrics_of(run(0.6)).items() if metric.primary}
    assert primary == {"declared.accept_length_walk", "best.first_step_accuracy"}
    unknown = {name for name, metric in metrics_of(run(0.6, declared=False)).items() if metric.primary}
    assert unknown == {"best.accept_length_walk", "best.first_step_accuracy"}


def test_the_same_rows_are_paired_and_others_are_not() -> None:
    paired, unpaired = diff_runs(run(0.7), run(0.6)), diff_runs(run(0.7, rows=11), run(0.6))
    assert paired.notes == ()
    assert any("same rows" in note for note in unpaired.notes)
    for diff in (paired, unpaired):
        assert _line(diff, "best.first_step_accuracy").change.low is not None
    itself = _line(diff_runs(run(0.7), run(0.7)), "best.accept_length_walk").change
    assert (itself.low, itself.high) == (0.0, 0.0)  # only a paired comparison with itself has no width


def test_accept_lengths_of_other_depths_are_not_comparable_but_accuracies_are() -> None:
    diff = diff_runs(run(0.8, steps=4), run(0.5, steps=3))
    length = _line(diff, "declared.accept_length_walk")
    assert length.verdict == "not comparable"
    assert "followed 3 steps" in length.note
    assert _line(diff, "best.first_step_accuracy").verdict == "improved"
    assert _line(diff, "best.step4_acceptance").note == "the baseline has no such figure"
    assert diff.verdict == "improved"


def test_figures_that_only_the_baseline_has_are_not_dropped() -> None:
    diff = diff_runs(run(0.7, declared=False), run(0.7))
    missing = _line(diff, "declared.accept_length_walk")
    assert (missing.verdict, missing.run) == ("not comparable", None)


def test_numbers_are_compared_by_the_runs_own_interval() -> None:
    mine = run(0.7)
    length = metrics_of(mine)["declared.accept_length_walk"].estimate.value
    assert length is not None
    for value, expected in ((length / 2, "improved"), (length * 2, "regressed")):
        number = BaselineNumber(metric="declared.accept_length_walk", value=value)
        assert diff_numbers(mine, [number]).verdict == expected
    zero = BaselineNumber(metric="declared.accept_length_walk", value=0.0)
    assert diff_numbers(mine, [zero]).verdict == "cannot tell"
    share = BaselineNumber(metric="best.first_step_accuracy", value=0.1)
    assert diff_numbers(mine, [share]).verdict == "improved"


def test_one_regression_outweighs_an_improvement() -> None:
    numbers = [
        BaselineNumber(metric="declared.accept_length_walk", value=1.0),
        BaselineNumber(metric="best.first_step_accuracy", value=0.99),
    ]
    assert diff_numbers(run(0.7), numbers).verdict == "regressed"


def _line(diff, name: str):  # type: ignore[no-untyped-def]
    return next(line for line in diff.lines if line.metric == name)
