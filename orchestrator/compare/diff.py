"""Two runs, or a run and typed numbers, compared metric by metric; no verdict without an interval.

With the change oriented so that more is better, its 95 % interval and a practical margin m: all above +m is improved,
all below -m regressed, all within equivalent, anything else inconclusive; m is 1 point or, for lengths, 2 %.
Not covered: several comparisons at once (the primary metrics are few and each is judged by itself).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.compare.figures import ReadingFigures, first_step_sums, mean_sums, same_rows, walk_sums
from orchestrator.compare.stats import (
    Estimate,
    bounded,
    paired_difference,
    paired_ratio,
    pooled_ratio,
    unpaired_difference,
    unpaired_ratio,
)
from orchestrator.records import BaselineNumber

Verdict = Literal["improved", "regressed", "equivalent", "inconclusive", "cannot tell", "not comparable"]
Sums = tuple[list[int], list[int]]
MARGIN_SHARE = 0.01
MARGIN_LENGTH = 0.02


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """A standalone run, as far as a comparison needs it."""

    run_id: str
    best: ReadingFigures
    declared: ReadingFigures | None
    """What serving would feed; None where that is unknown."""
    circumstances: Mapping[str, str] = field(default_factory=dict)
    """What should be alike on both sides, in words: target, rows, dtype, device."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One figure of a run that can be compared, by row: y of x."""

    name: str
    kind: Literal["share", "length"]
    reading: ReadingFigures
    sums: Sums
    primary: bool

    @property
    def estimate(self) -> Estimate:
        """The figure with its interval over rows."""
        least, most = (0, 1) if self.kind == "share" else (1, self.reading.steps + 1)
        return bounded(pooled_ratio(*self.sums), least, most)


@dataclass(frozen=True, kw_only=True)
class DiffLine:
    """One metric, both sides, and what the difference amounts to."""

    metric: str
    kind: Literal["share", "length", "number"]
    run: float | None
    baseline: float | None
    change: Estimate | None
    """Share: difference; length: relative difference."""
    verdict: Verdict
    primary: bool = False
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Diff:
    """A whole comparison."""

    run_id: str
    against: str
    """The baseline's run id, or `typed numbers`."""
    lines: tuple[DiffLine, ...]
    notes: tuple[str, ...]
    verdict: Verdict


def metrics_of(run: MeasuredRun) -> dict[str, Metric]:
    """Every metric of a run by name: `declared.*` is what serving would see, `best.*` the reading that fits best."""
    found: dict[str, Metric] = {}
    for role, reading in (("declared", run.declared), ("best", run.best)):
        if reading is None:
            continue
        served = role == "declared" or run.declared is None
        rows = reading.counts
        for name, kind, sums, primary in (
            ("first_step_accuracy", "share", first_step_sums(reading), role == "best"),
            ("accept_length_walk", "length", walk_sums(reading), served),
            ("accept_length_mean", "length", mean_sums(reading), False),
        ):
            key = f"{role}.{name}"
            found[key] = Metric(name=key, kind=kind, reading=reading, sums=sums, primary=primary)  # type: ignore[arg-type]
        for step in range(1, reading.steps):
            sums = ([row.conditional_hits[step] for row in rows], [row.conditional_n[step] for row in rows])
            key = f"{role}.step{step + 1}_acceptance"
            found[key] = Metric(name=key, kind="share", reading=reading, sums=sums, primary=False)
    return found


def diff_runs(run: MeasuredRun, baseline: MeasuredRun) -> Diff:
    """Compare two runs: paired by row where their rows are the same, else unpaired, with a note."""
    ours, theirs = metrics_of(run), metrics_of(baseline)
    lines = [_line(metric, theirs.get(name)) for name, metric in ours.items()]
    lines += [
        DiffLine(
            metric=name,
            kind=metric.kind,
            run=None,
            baseline=metric.estimate.value,
            change=None,
            verdict="not comparable",
            note="this run has no such figure",
        )
        for name, metric in theirs.items()
        if name not in ours
    ]
    notes = [
        f"{key}: {run.circumstances.get(key, 'unknown')} in this run, {value} in the baseline"
        for key, value in baseline.circumstances.items()
        if run.circumstances.get(key) != value
    ]
    if not same_rows(run.best, baseline.best):
        notes.append("the two runs were not measured on the same rows: compared unpaired, intervals are wider")
    return Diff(
        run_id=run.run_id,
        against=baseline.run_id,
        lines=tuple(lines),
        notes=tuple(notes),
        verdict=_overall(lines),
    )


def diff_numbers(run: MeasuredRun, numbers: Sequence[BaselineNumber]) -> Diff:
    """Compare a run with typed numbers, which have no uncertainty of their own."""
    ours = metrics_of(run)
    lines = [_number_line(ours, number) for number in numbers]
    notes = [line.note for line in lines if line.note]
    return Diff(
        run_id=run.run_id,
        against="typed numbers",
        lines=tuple(lines),
        notes=tuple(notes),
        verdict=_overall(lines),
    )


def judge(change: Estimate, margin: float) -> Verdict:
    """The verdict on one oriented change."""
    if change.low is None or change.high is None:
        return "cannot tell"
    if change.low > margin:
        return "improved"
    if change.high < -margin:
        return "regressed"
    return "equivalent" if -margin < change.low and change.high < margin else "inconclusive"


def _line(ours: Metric, theirs: Metric | None) -> DiffLine:
    depth = None if theirs is None else theirs.reading.steps
    if theirs is None or (ours.kind == "length" and depth != ours.reading.steps):
        note = "the baseline has no such figure" if depth is None else f"the baseline followed {depth} steps"
        return DiffLine(
            metric=ours.name,
            kind=ours.kind,
            run=ours.estimate.value,
            baseline=None if theirs is None else theirs.estimate.value,
            change=None,
            verdict="not comparable",
            primary=ours.primary,
            note=note,
        )
    change = _change(ours, theirs)
    return DiffLine(
        metric=ours.name,
        kind=ours.kind,
        run=ours.estimate.value,
        baseline=theirs.estimate.value,
        change=change,
        verdict=judge(change, _margin(ours.kind)),
        primary=ours.primary,
    )


def _change(ours: Metric, theirs: Metric) -> Estimate:
    paired = same_rows(ours.reading, theirs.reading)
    if ours.kind == "length":
        return paired_ratio(ours.sums, theirs.sums) if paired else unpaired_ratio(ours.estimate, theirs.estimate)
    return paired_difference(ours.sums, theirs.sums) if paired else unpaired_difference(ours.estimate, theirs.estimate)


def _number_line(ours: Mapping[str, Metric], number: BaselineNumber) -> DiffLine:
    metric = ours.get(number.metric)
    if metric is None:
        return DiffLine(
            metric=number.metric,
            kind="number",
            run=None,
            baseline=number.value,
            change=None,
            verdict="not comparable",
            primary=True,
            note=f"this run has no {number.metric}; it has {', '.join(ours)}",
        )
    change = _shifted(metric.estimate, number.value, metric.kind)
    return DiffLine(
        metric=number.metric,
        kind=metric.kind,
        run=metric.estimate.value,
        baseline=number.value,
        change=change,
        verdict=judge(change, _margin(metric.kind)),
        primary=True,
    )


def _shifted(estimate: Estimate, number: float, kind: str) -> Estimate:
    """The estimate minus the number, or relative to it."""

    def moved(value: float | None) -> float | None:
        if value is None or (kind == "length" and number <= 0):
            return None
        return value / number - 1 if kind == "length" else value - number

    return Estimate(
        value=moved(estimate.value),
        low=moved(estimate.low),
        high=moved(estimate.high),
        confidence=estimate.confidence,
        rows=estimate.rows,
    )


def _margin(kind: str) -> float:
    return MARGIN_LENGTH if kind == "length" else MARGIN_SHARE


def _overall(lines: Sequence[DiffLine]) -> Verdict:
    """The primary metrics decide: one regression is a regression, whatever else improved."""
    verdicts = [line.verdict for line in lines if line.primary and line.verdict != "not comparable"]
    order: tuple[Verdict, ...] = ("regressed", "improved", "cannot tell", "inconclusive", "equivalent")
    return next((verdict for verdict in order if verdict in verdicts), "not comparable")
