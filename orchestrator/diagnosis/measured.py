"""Everything a check may look at: the result as it came, and the figures made of its hits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.compare.figures import ReadingFigures
from remote_payload.schema import ReadingFacts, RowFacts, StandaloneResult


@dataclass(frozen=True, kw_only=True)
class Split:
    """One set of rows, train or held-out, with the figures of every reading measured on all of it."""

    rows: Sequence[RowFacts]
    figures: Mapping[str, ReadingFigures]
    """By reading name; `full` readings alone."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A standalone test, ready to be checked."""

    result: StandaloneResult
    train: Split
    heldout: Split | None = None
    readings: Mapping[str, ReadingFacts] = field(default_factory=dict)
    """Every reading of the result by name, whatever its stage."""
