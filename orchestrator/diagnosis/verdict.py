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
    "cannot_separate",
    "poor_fit",
    "nothing_fits",
    "unlabelled",
    "declared_not_captured",
    "cannot_serve",
    "unknown_rule",
]
SERVED_OFFSET = 1
"""Every server pairs the state of token t with the embedding of token t+1."""

SEPARATION = 0.01
"""Step-1 accuracy by which the best reading must be ahead at least; less is no wiring fault, however many rows."""

GOOD_FIT = 0.5
"""Step-1 accuracy that a drafter shows on states it was trained on; below it the best reading is not taken on trust.

Seen on held-out rows of two small drafters: 0.65 where they were fed what they were trained on, 0.30 where not.
"""

LEAST_FIT = 0.1
"""Step-1 accuracy that the best reading must have; below it the drafter reads nothing, whatever it is fed."""


@dataclass(frozen=True, kw_only=True)
class MeasuredReading:
    """A reading and its figures over all rows."""

    facts: ReadingFacts
    figures: ReadingFigures


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
