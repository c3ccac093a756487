"""A diagnosis as a screen of text, as Markdown and as JSON; and what of it is private."""

import dataclasses
import getpass
from typing import Any

from orchestrator.diagnosing.applying import COMPARING, Applied
from orchestrator.diagnosing.walk import Diagnosed
from orchestrator.errors import Eagle3Error
from orchestrator.report.decision_json import decision_json
from orchestrator.report.decision_markdown import decision_markdown
from orchestrator.report.decision_text import decision_text
from orchestrator.report.diff_json import diff_json
from orchestrator.report.diff_markdown import diff_markdown
from orchestrator.report.diff_text import diff_text
from orchestrator.report.redaction import Private, Redaction


def as_text(found: Diagnosed, applied: Applied | Eagle3Error | None, width: int) -> str:
    """The decision on a screen, the stages below it, and before and after where the fix was applied, or why not."""
    parts = [decision_text(found.decision, width), "\n".join(_stages(found))]
    if isinstance(applied, Eagle3Error):
        parts.append(_not_applied(applied))
    elif applied is not None:
        parts.append(f"corrected drafter: {applied.folder}")
        parts += [diff_text(one, COMPARING, width) for one in applied.compared]
        parts += [] if applied.compared else [not_compared(applied)]
    return "\n\n".join(parts)


def as_markdown(found: Diagnosed, applied: Applied | Eagle3Error | None) -> str:
    """The decision with everything that it rests on."""
    parts = [decision_markdown(found.decision)]
    if isinstance(applied, Applied):
        after = diff_markdown(applied.compared, COMPARING) if applied.compared else not_compared(applied)
        parts.append(f"### Before and after the fix\n\n{after}")
    return "\n".join(parts)


def as_json(found: Diagnosed, applied: Applied | Eagle3Error | None) -> dict[str, Any]:
    """The decision, its stages, and before and after."""
    why = {name: error.message for name, error in found.results.failures.items()}
    stages = {
        name: {"run_id": record.run_id, "phase": record.phase, "failure": why.get(name)}
        for name, record in found.results.records.items()
    }
    return {
        "diagnosis": found.asked.diagnosis_id,
        **decision_json(found.decision),
        "stages": stages,
        "left_out": {skipped.stage: skipped.reason for skipped in found.results.skipped},
        "not_applied": applied.message if isinstance(applied, Eagle3Error) else None,
        "applied": None
        if not isinstance(applied, Applied)
        else {
            "folder": applied.folder,
            "existed": applied.existed,
            "before": applied.before.run_id,
            "after": applied.after.run_id,
            "compared": diff_json(applied.compared, COMPARING) if applied.compared else None,
        },
    }


def redacted(found: Diagnosed, private: Redaction) -> Diagnosed:
    """The same with a decision that holds nothing private, to be told: half a path on a folded line looks like none."""
    return dataclasses.replace(found, decision=private.record(found.decision))


def redaction(found: Diagnosed) -> Redaction:
    """What takes hosts, accounts, addresses, paths and secrets out of texts and values about this diagnosis."""
    records = tuple(found.results.records.values())
    hosts = {name for record in records for name in (record.host.name, record.host.destination)}
    laptops = {record.spec.launched_by.partition("@")[2] for record in records}
    users = {getpass.getuser(), *(record.spec.launched_by.partition("@")[0] for record in records)}
    named = (found.asked.model, found.asked.draft, *found.asked.samples.values())
    paths = {path for path in named if isinstance(path, str) and path.startswith(("/", "~"))}
    private = Private(
        hosts=sorted({*hosts, *laptops} - {""}),
        users=sorted(users - {""}),
        paths=sorted(paths),
    )
    return Redaction(private=private)


def _stages(found: Diagnosed) -> list[str]:
    why = {name: f": {error.message}" for name, error in found.results.failures.items()}
    ran = [
        f"{name} ({record.phase}): run {record.run_id}{why.get(name, '')}"
        for name, record in found.results.records.items()
    ]
    out = [f"{skipped.stage}: left out, {skipped.reason}" for skipped in found.results.skipped]
    return ["stages:", *(f"  {line}" for line in (*ran, *out))]


def _not_applied(error: Eagle3Error) -> str:
    return f"nothing was applied: {error.message}"


def not_compared(applied: Applied) -> str:
    """Why there is no comparison of before and after."""
    ends = f"before {applied.before.phase}, after {applied.after.phase}"
    return f"before and after are not compared: one of the two runs did not come to its end ({ends})"
