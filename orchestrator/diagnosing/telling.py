"""A diagnosis as a screen of text, as Markdown and as JSON; and what of it is private."""

import dataclasses
import textwrap
from collections.abc import Callable
from typing import Any

from orchestrator.diagnosing.applying import COMPARING, Applied, UnprovenError
from orchestrator.diagnosing.stage_words import stage_lines, stage_rows, way_on
from orchestrator.diagnosing.walk import CERTAIN, USED_UP, Diagnosed
from orchestrator.diagnosis.decision.decision import Decision
from orchestrator.errors import Eagle3Error
from orchestrator.report.decision_json import decision_json
from orchestrator.report.decision_markdown import decision_markdown, safe, safe_table
from orchestrator.report.decision_text import MOST_LINES, decision_text, whole_decision_text
from orchestrator.report.diff_json import diff_json
from orchestrator.report.diff_markdown import diff_markdown
from orchestrator.report.diff_text import diff_text
from orchestrator.report.redaction import Redaction

TELLS = {
    "capture": "what the running server feeds",
    "serve": "what it accepts, how fast it is and what its template makes of messages (K16)",
}
"""Stages that a certain cause spares, and what they would have told."""
SCREEN_LINES = MOST_LINES - 1
"""Of a decision and its stages, but for the empty line between them."""


def as_text(
    found: Diagnosed,
    applied: Applied | Eagle3Error | None,
    width: int,
    *,
    whole: bool = False,
    private: Redaction | None = None,
) -> str:
    """The decision and its stages on one screen, and before and after where the fix was applied, or why not.

    `whole`: everything, however long. What is `private` goes from the stages before they are folded.
    """
    stages = _stages(found, width, private, whole=whole)
    decision = _decision(found)
    told = (
        whole_decision_text(decision, width)
        if whole
        else decision_text(decision, width, most=SCREEN_LINES - len(stages))
    )
    parts = [told, "\n".join(stages)]
    if isinstance(applied, Eagle3Error):
        parts.append("\n".join(textwrap.wrap(not_applied(applied), width)))
    elif applied is not None:
        parts.append(f"corrected drafter: {applied.folder}")
        parts += [diff_text(one, COMPARING, width) for one in applied.compared]
        parts += [] if applied.compared else [not_compared(applied)]
    return "\n\n".join(parts)


def _decision(found: Diagnosed) -> Decision:
    """Where stages were spared, failed or cut off, the way on is the same command, not the stages one by one."""
    is_cut_off = any(skipped.reason.startswith(USED_UP) for skipped in found.results.skipped)
    goes_on = any(record.phase != "succeeded" for record in found.results.records.values())
    is_same = bool(_spared(found) or goes_on or is_cut_off)
    return dataclasses.replace(found.decision, next_runs=()) if is_same else found.decision


def _spared(found: Diagnosed) -> list[str]:
    return [skipped.stage for skipped in found.results.skipped if skipped.reason == CERTAIN]


def as_markdown(found: Diagnosed, applied: Applied | Eagle3Error | None) -> str:
    """The decision with everything that it rests on."""
    parts = [decision_markdown(found.decision), *_stages_markdown(found)]
    if isinstance(applied, Eagle3Error):
        parts.append(f"### The fix\n\n{safe(not_applied(applied))}\n")
    elif applied is not None:
        after = diff_markdown(applied.compared, COMPARING) if applied.compared else not_compared(applied)
        parts.append(f"### Before and after the fix\n\n{after}")
    return "\n".join(parts)


def as_json(
    found: Diagnosed, applied: Applied | Eagle3Error | None, private: Redaction | None = None
) -> dict[str, Any]:
    """The decision, its stages, and before and after; what is `private` goes, but for the words of the format."""
    shown = found if private is None else redacted(found, private)
    clean: Callable[[Any], Any] = (lambda value: value) if private is None else private.values
    why = {name: error.message for name, error in found.results.failures.items()}
    stages = {
        name: {"run_id": clean(record.run_id), "phase": record.phase, "failure": clean(why.get(name))}
        for name, record in found.results.records.items()
    }
    return {
        "diagnosis": clean(found.asked.diagnosis_id),
        **decision_json(shown.decision),
        "stages": stages,
        "left_out": {skipped.stage: clean(skipped.reason) for skipped in found.results.skipped},
        "not_applied": clean(applied.message) if isinstance(applied, Eagle3Error) else None,
        "applied": clean(_applied_json(applied)),
    }


APPLIED = ("folder", "existed", "before", "after", "compared")
"""Keys of what was applied; null = it did not come so far, and `not_applied` says why."""


def _applied_json(applied: Applied | Eagle3Error | None) -> dict[str, Any] | None:
    if isinstance(applied, UnprovenError):
        return {**dict.fromkeys(APPLIED), "folder": applied.folder, "existed": applied.existed}
    if applied is None or isinstance(applied, Eagle3Error):
        return None
    return {
        "folder": applied.folder,
        "existed": applied.existed,
        "before": applied.before.run_id,
        "after": applied.after.run_id,
        "compared": diff_json(applied.compared, COMPARING) if applied.compared else None,
    }


def redacted(found: Diagnosed, private: Redaction) -> Diagnosed:
    """The same with a decision that holds nothing private, to be told: half a path on a folded line looks like none."""
    return dataclasses.replace(found, decision=private.record(found.decision))


def _stages(found: Diagnosed, width: int, private: Redaction | None, *, whole: bool) -> list[str]:
    """What ran, what came to nothing and why, and what is not known yet, with the command that tells."""
    results, clean = found.results, str if private is None else private.text
    rows = stage_rows(results, clean)
    home = [row.stage for row in rows if row.end == "succeeded"]
    lines = [] if not home else [f"stages: {', '.join(home)} (runs {clean(found.asked.diagnosis_id)}.*)"]
    lines += [*stage_lines(rows, CERTAIN, whole=whole), *way_on(results)]
    if spared := _spared(found):
        what = [TELLS[name] for name in spared if name in TELLS]
        pays = ["whether speculation pays"] if found.decision.place["pays"] == "unknown" else []
        unknown = ", ".join([*what, *pays])
        lines.append(f"not known yet: {unknown}. The cause is certain without it; the same command with --deep asks")
    if found.decision.named:  # where nothing is named, the decision lists all that was seen
        paid = [item.results[0].summary for item in found.decision.signals if item.axis == "pays"]
        is_open = found.decision.place["pays"] == "open"
        lines += [clean(f"whether speculation pays is open: {summary}") for summary in paid if is_open]
    return [part for line in lines for part in textwrap.wrap(line, width, subsequent_indent="  ")]


def _stages_markdown(found: Diagnosed) -> list[str]:
    """Every stage with its end and why, whole."""
    rows = [[row.stage, row.end, row.run or "-", row.why or "-"] for row in stage_rows(found.results)]
    if not rows:
        return []
    notes = [f"- {safe(text)}" for text in way_on(found.results)]
    return ["\n".join(["### Stages", "", *safe_table([["stage", "end", "run", "why"], *rows]), "", *notes]) + "\n"]


def not_applied(error: Eagle3Error) -> str:
    """Why no fix is proven; a folder that was written all the same is named."""
    if isinstance(error, UnprovenError):
        there = "it was there already" if error.existed else "written"
        return f"corrected drafter: {error.folder} ({there}), and not proven: {error.message}"
    return f"nothing was applied: {error.message}"


def not_compared(applied: Applied) -> str:
    """Why there is no comparison of before and after."""
    ends = f"before {applied.before.phase}, after {applied.after.phase}"
    return f"before and after are not compared: one of the two runs did not come to its end ({ends})"
