"""What one of the methods found out about two series, before it is judged."""

from dataclasses import dataclass
from typing import Literal

from orchestrator.compare.comparison import Test
from orchestrator.compare.statistics.effect import Effect
from orchestrator.compare.stats import Estimate
from orchestrator.records.measurement import Level


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Both sides' figures, the change between them where there is one, and how it was come by."""

    level: Level
    ours: Estimate
    theirs: Estimate
    effect: Effect | None
    """None where no ratio can be taken: a figure is 0."""
    method: str
    tests: tuple[Test, ...] = ()
    pairs: int | None = None
    notes: tuple[str, ...] = ()
    """Sentences without a full stop."""
    single: bool = False
    """Whether a side is one run alone: without an interval that is a single run, not an inconclusive result."""
    alike: str = "the samples of a side are all equal"
    """How it is called that nothing differs from sample to sample."""


def plain_change(ours: Estimate, theirs: Estimate, kind: Literal["ratio", "difference"]) -> float | None:
    """The change of two figures without regard to their errors; None where it has no value."""
    if ours.value is None or theirs.value is None:
        return None
    if kind == "difference":
        return ours.value - theirs.value
    return ours.value / theirs.value - 1 if theirs.value else None
