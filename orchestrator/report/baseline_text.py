"""Baselines as text."""

from collections.abc import Collection

from orchestrator.records import Baseline, BaselineEntry
from orchestrator.records.measurement import MeasurementSet
from orchestrator.report.measured_text import measured_text
from orchestrator.report.moments import moment
from orchestrator.report.shown import visible
from orchestrator.report.table import table


def baselines_text(
    baselines: tuple[Baseline, ...], unreadable: tuple[tuple[str, str], ...] = (), elsewhere: Collection[str] = ()
) -> str:
    """A line a baseline; those that cannot be read are named at the end with the reason.

    `elsewhere`: names that the project does not have, from the user's own folder.
    """
    if not baselines and not unreadable:
        return "no baselines yet; `eagle3-remote baseline set NAME RUN` makes one"
    head = ["name", "means", "set (UTC)", "by", "note"]
    lines = table([head, *(_cells(baseline, elsewhere) for baseline in baselines)]) if baselines else []
    lines += [visible(f"unreadable: {name}: {problem}", "") for name, problem in unreadable]
    if elsewhere:
        lines.append("+ of this user, not of the project")
    return "\n".join(lines)


def baseline_text(baseline: Baseline | None, measured: MeasurementSet, width: int) -> str:
    """What a baseline means now; None = a published number, which has no history."""
    told = measured_text(measured, width)
    if baseline is None:
        return told
    entry, moves = baseline.current, len(baseline.history)
    said = f" - {entry.note}" if entry.note else ""
    head = f"{baseline.name}: {_meaning(entry)}, set {moment(entry.set_at_unix_s)} by {entry.source or 'unknown'}{said}"
    more = "" if moves == 1 else f"\n{moves} moves; `eagle3-remote baseline history {baseline.name}` tells them"
    return f"{head}{more}\n\n{told}"


def history_text(baseline: Baseline) -> str:
    """Everything it ever meant, newest first."""
    lines = [f"{baseline.name}, newest first"]
    for entry in reversed(baseline.history):
        said = f" - {entry.note}" if entry.note else ""
        lines.append(f"  {moment(entry.set_at_unix_s)} by {entry.source or 'unknown'}: {_meaning(entry)}{said}")
    return "\n".join(lines)


def _cells(baseline: Baseline, elsewhere: Collection[str]) -> list[str]:
    entry = baseline.current
    name = f"{baseline.name} +" if baseline.name in elsewhere else baseline.name
    return [name, _meaning(entry), moment(entry.set_at_unix_s, zone=""), entry.source or "unknown", entry.note]


def _meaning(entry: BaselineEntry) -> str:
    if entry.run_id is not None:
        return f"run {entry.run_id}"
    return ", ".join(f"{n.metric}={n.value:g}{f' {n.unit}' if n.unit else ''}" for n in entry.numbers)
