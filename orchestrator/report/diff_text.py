"""A comparison as a text and as JSON values: the verdict first, then a line a metric."""

import dataclasses
from typing import Any

from orchestrator.compare.diff import MARGIN_LENGTH, MARGIN_SHARE, Diff, DiffLine
from orchestrator.compare.stats import Estimate
from orchestrator.records import Baseline
from orchestrator.report.moments import moment
from orchestrator.report.table import table
from orchestrator.report.words import UNKNOWN, change, percent


def diff_text(diff: Diff, baseline: Baseline) -> str:
    """The whole comparison; metrics that decide the verdict are marked by `*`."""
    entry = baseline.current
    head = ["metric", "this run", "baseline", "change", "verdict"]
    rows = [head, *(_cells(line) for line in diff.lines)]
    noted = [f"{line.metric}: {line.note}" for line in diff.lines if line.note]
    notes = list(dict.fromkeys([*noted, *(note for note in diff.notes if not any(note in line for line in noted))]))
    about = f" ({entry.note})" if entry.note else ""
    return "\n".join(
        [
            f"{_verdict(diff)}: {diff.run_id} against {baseline.name}, {diff.against}{about}",
            f"baseline set {moment(entry.set_at_unix_s)} by {entry.source or UNKNOWN}",
            "",
            *table(rows),
            "",
            "* decides the verdict. Shares count response positions; accept lengths have the bonus token in.",
            "Intervals are over rows. Improved, regressed: beyond a margin; equivalent: within it. The margin is",
            f"{100 * MARGIN_SHARE:g} point for shares and {100 * MARGIN_LENGTH:g} % for lengths.",
            *(f"note: {note}" for note in notes),
        ]
    )


def diff_json(diff: Diff, baseline: Baseline) -> dict[str, Any]:
    """The same as values; unknown is None."""
    return {
        "report_version": 1,
        "verdict": diff.verdict,
        "run_id": diff.run_id,
        "baseline": {"name": baseline.name, **dataclasses.asdict(baseline.current)},
        "lines": [dataclasses.asdict(line) for line in diff.lines],
        "notes": list(diff.notes),
    }


def _verdict(diff: Diff) -> str:
    return "Cannot tell for want of rows" if diff.verdict == "cannot tell" else diff.verdict.capitalize()


def _cells(line: DiffLine) -> list[str]:
    name = f"{line.metric} *" if line.primary else line.metric
    return [name, _value(line, line.run), _value(line, line.baseline), _change(line, line.change), line.verdict]


def _value(line: DiffLine, value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return percent(value) if line.kind == "share" else f"{value:.4g}"


def _change(line: DiffLine, estimate: Estimate | None) -> str:
    return "-" if estimate is None else change(estimate, "points" if line.kind == "share" else "%")
