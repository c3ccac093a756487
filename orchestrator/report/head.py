"""The lines every report on a run has; in a file of its own because the code of figures takes 0.1 s to import."""

import textwrap

from orchestrator.flags import told_in_flags
from orchestrator.outcome import details_beside
from orchestrator.records import RunRecord
from orchestrator.report.moments import moment


def head(record: RunRecord, width: int = 100) -> list[str]:
    """Which run, where, when, and what went wrong: all there is to say about a run without figures."""
    lines = [
        ("run", f"{record.run_id}: {record.job_kind}, {record.phase}"),
        ("host", f"{record.host.name} ({record.host.destination})"),
        ("launched", f"{moment(record.created_unix_s)} by {record.launched_by}"),
        ("ended", moment(record.finished_unix_s) if record.state is None or record.state.is_terminal else "not over"),
        ("payload", record.payload_sha256[:12]),
    ]
    if record.job_kind == "sweep":
        lines.append(("points", f"`eagle3-remote sweep report {record.run_id}` shows what became of each"))
    failure = record.state.failure if record.state is not None else None
    if failure is not None:
        kind = record.job_kind
        lines += [
            ("failure", told_in_flags(kind, failure.message)),
            *(("", detail) for detail in details_beside(failure)),
        ]
        lines += [("hint", told_in_flags(kind, failure.hint))] if failure.hint else []
    return labelled(lines, width)


def brief_head(record: RunRecord, width: int) -> list[str]:
    """The same in two lines, below figures."""
    begun = f"{record.run_id}: {record.phase}, launched {moment(record.created_unix_s)} by {record.launched_by}"
    return labelled([("run", begun), ("host", f"{record.host.name} ({record.host.destination})")], width)


def labelled(lines: list[tuple[str, str]], width: int) -> list[str]:
    """Lines of `label  text`; a long text goes on under itself."""
    label_width = 12
    shown = []
    for label, text in lines:
        wrapped = textwrap.wrap(text, max(width - label_width, 40), break_long_words=False, break_on_hyphens=False)
        shown += [f"{label:<{label_width}}{wrapped[0] if wrapped else ''}".rstrip()]
        shown += [" " * label_width + line for line in wrapped[1:]]
    return shown
