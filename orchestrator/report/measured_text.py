"""Measurements as text, whoever made them: the figures, each with its n and interval, and what is unknown."""

from collections.abc import Sequence

from orchestrator.compare.matching import case_words
from orchestrator.compare.metrics import metric_of
from orchestrator.compare.statistics.unpaired import estimate
from orchestrator.compare.stats import Estimate
from orchestrator.records.measurement import Measurement, MeasurementSet, Series
from orchestrator.report.moments import moment
from orchestrator.report.table import listed
from orchestrator.report.words import UNKNOWN

ORIGINS = {
    "own": "measured by this tool",
    "imported": "measured by another tool",
    "typed": "typed by somebody",
    "published": "published by others; not measured here",
}
SHOWN_CASES = 12


def measured_text(measured: MeasurementSet, width: int) -> str:
    """The whole set: where it comes from, then its cases; a set of many shows the first and counts the rest."""
    lines = [
        f"{measured.run_id}: {ORIGINS[measured.origin]} ({measured.tool})",
        f"  when      {moment(measured.created_unix_s)}",
        f"  source    {measured.source or UNKNOWN}",
    ]
    if measured.label:
        lines.append(f"  label     {measured.label}")
    if measured.host is not None:
        lines.append(f"  host      {measured.host}")
    shared = _shared(measured.measurements)
    lines += [f"  {name:<9} {value}" for name, value in shared]
    for one in measured.measurements[:SHOWN_CASES]:
        lines += ["", *_case(one, width)]
    if len(measured.measurements) > SHOWN_CASES:
        lines += ["", f"and {len(measured.measurements) - SHOWN_CASES} more cases; --json has them all"]
    definitions = {item.metric: item.definition for one in measured.measurements for item in one.series}
    lines += ["", *(f"{name}: {words}" for name, words in definitions.items() if words)]
    lines += [f"unknown: {words}" for words in measured.unknown]
    return "\n".join(lines).rstrip()


def _shared(measurements: Sequence[Measurement]) -> list[tuple[str, str]]:
    """The circumstances that are alike in all cases and known, the few that tell most."""
    names = ("target", "draft", "dataset", "gpu", "num_steps")
    found = []
    for name in names:
        values = {fact.value for one in measurements for fact in (*one.case, *one.hard, *one.soft) if fact.name == name}
        if len(values) == 1 and (value := next(iter(values))) is not None:
            found.append((name, value))
    return found


def _case(one: Measurement, width: int) -> list[str]:
    lines = [case_words(one.case) or "figures"]
    rows = [["metric", "figure", "95 % interval", "n"], *(_cells(series) for series in one.series)]
    lines += listed(rows, width)
    lines += [f"  INVALID: {reason}" for reason in one.invalid]
    return [*lines, *(f"  warning: {words}" for words in one.warnings)]


def _cells(series: Series) -> list[str]:
    figure = estimate_of(series)
    if series.level == "summary":
        n = UNKNOWN if series.n is None else str(series.n)
    else:
        sample = "repeat" if series.level == "run" else "conversation" if series.clusters else "prompt"
        n = f"{figure.rows} {sample}{'' if figure.rows == 1 else 's'}"
    value = UNKNOWN if figure.value is None else f"{figure.value:.5g} {series.unit}".rstrip()
    known = figure.low is not None and figure.high is not None
    return [series.metric, value, f"{figure.low:.5g} to {figure.high:.5g}" if known else UNKNOWN, n]


def estimate_of(series: Series) -> Estimate:
    """The series' figure; of a metric outside the catalogue only the plain one, without an interval."""
    metric = metric_of(series.metric)
    if metric is not None:
        return estimate(series, metric)
    total = sum(series.x) if series.x else float(len(series.y))
    return Estimate(value=sum(series.y) / total if total else None, rows=len(series.y))
