"""A decision as Markdown to paste into an issue: everything that it rests on, and nothing in it can become markup."""

import re
from collections.abc import Iterator, Sequence

from orchestrator.diagnosis.decision.axes import AXES
from orchestrator.diagnosis.decision.decision import Decision
from orchestrator.diagnosis.finding import CheckResult
from orchestrator.report.decision_text import command_words, fix_lines, title
from orchestrator.report.findings_text import VALUE, evidence_words
from orchestrator.report.markdown_table import escaped, markdown_table
from orchestrator.report.shown import shown

MOST = 400
"""Characters of one cell."""


def decision_markdown(found: Decision) -> str:
    """The whole decision; detail is folded."""
    lines = [f"### {safe(title(found))}", "", safe(found.headline), ""]
    for place, item in enumerate(found.findings, start=1):
        lines += [*_finding(item, place), ""]
    lines += _listed("Beside it", found.also)
    if found.fix is not None:
        lines += ["**Fix**", "", *_fenced("\n".join(fix_lines(found.fix))), ""]
    if found.next_runs:
        lines += ["**Next**", ""]
        for run in found.next_runs:
            lines += [f"- {safe(run.what)} ({run.cost}): {safe(run.why)}"]
        lines += ["", *_fenced("\n".join(command_words(run) for run in found.next_runs)), ""]
    cells = [[axis, answer, AXES[axis][answer]] for axis, answer in found.place.items()]
    lines += _folded("What it rests on", safe_table([["question", "answer", "meaning"], *cells]))
    if found.checks:
        checks = [[f"{item.check} {item.title}", item.outcome.replace("_", " "), item.summary] for item in found.checks]
        lines += _folded("Checks", safe_table([["check", "outcome", "what it says"], *checks]))
    return "\n".join(lines).rstrip() + "\n"


def _finding(item: CheckResult, place: int) -> Iterator[str]:
    yield f"**{place}. {item.cause or 'note'}, {item.severity or 'note'}** ({safe(item.check)}): {safe(item.summary)}"
    if item.evidence:
        yield from ("", *safe_table([["measured", VALUE], *([one.name, evidence_words(one)] for one in item.evidence)]))
    if item.remedy:
        yield from ("", *(f"- {safe(text)}" for text in item.remedy))
    if item.refuted_by:
        yield from ("", f"Refuted by: {safe(item.refuted_by)}")


def _listed(head: str, texts: Sequence[str]) -> list[str]:
    return [f"**{head}**", "", *(f"- {safe(text)}" for text in texts), ""] if texts else []


def _folded(summary: str, lines: Sequence[str]) -> list[str]:
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "", "</details>", ""]


def safe_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table whose cells are as harmless; the first row is its head."""
    return [_unlinked(line) for line in markdown_table([[shown(cell, MOST) for cell in row] for row in rows])]


def safe(text: str) -> str:
    """Escaped, and neither a mention nor a reference: GitHub looks for both after it has read the Markdown."""
    return _unlinked(escaped(shown(text, 2000)))


def _unlinked(text: str) -> str:
    return text.replace("\\@", "@<!-- -->").replace("\\#", "#<!-- -->")


def _fenced(text: str) -> list[str]:
    """Within a fence longer than any run of backticks in it, where nothing is a mention or markup."""
    inside = shown(text)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", inside)), default=0))
    return [fence, inside, fence]
