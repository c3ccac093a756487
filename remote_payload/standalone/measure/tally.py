"""How readings did on the same positions, and by how much one is surely ahead of another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from remote_payload.schema.standalone import ReadingFacts, Stage
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.measure.acceptance import JudgedRow, Teacher
from remote_payload.standalone.model.drafter import Drafter

RUN = 16
"""Positions that count as one draw: chains that start close together share their hits and misses."""
ENOUGH_ROWS = 6
"""Rows whose means say something about how rows differ."""


@dataclass(frozen=True, kw_only=True)
class Measurer:
    """Drafter and teacher, ready to measure readings on judged rows."""

    drafter: Drafter
    teacher: Teacher


@dataclass(frozen=True, kw_only=True)
class Gain:
    """A paired difference of mean accepted drafts a position, with its standard error."""

    mean: float
    error: float


@dataclass(kw_only=True)
class Tally:
    """How a reading did so far, in one stage."""

    reading: Reading
    stage: Stage
    rows: int = 0
    positions: int = 0
    first_step_hits: int = 0
    leading_hits: int = 0
    """Hits before the first miss, summed over positions: what a chain would have accepted."""
    seconds: float = 0.0
    paired_with: str | None = None
    pair: tuple[int, int, float] | None = None
    """First-step hits, leading hits of `paired_with` on the same positions, and the difference's standard error."""
    leads: list[torch.Tensor] = field(default_factory=list)
    """Leading hits of each position, one (C,) a row; kept where readings are compared pair by pair."""

    @property
    def score(self) -> float:
        """Mean accepted drafts a position."""
        return self.leading_hits / max(1, self.positions)

    @property
    def rank(self) -> tuple[float, int]:
        """Sorts the best first; equals by first-step hits."""
        return (-self.score, -self.first_step_hits)

    def add(self, hits: torch.Tensor, seconds: float, *, keep: bool = True) -> None:
        """Add one row's hits at counted positions (C, steps)."""
        leads = hits.to(torch.int64).cumprod(dim=-1).sum(dim=-1)  # (C,)
        self.rows += 1
        self.positions += len(hits)
        self.first_step_hits += int(hits[:, 0].sum())
        self.leading_hits += int(leads.sum())
        self.seconds += seconds
        if keep:
            self.leads.append(leads)

    def over(self, base: "Tally") -> Gain:
        """This reading's gain over `base` on the rows that both saw."""
        return gain(self.leads, base.leads)

    def hold_against(self, base: "Tally") -> Gain:
        """The same, and note the pair for the result."""
        shared = min(len(self.leads), len(base.leads))
        found = self.over(base)
        first = sum(int((leads > 0).sum()) for leads in base.leads[:shared])
        leading = sum(int(leads.sum()) for leads in base.leads[:shared])
        self.paired_with, self.pair = base.reading.name, (first, leading, found.error)
        return found

    def facts(self, states: tuple[int, ...] | None) -> ReadingFacts:
        """The record; `states` labels the captured states."""
        first, leading, error = self.pair or (None, None, None)
        return ReadingFacts(
            name=self.reading.name,
            slots=self.reading.slots,
            states=tuple(states[slot] for slot in self.reading.slots) if states else None,
            token_offset=self.reading.token_offset,
            stage=self.stage,
            rows=self.rows,
            positions=self.positions,
            first_step_hits=self.first_step_hits,
            leading_hits=None if self.stage == "screen" else self.leading_hits,
            changes=self.reading.changes,
            seconds=self.seconds,
            paired_with=self.paired_with,
            paired_first_step_hits=first,
            paired_leading_hits=leading,
            paired_error=error if error is not None and math.isfinite(error) else None,  # one run has no spread
        )


def gain(ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]) -> Gain:
    """Mean of the paired differences of leading hits, each a list of (C,) a row; rows that both have.

    The standard error is the larger one of two cluster-robust ones (ratio estimator): over runs of `RUN` positions
    within a row, and, from `ENOUGH_ROWS` on, over whole rows.
    """
    rows = [(a - b).double() for a, b in zip(ours, theirs, strict=False)]
    count = sum(len(row) for row in rows)
    if count == 0:
        return Gain(mean=0.0, error=0.0)
    mean = sum(float(row.sum()) for row in rows) / count
    error = _error([run for row in rows for run in torch.split(row, RUN)], mean)
    if len(rows) >= ENOUGH_ROWS:
        error = max(error, _error(rows, mean))
    return Gain(mean=mean, error=error)


def _error(clusters: Sequence[torch.Tensor], mean: float) -> float:
    if len(clusters) < 2:
        return float("inf") if mean else 0.0
    spread = sum((float(cluster.sum()) - len(cluster) * mean) ** 2 for cluster in clusters)
    count = sum(len(cluster) for cluster in clusters)
    return float((spread * len(clusters) / (len(clusters) - 1)) ** 0.5 / count)


def counted_hits(judged: JudgedRow, hits: torch.Tensor) -> torch.Tensor:
    """Of hits (R, P, steps) those at response positions, (R, C, steps)."""
    return hits[:, judged.counted]
