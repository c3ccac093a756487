"""Baselines as text."""

from collections.abc import Collection

from orchestrator.compare.matching import case_words
from orchestrator.records import Baseline, BaselineEntry
from orchestrator.records.measurement import MeasurementSet
from orchestrator.report.lines import wrapped
from orchestrator.report.measured_text import measured_text
from orchestrator.report.moments import moment
from orchestrator.report.shown import visible
from orchestrator.report.table import table


def baselines_text(
    baselines: tuple[Baseline, ...],
    unreadable: tuple[tuple[str, str], ...] = (),
    elsewhere: Collection[str] = (),
    width: int = 110,
) -> str:
    """A line a baseline, or a sentence each where a line is too long; unreadable ones last, with the reason.

    `elsewhere`: names that the project does not have, from the user's own folder.
    """
    if not baselines and not unreadable:
        return "no baselines yet; `eagle3-remote baseline set NAME RUN` makes one"
    head = ["name", "means", "set (UTC)", "by", "note"]
    lines = table([head, *(_cells(one, elsewhere) for one in baselines)]) if baselines else []
    if max(map(len, lines), default=0) > width:
        lines = [line for one in baselines for line in wrapped(_sentence(one, elsewhere), width)]
    for name, problem in unreadable:
        lines += wrapped(visible(f"unreadable: {name}: {problem}", ""), width)
    if elsewhere:
        lines.append("+ of this user, not of the project")
    return "\n".join(lines)


def baseline_text(baseline: Baseline | None, measured: MeasurementSet, width: int) -> str:
    """What a baseline means now; None = a published number, which has no history."""
    told = measured_text(measured, width)
    if baseline is None:
        return told
    lines, moves = wrapped(_sentence(baseline), width), len(baseline.history)
    if moves > 1:
        lines += wrapped(f"{moves} moves; `eagle3-remote baseline history {baseline.name}` tells them", width)
    return "\n".join([*lines, "", told])


def history_text(baseline: Baseline, width: int = 110) -> str:
    """Everything it ever meant, newest first."""
    lines = [f"{baseline.name}, newest first"]
    for entry in reversed(baseline.history):
        said = f" - {entry.note}" if entry.note else ""
        words = f"{moment(entry.set_at_unix_s)} by {entry.source or 'unknown'}: {_meaning(entry)}{said}"
        lines += wrapped(words, width, "  ")
    return "\n".join(lines)


def _sentence(baseline: Baseline, elsewhere: Collection[str] = ()) -> str:
    """e.g. `plain: output_throughput_tok_s=90 tok/s, set 2026-11-30 09:09:41 UTC by me@laptop - no drafter`."""
    entry = baseline.current
    said = f" - {entry.note}" if entry.note else ""
    by = f"set {moment(entry.set_at_unix_s)} by {entry.source or 'unknown'}"
    return f"{_name(baseline, elsewhere)}: {_meaning(entry)}, {by}{said}"


def _name(baseline: Baseline, elsewhere: Collection[str]) -> str:
    return f"{baseline.name} +" if baseline.name in elsewhere else baseline.name


def _cells(baseline: Baseline, elsewhere: Collection[str]) -> list[str]:
    entry, name = baseline.current, _name(baseline, elsewhere)
    return [name, _meaning(entry), moment(entry.set_at_unix_s, zone=""), entry.source or "unknown", entry.note]


def _meaning(entry: BaselineEntry) -> str:
    if entry.run_id is not None:
        return f"run {entry.run_id}"
    numbers = ", ".join(f"{n.metric}={n.value:g}{f' {n.unit}' if n.unit else ''}" for n in entry.numbers)
    return numbers + (f" at {case_words(entry.load)}" if entry.load else "")
