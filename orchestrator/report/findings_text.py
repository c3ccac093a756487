"""What the checks say, as text: findings in a few lines each with what mends them; in full with all their numbers."""

import textwrap
from collections.abc import Sequence

from orchestrator.compare.stats import CONFIDENCE
from orchestrator.diagnosis.finding import CheckResult, Evidence
from orchestrator.report.copied import copied_json
from orchestrator.report.table import table
from orchestrator.report.words import UNKNOWN

WORDS = {"passed": "passed", "finding": "FINDING", "cannot_tell": "cannot tell"}
SHARES = ("share",)
CHANGE = "change"
DIFFERENCE = " minus "
COUNTED = ("", "rows", "positions")
VALUE = f"value [its {100 * CONFIDENCE:.4g} % interval, unless another is said]"
"""Head of a column of `evidence_words`."""


def finding_lines(findings: Sequence[CheckResult], width: int) -> list[str]:
    """Each finding: its check, how bad, what was found; then what to do."""
    lines = []
    for item in findings:
        lines += wrapped(f"{_name(item)}, {item.severity}: {item.summary}", width)
        for number, remedy in enumerate(item.remedy):
            lines += wrapped(remedy, width, first="    -> " if number == 0 else "       ", then="       ")
    return lines


def check_lines(results: Sequence[CheckResult], width: int) -> list[str]:
    """Every check in full: outcome, evidence, remedy, what would refute it, what would be needed."""
    lines = []
    for item in results:
        outcome = WORDS[item.outcome] + (f" ({item.severity}, {item.cause})" if item.severity else "")
        lines += wrapped(f"{_name(item)}: {outcome}: {item.summary}", width)
        lines += evidence_lines(item.evidence, width)
        for remedy in item.remedy:
            lines += wrapped(remedy, width, first="    -> ", then="       ")
        if item.needs is not None:
            lines += wrapped(f"needs: {item.needs}", width, first="    ", then="      ")
        if item.refuted_by is not None:
            lines += wrapped(f"refuted by: {item.refuted_by}", width, first="    ", then="      ")
    return lines


def tally(results: Sequence[CheckResult], *, above: int = 0) -> str:
    """e.g. `9 passed, 1 finding, 4 cannot tell`; `above`: how many of its findings were told already."""
    counts = {outcome: sum(item.outcome == outcome for item in results) for outcome in WORDS}
    findings = f"{counts['finding']} finding{'' if counts['finding'] == 1 else 's'}"
    if 0 < above < counts["finding"]:
        findings += f", {above} of them above"
    elif above and counts["finding"]:
        findings += " (above)"
    return f"{counts['passed']} passed, {findings}, {counts['cannot_tell']} cannot tell"


def evidence_words(item: Evidence) -> str:
    """One number with its unit, interval and sample size, e.g. `71.9 % [68.1, 75.2] n=864`, `9 of 12 rows`.

    A difference of shares, which its name tells by `minus`, is in points; a ratio minus 1 in signed percent. The level
    of an interval is told where it is not 95 %.
    """
    if item.value is None:
        text = UNKNOWN
    elif isinstance(item.value, str):
        text = item.value
    elif _is_part(item):
        return f"{item.value} of {item.n}{f' {item.unit}' if item.unit else ''}"
    elif item.unit == CHANGE or (item.unit in SHARES and DIFFERENCE in item.name):
        text = f"{100 * item.value:+.1f}"
        if item.low is not None and item.high is not None:
            text += f" [{100 * item.low:+.1f}, {100 * item.high:+.1f}]"
        text += " %" if item.unit == CHANGE else " points"
    else:
        share = item.unit in SHARES
        text = _shown(item.value, share=share)
        if item.low is not None and item.high is not None:
            text += f" [{_shown(item.low, share=share, bare=True)}, {_shown(item.high, share=share, bare=True)}]"
        text += f" {item.unit}" if item.unit and not share else ""
    return text + _level(item) + (f" n={item.n}" if item.n is not None else "")


def wrapped(text: str, width: int, *, first: str = "  ", then: str = "    ") -> list[str]:
    """A paragraph; JSON at its end begins a line of its own where it does not fit, to be copied."""

    def paragraph(words: str) -> list[str]:
        return textwrap.wrap(
            words, width, initial_indent=first, subsequent_indent=then, break_on_hyphens=False, break_long_words=False
        )

    copied = copied_json(text, width, then)
    if copied is None:
        return paragraph(text)
    words, lines = copied
    if len(first) + len(text) <= width:
        return [f"{first}{text}"]
    if not words:
        lines[0] = f"{first}{lines[0].lstrip()}"
    return [*paragraph(words), *lines]


def evidence_lines(evidence: Sequence[Evidence], width: int, indent: str = "      ") -> list[str]:
    """Two columns where they fit, else a paragraph each."""
    columns = table([[one.name, evidence_words(one)] for one in evidence], indent)
    if all(len(line) <= width for line in columns):
        return columns
    return [
        line
        for one in evidence
        for line in wrapped(f"{one.name}: {evidence_words(one)}", width, first=indent, then=f"{indent}  ")
    ]


def _level(item: Evidence) -> str:
    """The level of an interval that is not the usual one, as where the best of several was picked on the same rows."""
    if item.low is None or item.confidence is None or item.confidence == CONFIDENCE:
        return ""
    return f" ({100 * item.confidence:.4g} % interval)"


def _is_part(item: Evidence) -> bool:
    """Whether it is a count out of n; other whole numbers have a unit of their own, or are differences."""
    counted = isinstance(item.value, int) and item.unit in COUNTED and DIFFERENCE not in item.name
    return counted and item.n is not None and isinstance(item.value, int) and 0 <= item.value <= item.n


def _name(item: CheckResult) -> str:
    """`K3 vocabulary map`; a check without a number is called by its title alone."""
    return f"{item.check} {item.title}" if item.check[1:].isdigit() else item.title


def _shown(value: float, *, share: bool, bare: bool = False) -> str:
    if share:
        return f"{100 * value:.1f}" + ("" if bare else " %")
    return str(value) if isinstance(value, int) else f"{value:.4g}"
