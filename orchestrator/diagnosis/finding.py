"""What one check says: passed, a finding with evidence and remedy, or that it cannot tell and what it would need."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.compare.stats import CONFIDENCE, Estimate, wilson

Outcome = Literal["passed", "finding", "cannot_tell"]

Severity = Literal["fatal", "serious", "minor", "note"]
"""`fatal`: acceptance is about 1.00 or serving fails; `serious`: costs much acceptance, or makes the figures here
wrong; `minor`: costs a little, or only on some engines; `note`: costs nothing now."""

Cause = Literal["wiring", "loading", "data", "generalization", "engine", "parameters", "economics"]
"""What kind of cause a finding belongs to; the last two only where a pair of drafter and server is judged as a whole:
what was asked for is not what runs, and speculation that costs more than it saves."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One number, with what it is and how sure it is."""

    name: str
    """What was measured, with its definition in words: `step-1 accuracy, best reading`."""
    value: float | int | str | None
    """None = unknown."""
    unit: str = ""
    """e.g. `share`, `tokens`, `rows`; `change` for a ratio minus 1; empty for words and plain ratios."""
    n: int | None = None
    """Sample size."""
    low: float | None = None
    high: float | None = None
    """Ends of the interval; None = no interval."""
    confidence: float | None = None


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """One check's answer. A check may give several findings, each a result of its own."""

    check: str
    """K1 .. K20, `teacher`, `capture`, `folder`, `gap`."""
    title: str
    """What was checked, e.g. `tensor inventory`."""
    outcome: Outcome
    summary: str
    """One sentence: what was found, or what passed and how surely."""
    severity: Severity | None = None
    """Set for findings alone."""
    cause: Cause | None = None
    """Set for findings alone."""
    evidence: tuple[Evidence, ...] = ()
    """A finding's first two are what proves it."""
    remedy: tuple[str, ...] = ()
    """What to do, a line each; config lines are whole lines to copy."""
    needs: str | None = None
    """For `cannot_tell`: what would be needed to tell."""
    refuted_by: str | None = None
    """For findings: what would show that this is not it."""
    effect: float | None = None
    """For findings: accepted drafts a position that it costs, about; None = not measured. Findings are ranked by it."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What one check looks at; makes its answers."""

    check: str
    title: str

    def passed(self, summary: str, evidence: tuple[Evidence, ...] = ()) -> CheckResult:
        """Looked at and found in order."""
        return CheckResult(check=self.check, title=self.title, outcome="passed", summary=summary, evidence=evidence)

    def cannot_tell(self, summary: str, *, needs: str, evidence: tuple[Evidence, ...] = ()) -> CheckResult:
        """Not measured, or not enough: `needs` says what would tell."""
        return CheckResult(
            check=self.check, title=self.title, outcome="cannot_tell", summary=summary, needs=needs, evidence=evidence
        )

    def finding(
        self,
        summary: str,
        *,
        severity: Severity,
        cause: Cause,
        evidence: tuple[Evidence, ...],
        remedy: tuple[str, ...],
        refuted_by: str,
    ) -> CheckResult:
        """A fault, with its numbers, what mends it, and what would show that it is none."""
        return CheckResult(
            check=self.check,
            title=self.title,
            outcome="finding",
            summary=summary,
            severity=severity,
            cause=cause,
            evidence=evidence,
            remedy=remedy,
            refuted_by=refuted_by,
        )


def share(name: str, hits: int, n: int) -> Evidence:
    """A share with Wilson's interval; unknown where n is 0."""
    found = wilson(min(hits, n), n)
    confidence = None if found.low is None else CONFIDENCE
    return Evidence(
        name=name, value=found.value, unit="share", n=n, low=found.low, high=found.high, confidence=confidence
    )


def figure(name: str, estimate: Estimate, unit: str) -> Evidence:
    """A figure whose interval goes over rows."""
    return Evidence(
        name=name,
        value=estimate.value,
        unit=unit,
        n=estimate.rows,
        low=estimate.low,
        high=estimate.high,
        confidence=None if estimate.low is None else estimate.confidence,
    )


def count(name: str, value: int, of: int | None = None, unit: str = "") -> Evidence:
    """A plain count, out of `of`."""
    return Evidence(name=name, value=value, unit=unit, n=of)


def led_by(evidence: Sequence[Evidence], *words: str) -> tuple[Evidence, ...]:
    """The same, those first whose names hold one of the words, in the words' order: what proves a finding leads."""
    places = [[word in item.name for word in words] for item in evidence]
    order = sorted(range(len(evidence)), key=lambda at: places[at].index(True) if any(places[at]) else len(words))
    return tuple(evidence[at] for at in order)
