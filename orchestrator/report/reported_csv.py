"""Every figure and every change of a report as CSV (RFC 4180), a line each; unknown is empty.

`kind` is `figure` (one run) or `change` (`run` against `against`: ratio minus 1, for shares the difference). Numbers
are in base units. Text that a spreadsheet would take for a formula begins with an apostrophe.
"""

import csv
import io
from collections.abc import Iterator

from orchestrator.compare.stats import CONFIDENCE
from orchestrator.report.diff_words import definition, p_value
from orchestrator.report.document.figures import case_words, figure
from orchestrator.report.document.subject import Reported
from orchestrator.report.moments import moment
from orchestrator.report.shown import visible

HEAD = (
    "kind", "run", "against", "case", "metric", "unit", "level", "n", "n_against", "value", "low", "high", "confidence",
    "verdict", "p", "margin", "measured_utc", "tool", "host", "no_measurement_because", "definition",
)  # fmt: skip
_FORMULA = "=+-@\t\r"
Cell = str | float | int | None


def reported_csv(reported: Reported) -> str:
    """The whole table with its head."""
    out = io.StringIO()
    writer = csv.DictWriter(out, HEAD)
    writer.writeheader()
    for row in (*_figures(reported), *_changes(reported)):
        writer.writerow({key: _safe(value) for key, value in row.items()})
    return out.getvalue()


def _figures(reported: Reported) -> Iterator[dict[str, Cell]]:
    for subject in reported.subjects:
        measured = subject.measured
        for one in measured.measurements:
            if not one.series:  # a load of which nothing came back is named all the same
                yield {
                    "kind": "figure",
                    "run": measured.run_id,
                    "case": case_words(one.case),
                    "measured_utc": moment(measured.created_unix_s, zone="", unknown=""),
                    "tool": measured.tool,
                    "host": measured.host,
                    "no_measurement_because": "; ".join(one.invalid),
                }
            for series in one.series:
                found = figure(series, one)
                yield {
                    "kind": "figure",
                    "run": measured.run_id,
                    "case": case_words(one.case),
                    "metric": series.metric,
                    "unit": series.unit,
                    "level": series.level,
                    "n": found.n,
                    "value": found.estimate.value,
                    "low": found.estimate.low,
                    "high": found.estimate.high,
                    "confidence": None if found.estimate.low is None else CONFIDENCE,
                    "measured_utc": moment(measured.created_unix_s, zone="", unknown=""),
                    "tool": measured.tool,
                    "host": measured.host,
                    "no_measurement_because": "; ".join(one.invalid),
                    "definition": series.definition,
                }


def _changes(reported: Reported) -> Iterator[dict[str, Cell]]:
    for found in reported.comparisons:
        for case in found.cases:
            for one in case.comparisons:
                yield {
                    "kind": "change",
                    "run": found.ours_label,
                    "against": found.theirs_label,
                    "case": case_words(case.case),
                    "metric": one.metric.name,
                    "unit": "share" if one.metric.change == "difference" else "ratio",
                    "level": one.level,
                    "n": one.pairs if one.pairs is not None else one.n_ours,
                    "n_against": one.pairs if one.pairs is not None else one.n_theirs,
                    "value": one.change.value,
                    "low": one.change.low,
                    "high": one.change.high,
                    "confidence": None if one.change.low is None else CONFIDENCE,
                    "verdict": one.verdict,
                    "p": p_value(one),
                    "margin": one.margin,
                    "definition": definition(case, one.metric.name),
                }


def _safe(value: Cell) -> Cell:
    if not isinstance(value, str):
        return value
    text = visible(value, kept="")
    return f"'{text}" if text.startswith(tuple(_FORMULA)) else text
