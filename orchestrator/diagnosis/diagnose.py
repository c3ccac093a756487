"""Every check's answer, the findings by weight, and the one line on top that names the cause.

Several faults are all named: the wiring verdict speaks of what is fed and computed, everything else stands beside it.
Only what is fatal or serious takes the top line from a wiring that is sound. Where the rows themselves are not what
they claim to be, that comes first and the wiring's fix is left out: no config is changed on such evidence.
"""

from dataclasses import dataclass, replace

from orchestrator.diagnosis.checks import CHECKS
from orchestrator.diagnosis.checks.k02_config import NESTED_TEXT
from orchestrator.diagnosis.finding import CheckResult, Severity
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.verdict import TopVerdict, WiringVerdict

TOLD = 3
"""Findings that the headline names at most; the others stand below it."""
SEVERITIES: tuple[Severity, ...] = ("fatal", "serious", "minor", "note")
COMPUTED = ("K3", "K4", "K8", "K9")
"""Checks whose findings about the wiring are what the wiring verdict calls mis-read; K5's are its own words again."""
DOUBTED_BY = ("K7", "K10", "teacher", "capture")
"""Checks whose weighty findings about the data make every reading's figures doubtful."""
NAMED_BY_CAUSE: dict[str, TopVerdict] = {
    "loading": "loading_fault",
    "data": "data_fault",
    "generalization": "generalization_gap",
    "wiring": "mis_read",
    "engine": "loading_fault",
}


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What a standalone test says, all of it."""

    verdict: TopVerdict
    headline: str
    """One sentence for the top; names further faults that weigh as much."""
    fix: tuple[str, ...]
    """What to do about the headline's causes, a line each."""
    results: tuple[CheckResult, ...]
    """Every answer, in the checks' order."""
    findings: tuple[CheckResult, ...]
    """The findings alone: by severity, then by what they cost."""

    @property
    def cause(self) -> CheckResult | None:
        """The finding that weighs most; None where nothing was found."""
        return self.findings[0] if self.findings else None


def diagnose(measured: Measured, wiring: WiringVerdict) -> Diagnosis:
    """Run every check. Raises InvalidRunError where no reading was measured on all rows."""
    results = _with_doubts(tuple(result for check in CHECKS for result in check(measured)))
    findings = tuple(sorted((item for item in results if item.outcome == "finding"), key=_weight))
    others = [item for item in findings if item.severity in ("fatal", "serious") and not _is_wirings(item)]
    verdict, texts, fix = _top(wiring, others)
    return Diagnosis(verdict=verdict, headline="; ".join(texts), fix=fix, results=results, findings=findings)


def _with_doubts(results: tuple[CheckResult, ...]) -> tuple[CheckResult, ...]:
    """Where rows or weights are not what they claim to be, findings about feeding and computing advise nothing."""
    rows = any(_is_doubt(item) and item.severity in ("fatal", "serious") for item in results)
    if not rows and not any(item.check == "folder" and item.severity == "fatal" for item in results):
        return results
    what = "rows" if rows else "weights"
    return tuple(
        replace(
            item,
            summary=f"on these {what}, which are not to be trusted: {item.summary}",
            remedy=(f"mend the {what} and run again before any change of config",),
        )
        if item.outcome == "finding" and _is_wirings(item)
        else item
        for item in results
    )


def _weight(finding: CheckResult) -> tuple[int, float]:
    """Fatal first; within a severity what costs most, unmeasured costs before small ones."""
    severity = SEVERITIES.index(finding.severity or "note")
    return severity, -(0.5 if finding.effect is None else finding.effect)


def _is_wirings(finding: CheckResult) -> bool:
    return finding.check == "K5" or (finding.check in COMPUTED and finding.cause == "wiring")


def _top(wiring: WiringVerdict, others: list[CheckResult]) -> tuple[TopVerdict, list[str], tuple[str, ...]]:
    """Verdict, sentences and fix: the wiring's where it has something to say, and every other weighty finding."""
    if not others:
        return wiring.verdict, [wiring.headline], wiring.fix
    others = sorted(others, key=_comes_first)[:TOLD]
    first, *more = others
    fixes = tuple(line for finding in others for line in finding.remedy)
    if not _is_doubt(first) and wiring.verdict in ("mis_wired", "mis_read", "cannot_serve"):
        also = [f"also: {finding.summary}" for finding in others if not _is_told(finding, wiring)]
        if first.summary == NESTED_TEXT:
            also[0] = wiring.headline
            return wiring.verdict, [NESTED_TEXT, *also], _once(*wiring.fix, *fixes)
        return wiring.verdict, [wiring.headline, *also], _once(*wiring.fix, *fixes)
    verdict = "broken_recursion" if first.check == "K11" else NAMED_BY_CAUSE[first.cause or "loading"]
    also = [f"also: {finding.summary}" for finding in more]
    return verdict, [first.summary, *also, *_aside(first, wiring)], _once(*fixes)


def _aside(first: CheckResult, wiring: WiringVerdict) -> list[str]:
    """What the wiring's verdict is worth beside a finding that comes first."""
    if _is_doubt(first):
        return ["on such rows the wiring cannot be judged"]
    if first.severity == "fatal" and wiring.verdict in ("poor_fit", "nothing_fits"):
        return []  # the finding explains it
    return [f"the {wiring.headline}" if wiring.verdict == "sound" else f"the wiring: {wiring.headline}"]


def _is_told(finding: CheckResult, wiring: WiringVerdict) -> bool:
    """Whether the wiring's sentence says the same already: another vocabulary map than the one that is served."""
    return finding.check == "K3" and any(
        key == "vocabulary" and best != "mended"  # of that the check itself says more
        for effect in wiring.misread
        for key, best in zip(effect.keys, effect.best, strict=True)
    )


def _comes_first(finding: CheckResult) -> tuple[bool, bool]:
    """Rows that are not what they claim to be, then a config or a file that makes all else another drafter's."""
    return not _is_doubt(finding), finding.summary != NESTED_TEXT and finding.check != "folder"


def _is_doubt(finding: CheckResult) -> bool:
    return finding.check in DOUBTED_BY and finding.cause == "data"


def _once(*lines: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(lines))
