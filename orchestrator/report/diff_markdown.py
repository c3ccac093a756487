"""A comparison as Markdown, for a pull request or an issue."""

from collections.abc import Sequence

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import CaseComparison, SetComparison
from orchestrator.compare.matching import case_words
from orchestrator.report.diff_assumed import untold_lines
from orchestrator.report.diff_text import LEGEND, table_rows, unsure_lines
from orchestrator.report.diff_verdict import verdict_lines
from orchestrator.report.diff_words import KEYS, difference_words, leading
from orchestrator.report.markdown_table import escaped, markdown_table


def diff_markdown(found: Sequence[SetComparison], asked: Asked) -> str:
    """Every comparison: its verdict in bold, a table a load, what is not alike."""
    lines: list[str] = []
    for one in found:
        led = leading(one, asked)
        first, *more = verdict_lines(one, asked)
        lines += [f"**{escaped(first)}**", "", *(f"{escaped(line)}  " for line in more), ""]
        for case in one.cases:
            lines += [f"{escaped(case_words(case.case)) or 'all'}: {case.verdict}", ""]
            unsure = unsure_lines(case, asked, besides=None if led is None else led[1])
            lines += [*markdown_table(table_rows(case, asked)), ""]
            lines += [*(f"- {escaped(text)}" for text in unsure), *_differences(case), ""]
        untold = [f"not told by a side: {text}" for text in untold_lines(one, KEYS)]
        lines += [f"- {escaped(note)}" for note in (*untold, *one.notes)]
    return "\n".join([*lines, escaped(LEGEND)])


def _differences(case: CaseComparison) -> list[str]:
    told = [
        *(f"under test: {difference_words(item)}" for item in case.varied),
        *(f"NOT COMPARABLE: {difference_words(item)}" for item in case.hard),
        *(f"INVALID: {text}" for text in (*case.ours.invalid, *case.theirs.invalid)),
        *(f"runs with {difference_words(item)}" for item in case.arguments),
        *(f"also differs: {difference_words(item)}" for item in case.soft),
    ]
    return [f"- {escaped(text)}" for text in told]
