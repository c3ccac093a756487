"""Which reading of the checkpoint fits: every ordered choice of slots, pruned on few rows, then the finalists on all.

Screen: all wirings, first step only. Search: the survivors with all steps, then the best of them at the other token
offsets. Both on the first few rows, and after each the worse half is dropped. Full: best, runner-up and declared on
every row.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations

import torch

from remote_payload.schema.standalone import ReadingFacts, Stage
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.measure.acceptance import JudgedRow, Teacher, measure
from remote_payload.standalone.model.drafter import Drafter

ENOUGH_POSITIONS = 48
"""Judged positions before the worse half is dropped: fewer say too little (standard error 7 %)."""
PLENTY_POSITIONS = 192
"""Judged positions after which the screen drops all but the survivors at once (standard error 3.5 %)."""
FEWEST = 3
"""The search itself drops none of the best three."""


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

    @property
    def score(self) -> float:
        """Mean accepted drafts a position."""
        return self.leading_hits / max(1, self.positions)

    def facts(self, states: tuple[int, ...] | None) -> ReadingFacts:
        """The record; `states` labels the captured states."""
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
        )


@dataclass(frozen=True, kw_only=True)
class Measurer:
    """Drafter and teacher, ready to measure readings on judged rows."""

    drafter: Drafter
    teacher: Teacher

    def add(self, tallies: Sequence[Tally], judged: JudgedRow, steps: int) -> torch.Tensor:
        """Measure the tallies' readings on one row, add to them, and give the hits (R, P, steps)."""
        started = time.perf_counter()
        hits = measure(self.drafter, self.teacher, judged, [tally.reading for tally in tallies], steps)
        share = (time.perf_counter() - started) / len(tallies)
        counted = hits[:, judged.counted]  # (R, C, steps)
        first = counted[..., 0].sum(dim=1).tolist()
        leading = counted.to(torch.int64).cumprod(dim=-1).sum(dim=(1, 2)).tolist()
        for index, tally in enumerate(tallies):
            tally.rows += 1
            tally.positions += counted.shape[1]
            tally.first_step_hits += first[index]
            tally.leading_hits += leading[index]
            tally.seconds += share
        return hits


@dataclass(frozen=True, kw_only=True)
class Found:
    """The outcome of the search: everything measured on few rows, best first."""

    ranked: tuple[Tally, ...]
    dropped: tuple[Tally, ...]

    def finalists(self, declared: Reading | None) -> tuple[Reading, ...]:
        """Best, runner-up and declared, each once."""
        readings = [tally.reading for tally in self.ranked[:2]] + ([declared] if declared else [])
        return tuple(dict.fromkeys(readings))

    def told_with(self, finals: Sequence[Tally]) -> list[Tally]:
        """Every reading once, as far as it got; the furthest and best first."""
        by_name = {tally.reading.name: tally for tally in [*self.dropped, *self.ranked, *finals]}
        stages = {"full": 0, "search": 1, "screen": 2}
        return sorted(by_name.values(), key=lambda tally: (stages[tally.stage], -tally.score))


def wirings(captured: int, slots: int) -> list[Reading]:
    """Every ordered choice of `slots` of `captured` states at token offset +1."""
    return [Reading(slots=choice, token_offset=1) for choice in permutations(range(captured), slots)]


def screen(
    measurer: Measurer, rows: Iterable[JudgedRow], readings: Sequence[Reading], keep: int
) -> tuple[list[Tally], list[Tally]]:
    """First step of all readings, until `keep` are left. Gives the survivors, best first, and the dropped."""
    live = [Tally(reading=reading, stage="screen") for reading in readings]
    dropped: list[Tally] = []
    for judged in rows:
        measurer.add(live, judged, 1)
        _drop(live, dropped, keep if live[0].positions >= PLENTY_POSITIONS else max(keep, len(live) // 2))
        if len(live) <= keep and live[0].positions >= ENOUGH_POSITIONS:
            break
    return live[:keep], live[keep:] + dropped


def search(
    measurer: Measurer, rows: Iterable[JudgedRow], readings: Sequence[Reading], steps: int
) -> tuple[list[Tally], list[Tally]]:
    """All steps of a few readings. Gives those measured on every row, best first, and the dropped."""
    live = [Tally(reading=reading, stage="search") for reading in readings]
    dropped: list[Tally] = []
    for judged in rows:
        measurer.add(live, judged, steps)
        _drop(live, dropped, max(FEWEST, len(live) // 2))
    return live, dropped


def _drop(live: list[Tally], dropped: list[Tally], keep: int) -> None:
    """Sort by score and move all but the first `keep` to `dropped`, unless too little was seen to judge."""
    live.sort(key=lambda tally: -tally.score)
    if live[0].positions >= ENOUGH_POSITIONS:
        dropped[:0] = live[keep:]
        del live[keep:]
