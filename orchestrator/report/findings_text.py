"""What the checks say, as text: findings in a few lines each with what mends them; in full with all their numbers."""

import textwrap
from collections.abc import Sequence

from orchestrator.diagnosis.finding import CheckResult, Evidence
from orchestrator.report.table import table
from orchestrator.report.words import UNKNOWN

WORDS = {"passed": "passed", "finding": "FINDING", "cannot_tell": "cannot tell"}
SHARES = ("share",)


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
        lines += _evidence_lines(item.evidence, width)
        for remedy in item.remedy:
            lines += wrapped(remedy, width, first="    -> ", then="       ")
        if item.needs is not None:
            lines += wrapped(f"needs: {item.needs}", width, first="    ", then="      ")
        if item.refuted_by is not None:
            lines += wrapped(f"refuted by: {item.refuted_by}", width, first="    ", then="      ")
    return lines


def tally(results: Sequence[CheckResult], *, above: bool = False) -> str:
    """e.g. `9 passed, 1 finding, 4 cannot tell`; `above`: its findings were told already."""
    counts = {outcome: sum(item.outcome == outcome for item in results) for outcome in WORDS}
    findings = f"{counts['finding']} finding{'' if counts['finding'] == 1 else 's'}"
    findings += " (above)" if above and counts["finding"] else ""
    return f"{counts['passed']} passed, {findings}, {counts['cannot_tell']} cannot tell"


def evidence_words(item: Evidence) -> str:
    """One number with its unit, interval and sample size, e.g. `71.9 % [68.1, 75.2] n=864`."""
    if item.value is None:
        text = UNKNOWN
    elif isinstance(item.value, str):
        text = item.value
    else:
        share = item.unit in SHARES
        text = _shown(item.value, share=share)
        if item.low is not None and item.high is not None:
            text += f" [{_shown(item.low, share=share, bare=True)}, {_shown(item.high, share=share, bare=True)}]"
        text += f" {item.unit}" if item.unit and not share else ""
    return text + (f" n={item.n}" if item.n is not None else "")


def wrapped(text: str, width: int, *, first: str = "  ", then: str = "    ") -> list[str]:
    """A paragraph; a line with JSON to be copied stays whole."""
    if '"eagle_config"' in text:
        return [f"{first}{text}"]
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=then, break_on_hyphens=False, break_long_words=False
    )


def _evidence_lines(evidence: Sequence[Evidence], width: int) -> list[str]:
    """Two columns where they fit, else a paragraph each."""
    columns = table([[one.name, evidence_words(one)] for one in evidence], "      ")
    if all(len(line) <= width for line in columns):
        return columns
    return [
        line
        for one in evidence
        for line in wrapped(f"{one.name}: {evidence_words(one)}", width, first="      ", then="        ")
    ]


def _name(item: CheckResult) -> str:
    """`K3 vocabulary map`; a check without a number is called by its title alone."""
    return f"{item.check} {item.title}" if item.check[1:].isdigit() else item.title


def _shown(value: float, *, share: bool, bare: bool = False) -> str:
    if share:
        return f"{100 * value:.1f}" + ("" if bare else " %")
    return str(value) if isinstance(value, int) else f"{value:.4g}"
