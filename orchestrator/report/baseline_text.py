"""Baselines as text."""

from orchestrator.records import Baseline, BaselineEntry
from orchestrator.report.moments import moment
from orchestrator.report.table import table


def baselines_text(baselines: tuple[Baseline, ...], unreadable: tuple[tuple[str, str], ...] = ()) -> str:
    """A line a baseline; those that cannot be read are named at the end with the reason."""
    if not baselines and not unreadable:
        return "no baselines yet; `eagle3-remote baseline set NAME RUN` makes one"
    head = ["name", "means", "set (UTC)", "by", "note"]
    lines = table([head, *(_baseline_cells(baseline) for baseline in baselines)]) if baselines else []
    return "\n".join([*lines, *(f"unreadable: {name}: {problem}" for name, problem in unreadable)])


def baseline_text(baseline: Baseline) -> str:
    """One baseline with everything it ever meant, newest first."""
    lines = [f"{baseline.name}, newest first"]
    for entry in reversed(baseline.history):
        said = f" - {entry.note}" if entry.note else ""
        lines.append(f"  {moment(entry.set_at_unix_s)} by {entry.source or 'unknown'}: {_meaning(entry)}{said}")
    return "\n".join(lines)


def _baseline_cells(baseline: Baseline) -> list[str]:
    entry = baseline.current
    return [baseline.name, _meaning(entry), moment(entry.set_at_unix_s), entry.source or "unknown", entry.note]


def _meaning(entry: BaselineEntry) -> str:
    if entry.run_id is not None:
        return f"run {entry.run_id}"
    return ", ".join(f"{n.metric}={n.value:g}{f' {n.unit}' if n.unit else ''}" for n in entry.numbers)
