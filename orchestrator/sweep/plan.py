"""Points -> units in the order they are run: blocks of starts, each start with all its loads. Pure.

A block measures every point once. In `abab` every block has the same order, plain decoding first; in `random` each is
shuffled by the seed, so that what drifts in a night falls on every configuration alike.
"""

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import JobFileError
from orchestrator.sweep.file import SweepFile
from orchestrator.sweep.points import LOADS, Expanded, Point, as_json, without_loads
from remote_payload.schema import PathIdentity, SweepJob, SweepPoint, SweepUnit, UnitJob, to_json
from remote_payload.schema.sweep import MOST_UNITS

ID_DIGITS = 16
PATHS = ("model", "draft", "target", "rows", "merged", "heldout", "heldout_merged", "prompts", "heldout_prompts")
"""Settings that name something on the host which may be replaced while its path stays."""
NO_PATHS = ("bundled", "random")


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What a point's id depends on beside its job."""

    payload_sha256: str
    identity: tuple[PathIdentity, ...] = ()


@dataclass(frozen=True)
class Start:
    """Points that share one start, in the file's order."""

    points: tuple[Point, ...]

    @property
    def cost(self) -> float:
        """In tokens that are asked for at once, the longest first unknown: only good for an order."""
        return sum(cost_of(point.job) for point in self.points)

    @property
    def drafted(self) -> tuple[int, int]:
        """Draft steps and tokens of a verify step: orders starts whose loads cost the same."""
        job = self.points[0].job.__dict__
        return job.get("num_steps") or 0, job.get("num_draft_tokens") or 0


def paths_of(base: UnitJob, points: Iterable[Point]) -> tuple[str, ...]:
    """Every path that a point's job reads, each once."""
    found: dict[str, None] = {}
    for job in (base, *(point.job for point in points)):
        for key in PATHS:
            value = getattr(job, key, None)
            if isinstance(value, str) and value not in NO_PATHS:
                found[value] = None
    return tuple(found)


def changed_paths(then: Iterable[PathIdentity], now: Iterable[PathIdentity]) -> tuple[str, ...]:
    """Paths of both that lead to something else now."""
    digests = {one.path: one.digest for one in then}
    return tuple(one.path for one in now if one.path in digests and digests[one.path] != one.digest)


def point_id(job: UnitJob, around: Circumstances) -> str:
    """Hash of the whole job at this point, of the payload that measures it, and of what its paths lead to."""
    used = set(paths_of(job, ()))
    told = {
        "job": as_json(job),
        "payload": around.payload_sha256,
        "identity": {one.path: one.digest for one in around.identity if one.path in used},
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:ID_DIGITS]


def plan(file: SweepFile, base: UnitJob, expanded: Expanded, around: Circumstances) -> SweepJob:
    """The job that the host is given. Raises JobFileError where it would have more starts than a sweep may."""
    starts = starts_of(file, expanded.points)
    if (count := len(starts) * file.repeats) > MOST_UNITS:
        raise JobFileError(
            f"{file.source}: a sweep has at most {MOST_UNITS} starts, found: {count}, "
            f"{len(starts)} configurations in {file.repeats} blocks each (`repeats`)"
        )
    ids = {id(point): point_id(point.job, around) for point in expanded.points}
    units: list[SweepUnit] = []
    for block, order in enumerate(blocks_of(file, starts)):
        units += [
            SweepUnit(
                unit_id=f"u{len(units) + at:04d}",
                block=block,
                changes_json=json.dumps(unit_changes(start.points)),
                points=tuple(ids[id(point)] for point in in_load_order(start.points)),
            )
            for at, start in enumerate(order)
        ]
    return SweepJob(
        base_json=to_json(base),
        units=tuple(units),
        points=tuple(
            SweepPoint(point_id=ids[id(point)], changes_json=json.dumps(point.changes), is_baseline=point.is_baseline)
            for point in expanded.points
        ),
        skipped=expanded.skipped,
        retries=file.retries,
        stop_after_failures=file.stop_after_failures,
        source=file.source,
        identity=around.identity,
    )


def starts_of(file: SweepFile, points: Sequence[Point]) -> tuple[Start, ...]:
    """Points of one configuration together; plain decoding first, then the cheapest or as the file has them."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(point.configuration, []).append(point)
    starts = [Start(tuple(group)) for group in groups.values()]
    if file.order == "cost":
        starts.sort(key=lambda start: (not start.points[0].is_baseline, start.cost, start.drafted))
    return tuple(starts)


def blocks_of(file: SweepFile, starts: Sequence[Start]) -> tuple[tuple[Start, ...], ...]:
    """The order of the starts in each block."""
    chance = random.Random(file.seed)  # noqa: S311 - an order, not a secret
    blocks = []
    for _ in range(file.repeats):
        order = list(starts)
        if file.blocks == "random":
            chance.shuffle(order)
        blocks.append(tuple(order))
    return tuple(blocks)


def in_load_order(points: Sequence[Point]) -> tuple[Point, ...]:
    """As a served benchmark's job has its loads: users first, then rates."""
    return tuple(sorted(points, key=lambda point: "request_rate" in point.changes))


def unit_changes(points: Sequence[Point]) -> dict[str, Any]:
    """What the job of one start sets over the base, all its loads among it."""
    changes = without_loads(points[0].changes)
    if points[0].job.kind == "bench":
        for key in LOADS:
            changes[key] = [point.changes[key] for point in points if key in point.changes]
    return changes


def cost_of(job: UnitJob) -> float:
    """Good for an order alone. Served: requests times tokens over how many go side by side; else time or rows."""
    job_fields = job.__dict__
    if job.kind == "bench":
        users = max(job_fields["concurrency"], default=1)
        requests = job_fields["requests"] or max(5 * users, job_fields["max_prompts"] or 0)
        return float(requests * job_fields["max_new_tokens"] * job_fields["repeats"] * job_fields["starts"]) / users
    return float(job_fields.get("duration_s") or job_fields.get("max_rows") or 0.0)
