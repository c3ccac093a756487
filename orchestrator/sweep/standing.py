"""What became of every point of a sweep, block by block, from what its host wrote down. Pure."""

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from remote_payload.schema import TERMINAL_PHASES, Failure, PointOutcome, SweepAttempt, SweepJob

Word = Literal["measured", "failed", "cancelled", "running", "waiting", "not run"]
"""`waiting`: its turn has not come; `not run`: the sweep is over and it never came."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One point in one block."""

    point_id: str
    block: int
    word: Word
    run_id: str | None = None
    """The run that measured it, or the last that tried."""
    attempts: int = 0
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A sweep as far as it is."""

    standings: tuple[Standing, ...]
    """In the order of the units, earlier sweeps' points first."""
    phase: str
    """Of the sweep's own run."""
    left_s: float | None = None
    """What the measurements that are waited for may take, by the mean of those so far; None = over, or none so far."""

    @property
    def counts(self) -> "Counter[Word]":
        """How many stand how."""
        return Counter(one.word for one in self.standings)

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of this sweep by itself."""
        return self.phase in TERMINAL_PHASES

    def of_point(self, point_id: str) -> tuple[Standing, ...]:
        """Its blocks."""
        return tuple(self._by_point.get(point_id, ()))

    @functools.cached_property
    def _by_point(self) -> dict[str, list[Standing]]:
        found: dict[str, list[Standing]] = {}
        for one in self.standings:
            found.setdefault(one.point_id, []).append(one)
        return found


def progress_of(job: SweepJob, attempts: Sequence[SweepAttempt], phase: str) -> Progress:
    """Every point of every block accounted for: nothing that was planned is missing from it."""
    told: dict[tuple[str, int], list[tuple[SweepAttempt, PointOutcome]]] = {}
    for attempt in attempts:
        for outcome in attempt.points:
            told.setdefault((outcome.point_id, attempt.block), []).append((attempt, outcome))
    found = [Standing(point_id=one.point_id, block=one.block, word="measured", run_id=one.run_id) for one in job.done]
    found += [
        _standing(point, unit.block, told.get((point, unit.block), []), phase)
        for unit in job.units
        for point in unit.points
    ]
    return Progress(standings=tuple(found), phase=phase, left_s=_left_s(found, attempts, phase))


def in_time(seconds: float) -> str:
    """e.g. `40 s`, `12 min`, `3.5 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _left_s(standings: Sequence[Standing], attempts: Sequence[SweepAttempt], phase: str) -> float | None:
    """Starts are part of it: a measurement's share of the time that attempts took from start to end."""
    over = [one for one in attempts if (one.finished_unix_s or 0.0) > one.started_unix_s]  # not what never began
    over = [one for one in over if one.phase in TERMINAL_PHASES]
    reached = sum(outcome.end != "not_reached" for one in over for outcome in one.points)
    if phase in TERMINAL_PHASES or not reached:
        return None
    took_s = sum(max(0.0, (one.finished_unix_s or 0.0) - one.started_unix_s) for one in over)
    return took_s / reached * sum(one.word in ("waiting", "running") for one in standings)


def _standing(point: str, block: int, told: Sequence[tuple[SweepAttempt, PointOutcome]], phase: str) -> Standing:
    if not told:
        over: Word = "not run" if phase in TERMINAL_PHASES else "waiting"
        return Standing(point_id=point, block=block, word=over)
    attempt, word = told[-1][0], _word(*told[-1], phase)
    for one, outcome in told:
        if outcome.end == "measured":
            attempt, word = one, "measured"
    failure = None if word == "measured" else attempt.failure
    return Standing(point_id=point, block=block, word=word, run_id=attempt.run_id, attempts=len(told), failure=failure)


def _word(attempt: SweepAttempt, outcome: PointOutcome, phase: str) -> Word:
    if outcome.end != "not_reached":
        return outcome.end
    if attempt.phase == "cancelled":  # it was left out, for too many before it measured nothing
        return "not run"
    if attempt.phase not in TERMINAL_PHASES:  # what Slurm took back into its queue is told as that
        return "waiting" if attempt.phase == "queued" and phase not in TERMINAL_PHASES else "running"
    return "not run" if phase in TERMINAL_PHASES else "waiting"
