"""A diagnosis as one self-contained page: the chain of evidence, its stages, and before and after the fix."""

import dataclasses

from orchestrator.diagnosing.applying import COMPARING, Applied
from orchestrator.diagnosing.stage_words import stage_rows
from orchestrator.diagnosing.telling import not_applied, not_compared
from orchestrator.diagnosing.walk import Diagnosed
from orchestrator.errors import Eagle3Error
from orchestrator.report.document.blocks import Document, Section, Table, Text
from orchestrator.report.document.compared import compared_section
from orchestrator.report.document.decision import decision_document
from orchestrator.report.html.page import html_page
from orchestrator.report.redaction import Redaction


def as_html(
    found: Diagnosed,
    applied: Applied | Eagle3Error | None,
    private: Redaction | None,
    *,
    made_unix_s: float | None,
    tool: str,
) -> str:
    """The whole file; what is private goes out of the document before it becomes markup."""
    base = decision_document(found.decision, name=found.asked.diagnosis_id, made_unix_s=made_unix_s, tool=tool)
    sections = (*base.sections, _stages(found), *_applied(applied))
    document: Document = dataclasses.replace(base, sections=sections)
    return html_page(document if private is None else private.record(document))


def _stages(found: Diagnosed) -> Section:
    rows = tuple((row.stage, row.end, row.run or "-", row.why or "-") for row in stage_rows(found.results))
    table = Table(caption="Stages, the cheapest first", head=("stage", "end", "run", "why"), rows=rows)
    return Section(name="stages", title="Stages", blocks=(table,))


def _applied(applied: Applied | Eagle3Error | None) -> tuple[Section, ...]:
    if applied is None:
        return ()
    if isinstance(applied, Eagle3Error):
        words = not_applied(applied)
        text = Text(text=f"{words[0].upper()}{words[1:]}", kind="warning")
        return (Section(name="applied", title="Before and after the fix", blocks=(text,)),)
    folder = Text(text=f"Corrected drafter: {applied.folder}")
    section = compared_section(applied.compared, COMPARING)
    blocks = (Text(text=not_compared(applied), kind="warning"),) if section is None else section.blocks
    return (Section(name="applied", title="Before and after the fix", blocks=(folder, *blocks)),)
