"""The decision itself: what is at fault, how surely, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator.diagnosis.decision.axes import Answer, Axis, Signal
from orchestrator.diagnosis.decision.fix import Fix
from orchestrator.diagnosis.decision.next_runs import NextRun
from orchestrator.diagnosis.decision.offline_axes import weighty
from orchestrator.diagnosis.decision.table import TABLE
from orchestrator.diagnosis.finding import Cause, CheckResult

Verdict = Cause | Literal["healthy", "sound", "cannot_tell"]
"""A cause, or: `healthy`; `sound`, which is the same where speed was not judged; `cannot_tell`."""
_SOUND = next(row for row in TABLE if row.kind == "sound").conditions


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What is at fault, how surely, and what to do."""

    verdict: Verdict
    """The cause that weighs most."""
    headline: str
    findings: tuple[CheckResult, ...]
    """By weight; those that are fatal or serious name the causes."""
    causes: tuple[Cause, ...]
    """Each once, in the findings' order; empty = none is proven."""
    also: tuple[str, ...]
    """True beside them: what is a consequence, what contradicts, what makes a figure doubtful."""
    next_runs: tuple[NextRun, ...]
    fix: Fix | None
    certain: bool
    """Whether running anything more could only add to what is named, not change it."""
    place: Mapping[Axis, Answer]
    """The cell of the table."""
    rows: tuple[str, ...]
    """Names of the table's rows that hold there."""
    signals: tuple[Signal, ...]
    checks: tuple[CheckResult, ...]
    """K6, K12 and K14 to K19, whatever they say."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong with drafter or server, whatever speculation is worth here."""
        asked = {axis: answers for axis, answers in _SOUND.items() if axis != "pays"}
        return set(self.causes) <= {"economics"} and all(self.place[axis] in asked[axis] for axis in asked)

    @property
    def named(self) -> tuple[CheckResult, ...]:
        """The findings that name causes."""
        return tuple(item for item in self.findings if weighty(item))
