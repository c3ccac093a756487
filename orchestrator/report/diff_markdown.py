"""A comparison as Markdown, for a pull request or an issue."""

from collections.abc import Sequence

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import SetComparison
from orchestrator.compare.matching import case_words
from orchestrator.report.diff_text import LEGEND, remarks, rest, table_rows, unsure_lines
from orchestrator.report.diff_verdict import verdict_lines
from orchestrator.report.diff_words import leading
from orchestrator.report.markdown_table import escaped, markdown_table


def diff_markdown(found: Sequence[SetComparison], asked: Asked) -> str:
    """Every comparison: its verdict in bold, a table a load, and all that the text says beside it, as lists."""
    lines: list[str] = []
    for one in found:
        led = leading(one, asked)
        besides = None if led is None else led[1]
        first, *more = verdict_lines(one, asked)
        lines += [f"**{escaped(first)}**", "", *(f"{escaped(line)}  " for line in more), ""]
        for case in one.cases:
            lines += [f"{escaped(case_words(case.case)) or 'all'}: {case.verdict}", ""]
            lines += [*markdown_table(table_rows(case, asked)), ""]
            lines += _listed([*remarks(case, asked, besides), *unsure_lines(case, asked, besides)])
        lines += _listed(rest(one))
    return "\n".join([*lines, escaped(LEGEND)])


def _listed(texts: Sequence[str]) -> list[str]:
    """A list, and the blank line without which what follows would be part of its last item."""
    return [*(f"- {escaped(text)}" for text in texts), ""] if texts else []
