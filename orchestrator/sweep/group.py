"""A sweep over several hosts as one: what became of every point wherever it was measured, and what is left. Pure.

Across hosts a point is known by what it sets and its block, for its id hashes what lies under the paths of one host.
Plain decoding belongs to its host: every host has its own.
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.sweep.standing import Progress, Standing, Word
from remote_payload.schema import SweepJob, SweepPoint

BEST: tuple[Word, ...] = ("measured", "running", "waiting", "failed", "cancelled", "not run")
"""Of two words on one point the earlier holds."""


@dataclass(frozen=True, kw_only=True)
class Key:
    """One point in one block, across hosts."""

    changes_json: str
    is_baseline: bool
    block: int
    host: str
    """Empty but for plain decoding."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One share, as its host tells it now or told it last."""

    share_id: str
    number: int
    host: str
    host_class: str
    job: SweepJob
    progress: Progress
    launched: bool = True
    is_dead: bool = False
    """The user says that its host is; only of a host that does not answer."""
    problem: str | None = None
    """Why it could not be asked now."""
    told_unix_s: float | None = None
    """When its host told this; None = it never did."""
    is_recalled: bool = False
    """Nobody asked its host now."""

    @property
    def may_measure(self) -> bool:
        """Whether more may come of it by itself."""
        return self.launched and not self.is_dead and not self.progress.is_over

    def word(self, standing: Standing) -> Word:
        """What has become of a point; what a dead host had before it comes to nothing."""
        is_open = standing.word in ("running", "waiting")
        return "not run" if is_open and (self.is_dead or not self.launched) else standing.word


@dataclass(frozen=True, kw_only=True)
class Told:
    """What one share says of one point in one block."""

    part: Part
    point: SweepPoint
    standing: Standing
    word: Word

    @property
    def holds(self) -> bool:
        """Whether it is measured, or will be by itself."""
        return self.word == "measured" or (self.word in ("running", "waiting") and self.part.may_measure)


@dataclass(frozen=True, kw_only=True)
class Left:
    """What is not measured, and of which nothing more comes by itself."""

    key: Key
    point: SweepPoint
    part: Part
    """The share that told of it last."""
    adopt: str | None = None
    """A run of that share's host that may still go on, though its sweep ended."""


def told(parts: Sequence[Part]) -> dict[Key, list[Told]]:
    """Everything that is said of every point, share after share."""
    found: dict[Key, list[Told]] = {}
    for part in parts:
        points = {point.point_id: point for point in part.job.points}
        for standing in part.progress.standings:
            point = points[standing.point_id]
            host = part.host if point.is_baseline else ""
            key = Key(changes_json=point.changes_json, is_baseline=point.is_baseline, block=standing.block, host=host)
            one = Told(part=part, point=point, standing=standing, word=part.word(standing))
            found.setdefault(key, []).append(one)
    return found


def counts(parts: Sequence[Part]) -> "Counter[Word]":
    """How many stand how, each point of each block once."""
    return Counter(min((one.word for one in some), key=BEST.index) for some in told(parts).values())


def left(parts: Sequence[Part], *, skip_failed: bool = False) -> tuple[Left, ...]:
    """What another share would have to measure; nothing that is measured, or may still be, anywhere."""
    found = []
    for key, some in told(parts).items():
        is_open = any(one.part.may_measure for one in some)  # what failed may be tried again there
        if is_open or any(one.holds for one in some) or (skip_failed and any(one.word == "failed" for one in some)):
            continue
        running = next((one for one in some if one.word == "running"), None)
        last = running or some[-1]
        adopt = None if running is None else running.standing.run_id
        found.append(Left(key=key, point=last.point, part=last.part, adopt=adopt))
    return tuple(found)


def measured_twice(parts: Sequence[Part]) -> Mapping[Key, tuple[str, ...]]:
    """Points that several runs measured in one block, as when a host that was given up went on: the runs of each."""
    found = {
        key: tuple(dict.fromkeys(one.standing.run_id or "" for one in some if one.word == "measured"))
        for key, some in told(parts).items()
    }
    return {key: runs for key, runs in found.items() if len(runs) > 1}


def of_host(parts: Sequence[Part]) -> tuple[SweepJob, Progress]:
    """The shares of one host put together; of each point and block what holds, every measurement kept.

    The job has their points, and no units: there are units of several shares by one id.
    """
    points = {point.point_id: point for part in parts for point in part.job.points}
    said: dict[tuple[str, int], list[tuple[Word, Standing]]] = {}
    for part in parts:
        for standing in part.progress.standings:
            said.setdefault((standing.point_id, standing.block), []).append((part.word(standing), standing))
    standings: list[Standing] = []
    for some in said.values():
        best = min((word for word, _ in some), key=BEST.index)
        kept = {one.run_id: one for word, one in some if word == best}
        standings += kept.values() if best == "measured" else [some[-1][1]]
    phases = [part.progress.phase for part in parts if not part.progress.is_over]
    job, last = parts[0].job, parts[-1].progress.phase
    drift = tuple(dict.fromkeys(words for part in parts for words in part.job.drift))
    merged = dataclasses.replace(job, points=tuple(points.values()), drift=drift, units=())
    return merged, Progress(standings=tuple(standings), phase=phases[0] if phases else last)
