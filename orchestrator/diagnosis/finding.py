"""What one check says: passed, a finding with evidence and remedy, or that it cannot tell and what it would need."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["passed", "finding", "cannot_tell"]

Severity = Literal["fatal", "serious", "minor", "note"]
"""`fatal`: acceptance is about 1.00 or serving fails; `serious`: costs much acceptance, or makes the figures here
wrong; `minor`: costs a little, or only on some engines; `note`: costs nothing now."""

Cause = Literal["wiring", "loading", "data", "generalization", "engine"]
"""What kind of cause a finding belongs to."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One number, with what it is and how sure it is."""

    name: str
    """What was measured, with its definition in words: `step-1 accuracy, best reading`."""
    value: float | int | str | None
    """None = unknown."""
    unit: str = ""
    """e.g. `share`, `tokens`, `rows`; empty for words and plain ratios."""
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
    remedy: tuple[str, ...] = ()
    """What to do, a line each; config lines are whole lines to copy."""
    needs: str | None = None
    """For `cannot_tell`: what would be needed to tell."""
    refuted_by: str | None = None
    """For findings: what would show that this is not it."""
