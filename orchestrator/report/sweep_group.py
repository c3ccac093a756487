"""A sweep over several hosts on paper: how far each share is, and a table a class of hosts."""

import json
from collections.abc import Sequence
from typing import Any

from orchestrator.report.lines import wrapped
from orchestrator.report.moments import moment
from orchestrator.report.sweep_table import legend_text, rows_text, table_json
from orchestrator.report.sweep_text import ORDER, counted, failures_text, progress_json, progress_text
from orchestrator.sweep.class_tables import ClassTable
from orchestrator.sweep.group import Key, Part, counts, measured_twice
from orchestrator.sweep.points import words_of

SHOWN_TWICE = 10


def group_text(group_id: str, parts: Sequence[Part], missing: Sequence[str], width: int) -> str:
    """How far it is: all of it, then every share."""
    lines = _head(group_id, parts, missing, width)
    for part in parts:
        lines += ["", progress_text(part.share_id, f"{part.host} ({part.host_class})", part.job, part.progress, width)]
    return "\n".join(lines)


def group_json(group_id: str, parts: Sequence[Part], missing: Sequence[str]) -> dict[str, Any]:
    """The same as values."""
    found = counts(parts)
    return {
        "run_id": group_id,
        "phase": phase_of(parts),
        "planned": found.total(),
        "counts": {word: found[word] for word in ORDER},
        "shares": [
            {
                **progress_json(part.share_id, part.host, part.job, part.progress),
                "host_class": part.host_class,
                "launched": part.launched,
                "dead": part.is_dead,
                "problem": part.problem,
                "told_unix_s": part.told_unix_s,
            }
            for part in parts
        ],
        "measured_twice": [
            {"settings": json.loads(key.changes_json), "block": key.block, "baseline": key.is_baseline, "runs": runs}
            for key, runs in measured_twice(parts).items()
        ],
        "missing": list(missing),
    }


def report_text(
    group_id: str, parts: Sequence[Part], classes: Sequence[ClassTable], missing: Sequence[str], width: int
) -> str:
    """The report: a table a class, and of no class anything that is held against another."""
    lines = _head(group_id, parts, missing, width)
    for one in classes:
        names = ", ".join(table.host for table in one.tables)
        lines += ["", *wrapped(f"{one.host_class}: {names}", width)]
        for words in one.apart:
            lines += wrapped(f"OTHER MODELS: {words}", width, "  ")
        for words in one.other_software:
            lines += wrapped(f"OTHER SOFTWARE: {words}", width, "  ")
        for words in one.unknown:
            lines += wrapped(words, width, "  ")
        lines += rows_text(one.tables, width)
        for table in one.tables:
            for words in table.job.drift:
                lines += wrapped(
                    f"DRIFT on {table.host}: {words}; earlier and later measurements need not be alike", width, "  "
                )
            failures = failures_text(table.progress, table.job, width)
            lines += ["", f"Not measured on {table.host}:", *failures] if failures else []
    absent = sum(len(table.absent) for one in classes for table in one.tables)
    if absent:
        told = f"{absent} measured run{' is' if absent == 1 else 's are'} not on this laptop"
        lines += ["", *wrapped(f"{told}: `eagle3-remote sweep collect {group_id}` brings them home", width)]
    lines += legend_text([table for one in classes for table in one.tables], width, None)
    if any(table.metrics for one in classes for table in one.tables):
        lines += wrapped(
            "Every point is held against the plain decoding of its own host; figures of two classes, models or "
            "versions say nothing about each other.",
            width,
        )
    return "\n".join(lines)


def report_json(
    group_id: str, parts: Sequence[Part], classes: Sequence[ClassTable], missing: Sequence[str]
) -> dict[str, Any]:
    """The same as values."""
    told = group_json(group_id, parts, missing)
    told["classes"] = [
        {
            "host_class": one.host_class,
            "other_models": list(one.apart),
            "other_software": list(one.other_software),
            "unknown_models": list(one.unknown),
            "tables": [table_json(table) for table in one.tables],
        }
        for one in classes
    ]
    return told


def phase_of(parts: Sequence[Part]) -> str:
    """`going on` while any share may measure something; else `over`."""
    return "going on" if any(part.may_measure for part in parts) else "over"


def _head(group_id: str, parts: Sequence[Part], missing: Sequence[str], width: int) -> list[str]:
    hosts = len({part.host for part in parts})
    lines = [f"{group_id} over {hosts} host{'' if hosts == 1 else 's'}: {phase_of(parts)}"]
    lines += wrapped(f"points  {counted(counts(parts))}", width, "  ")
    for part in parts:
        if part.problem is not None:
            what = "is said to be dead" if part.is_dead else "does not answer"
            lines += wrapped(f"{part.host} {what}, {part.share_id} {_told(part)}: {part.problem}", width, "  ")
        elif not part.launched:
            lines += wrapped(f"{part.share_id} was never launched on {part.host}", width, "  ")
        elif part.is_recalled and part.may_measure:
            anew = f"`eagle3-remote sweep status {group_id}` asks anew"
            lines += wrapped(f"{part.share_id} on {part.host} {_told(part)}; {anew}", width, "  ")
    for words in missing:
        lines += wrapped(words, width, "  ")
    return [*lines, *_twice(parts, width)]


def _told(part: Part) -> str:
    if part.told_unix_s is None:
        return "as it was launched, never told since"
    return f"as it was told last, {moment(part.told_unix_s)}"


def _twice(parts: Sequence[Part], width: int) -> list[str]:
    found = measured_twice(parts)
    lines = wrapped(f"{len(found)} measured more than once; every measurement is kept:", width, "  ") if found else []
    for key, runs in list(found.items())[:SHOWN_TWICE]:
        lines += wrapped(f"{_words(key)}, block {key.block}: {', '.join(runs)}", width, "    ")
    if len(found) > SHOWN_TWICE:
        lines.append(f"    and {len(found) - SHOWN_TWICE} more; --json has them all")
    return lines


def _words(key: Key) -> str:
    return words_of(json.loads(key.changes_json), is_baseline=key.is_baseline)
