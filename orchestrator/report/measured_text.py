"""Measurements as text, whoever made them: the figures, each with its n and interval, and what is unknown."""

from collections.abc import Sequence

from orchestrator.compare.definitions import read_out
from orchestrator.compare.matching import case_words
from orchestrator.records.measurement import Measurement, MeasurementSet, Series
from orchestrator.report.lines import wrapped
from orchestrator.report.moments import moment
from orchestrator.report.series_figure import count_of, figure_of, what_n_counts
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
    tool = "" if measured.tool == measured.origin else f" ({measured.tool})"
    lines = wrapped(f"{measured.run_id}: {ORIGINS[measured.origin]}{tool}", width)
    about = [("when", moment(measured.created_unix_s)), ("source", measured.source or UNKNOWN)]
    about += [("label", measured.label)] if measured.label else []
    about += [("host", measured.host)] if measured.host is not None else []
    for name, value in (*about, *_shared(measured.measurements)):
        lines += wrapped(f"{name:<9} {value}", width, "  ")
    for one in measured.measurements[:SHOWN_CASES]:
        lines += ["", *_case(one, width)]
    if len(measured.measurements) > SHOWN_CASES:
        lines += ["", f"and {len(measured.measurements) - SHOWN_CASES} more cases; --json has them all"]
    definitions = {item.metric: item.definition for one in measured.measurements for item in one.series}
    told = [f"{name}: {read_out(words)}" for name, words in definitions.items() if words]
    told += [f"unknown: {words}" for words in measured.unknown]
    lines += ["", *(line for text in told for line in wrapped(text, width))]
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
    told = [*(f"INVALID: {reason}" for reason in one.invalid), *(f"warning: {words}" for words in one.warnings)]
    return [*lines, *(line for text in told for line in wrapped(text, width, "  "))]


def _cells(series: Series) -> list[str]:
    figure, n = figure_of(series), count_of(series)
    told = UNKNOWN if n is None else str(n) if series.level == "summary" else what_n_counts(series, n)
    value = UNKNOWN if figure.value is None else f"{figure.value:.5g} {series.unit}".rstrip()
    known = figure.low is not None and figure.high is not None
    return [series.metric, value, f"{figure.low:.5g} to {figure.high:.5g}" if known else UNKNOWN, told]
