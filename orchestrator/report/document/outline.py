"""From runs and comparisons to the document: which sections there are, and in which order."""

import re

from orchestrator.report.document.acceptance import acceptance_section
from orchestrator.report.document.blocks import Document, Section
from orchestrator.report.document.circumstances import arguments_section, environment_section
from orchestrator.report.document.compared import compared_section
from orchestrator.report.document.economy import economy_section
from orchestrator.report.document.figures import named
from orchestrator.report.document.headline import headline
from orchestrator.report.document.load import load_section
from orchestrator.report.document.runs import ORIGINS, runs_section
from orchestrator.report.document.subject import Reported, in_time
from orchestrator.report.document.trend import trend_section
from orchestrator.report.document.values import values
from orchestrator.report.document.wirings import advice_section, wiring_section
from orchestrator.report.moments import moment
from orchestrator.report.words import UNKNOWN


def document(reported: Reported, *, made_unix_s: float | None, tool: str) -> Document:
    """The whole report. `made_unix_s`: when it was made; `tool`: who made it, with its version."""
    sentence, tone = headline(reported)
    sections: list[Section | None] = []
    alone = reported.subjects[0] if len(reported.subjects) == 1 else None
    if alone is not None:
        sections += [advice_section(alone), wiring_section(alone)]
    sections += [
        compared_section(reported.comparisons, reported.asked),
        economy_section(reported),
        trend_section(reported),
        load_section(reported),
        acceptance_section(reported),
        runs_section(reported),
        environment_section(reported),
        arguments_section(reported),
    ]
    return Document(
        title=_title(reported),
        file_stem=_file_stem(reported),
        verdict=sentence,
        tone=tone,
        about=f"{_about(reported)} Report made {moment(made_unix_s)} by {tool}.",
        sections=tuple(section for section in sections if section is not None),
        values=values(reported),
        tool=tool,
    )


def _title(reported: Reported) -> str:
    names = [named(subject.run_id) for subject in reported.subjects]
    if len(names) == 1:
        return names[0]
    return " and ".join(names) if len(names) == 2 else f"{len(names)} runs"


def _file_stem(reported: Reported) -> str:
    """e.g. `report-drafter-2`, `report-300-runs-to-bench-0299`."""
    names = [subject.run_id for subject in in_time(reported.subjects)]
    told = names[0] if len(names) == 1 else f"{len(names)}-runs-to-{names[-1]}"
    return re.sub(r"[^A-Za-z0-9.]+", "-", f"report-{told}")[:100].strip("-.")


def _about(reported: Reported) -> str:
    runs = in_time(reported.subjects)
    if len(runs) == 1:
        one = runs[0].measured
        if one.origin in ("typed", "published"):
            told = ", ".join(part for part in (one.source, one.label) if part)
            return f"{ORIGINS[one.origin].capitalize()} ({told or UNKNOWN}), {moment(one.created_unix_s)}."
        return f"{one.job_kind} run of {one.tool} on {one.host or 'an unknown host'}, {moment(one.created_unix_s)}."
    first, last = moment(runs[0].measured.created_unix_s), moment(runs[-1].measured.created_unix_s)
    return f"{len(runs)} runs from {first} to {last}."
