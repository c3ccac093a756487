"""The verdict on a drafter's wiring as a record, and the thresholds it hangs on."""

from dataclasses import dataclass
from typing import Literal

from orchestrator.compare.figures import ReadingFigures
from orchestrator.compare.stats import Estimate
from orchestrator.diagnosis.sglang_ids import Spelling
from remote_payload.schema import ReadingFacts

Verdict = Literal[
    "sound",
    "mis_wired",
    "mis_read",
    "cannot_separate",
    "poor_fit",
    "nothing_fits",
    "unlabelled",
    "declared_not_captured",
    "cannot_serve",
    "unknown_rule",
]
TopVerdict = Verdict | Literal["generalization_gap", "loading_fault", "data_fault", "broken_recursion"]
"""The same for the whole diagnosis: what weighs most, the wiring or something else."""

SERVED_OFFSET = 1
"""Every server pairs the state of token t with the embedding of token t+1."""

SEPARATION = 0.01
"""Step-1 accuracy by which the best reading must be ahead at least; less is no wiring fault, however many rows."""

GOOD_FIT = 0.5
"""Step-1 accuracy that a drafter shows on states it was trained on; below it the best reading is not taken on trust.

Seen on held-out rows of two small drafters: 0.65 where they were fed what they were trained on, 0.30 where not.
"""

CHANGE_SEPARATION = 0.02
"""Accepted drafts a position by which a change of the computation must be ahead at least, like `SEPARATION`; the
smallest loss in the field that someone traced to its cause (a rotary base) was 0.05."""

LEAST_FIT = 0.1
"""Step-1 accuracy that the best reading must have; below it the drafter reads nothing, whatever it is fed."""


@dataclass(frozen=True, kw_only=True)
class MeasuredReading:
    """A reading and its figures over all rows."""

    facts: ReadingFacts
    figures: ReadingFigures


def is_poor(item: MeasuredReading) -> bool:
    """Whether a reading predicts so little that wrong rows, a broken export or other states may be behind it."""
    return (item.figures.first_step.value or 0.0) < GOOD_FIT


def how_little(best: MeasuredReading) -> str:
    """Why no reading fits, in words: the best one predicts next to nothing, or no more than without any states."""
    share = best.figures.first_step.value or 0.0
    if share < LEAST_FIT:
        return "the drafter hardly predicts the target, whatever it is fed"
    return f"the best one has {100 * share:.1f} % at step 1, no more than the drafter has without any states"


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One choice in which the best reading's computation differs from what is served, and what it is worth."""

    keys: tuple[str, ...]
    """`residual`, `feedback` ... as in `ReadingFacts.changes`; several where they were only measured together."""
    best: tuple[str, ...]
    """The best reading's values, a key each."""
    served: tuple[str, ...]
    reverted: MeasuredReading | None
    """The best reading with the served values instead; None = it was not measured on all rows."""
    difference: Estimate | None
    """Accepted drafts a position, best minus `reverted`, paired by row."""

    @property
    def proven(self) -> bool:
        """Whether the best reading is surely, and by more than next to nothing, ahead."""
        low = None if self.difference is None else self.difference.low
        return low is not None and low > CHANGE_SEPARATION


@dataclass(frozen=True, kw_only=True)
class WiringVerdict:
    """What the test says about the wiring. `difference` and `ratio` are best minus / over `against`."""

    verdict: Verdict
    best: MeasuredReading
    declared: MeasuredReading | None
    runner_up: MeasuredReading | None
    against: Literal["declared", "runner-up"] | None
    """What the best reading was compared with; None where there is nothing to compare."""
    difference: Estimate | None
    """Step-1 accuracy, paired by row."""
    ratio: Estimate | None
    """Accept length of the serving walk, relative difference, paired by row."""
    readings_tried: int
    spelling: Spelling | None
    """Config ids that would feed the best reading; None where its states are unknown or nothing needs mending."""
    headline: str
    fix: tuple[str, ...]
    """What to do, a line each; empty where there is nothing to mend."""
    effects: tuple[Effect, ...] = ()
    """Where best and served reading compute otherwise."""

    @property
    def misread(self) -> tuple[Effect, ...]:
        """The effects that are proven: the computation that is served is not the one the drafter was trained with."""
        return tuple(effect for effect in self.effects if effect.proven)
