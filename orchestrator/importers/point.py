"""What one row of a result file tells: its figures, its circumstances, and what its numbers must be to each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from orchestrator.importers.identities import Claim, Contradictions, contradictions
from orchestrator.importers.row import Place


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number of one row."""

    metric: str
    unit: str
    definition: str
    value: float
    is_last: bool = False
    """Runs on over the rows of a file, e.g. since the server's start: only the last one stands, without its samples."""
    n: int | None = None
    """Of a summary: what stood behind it."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """What one row tells."""

    place: Place
    case: Mapping[str, str | None]
    figures: Sequence[Figure]
    hard: Mapping[str, str | None] = field(default_factory=dict)
    soft: Mapping[str, str | None] = field(default_factory=dict)
    """Of the server and the tool: rows that differ in one are no repeats."""
    counts: Mapping[str, str | None] = field(default_factory=dict)
    """Soft as well, and may differ from repeat to repeat."""
    arguments: Mapping[str, str | None] = field(default_factory=dict)
    start: str | None = None
    """Which start of its server answered; None = not told. `seed ...` may be several starts."""
    asked: int | None = None
    """Requests that were to be sent; None = not told."""
    answered: int | None = None
    invalid: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    """What its numbers must be to each other, beside what is asked of all figures."""
    counted: Mapping[str, float | None] = field(default_factory=dict)
    """By the file's key: what cannot be 0 where something was measured."""

    @cached_property
    def doubts(self) -> Contradictions:
        """Where its numbers contradict each other."""
        return contradictions(
            {item.metric: item.value for item in self.figures}, self.claims, self.counted, self.place.where
        )

    @property
    def lost(self) -> int | None:
        """Requests without an answer; None = not told."""
        return None if self.asked is None or self.answered is None else self.asked - self.answered
