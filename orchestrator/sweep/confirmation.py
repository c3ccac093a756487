"""The best points of a sweep, measured afresh: the best of many looks better than it is, so only fresh starts judge it.

The three configurations whose tokens a second gain most against plain decoding, by the geometric mean over the loads,
and of each load the one that gains most there, for the recommendation is one a load, are run again beside plain
decoding in blocks of their own, shuffled. Only what these say is recommended. Pure.
"""

import dataclasses
import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.compare.comparison import Comparison
from orchestrator.sweep.points import LOADS, without_loads
from orchestrator.sweep.table import Row, SweepTable
from remote_payload.schema import SweepJob, SweepPoint, SweepUnit

BEST = 3


@dataclass(frozen=True, kw_only=True)
class Recommended:
    """At one load: the configuration that fresh starts say is surely the best against plain decoding, if any is."""

    load: str
    row: Row | None
    """None = none of them is surely better than plain decoding."""
    comparison: Comparison | None = None


def best_configurations(table: SweepTable, most: int = BEST) -> tuple[str, ...]:
    """Their settings as JSON: the best over all loads, of those soundly measured at each, then the others of one load.

    A point that was left out or failed at one load is no worse for that at another. What was surely slower than plain
    decoding wherever it was measured is none of them, unless all were: then the best of these is.
    """
    gains: dict[str, dict[str, float]] = {}
    slower: dict[str, bool] = {}
    for row in table.rows:
        gain = None if row.point.is_baseline else _gain(row)
        if gain is not None:
            name = configuration(row.point)
            gains.setdefault(load_of(row.point), {})[name] = gain
            slower[name] = slower.get(name, True) and _is_slower(row)
    loads = {load_of(point) for point in table.job.points if not point.is_baseline}
    everywhere = [name for name in next(iter(gains.values()), {}) if all(name in gains.get(load, {}) for load in loads)]
    whole = sorted(everywhere, key=lambda name: -sum(some[name] for some in gains.values()))[:most]
    best = tuple(dict.fromkeys((*whole, *(max(some, key=lambda name: some[name]) for some in gains.values()))))
    return tuple(name for name in best if not slower[name]) or best[:1]


def confirm(job: SweepJob, sweep_id: str, chosen: Sequence[str], *, blocks: int, seed: int) -> SweepJob:
    """The sweep that measures the chosen configurations and plain decoding again, in `blocks` shuffled blocks."""
    points = [one for one in job.points if one.is_baseline or configuration(one) in chosen]
    starts: dict[str, list[SweepPoint]] = {}
    for point in points:
        starts.setdefault(configuration(point), []).append(point)
    chance = random.Random(seed)  # noqa: S311 - an order, not a secret
    units: list[SweepUnit] = []
    for block in range(blocks):
        order = list(starts.values())
        chance.shuffle(order)
        units += [unit_of(f"u{len(units) + at:04d}", block, some) for at, some in enumerate(order)]
    return dataclasses.replace(
        job, units=tuple(units), points=tuple(points), skipped=(), resumes=None, done=(), confirms=sweep_id
    )


def recommended(table: SweepTable) -> tuple[Recommended, ...]:
    """Load by load, from this sweep alone."""
    loads: dict[str, list[Row]] = {}
    for row in table.rows:
        if not row.point.is_baseline:
            loads.setdefault(load_of(row.point), []).append(row)
    found = []
    for load, rows in loads.items():
        sure = [
            (row.against_plain.change.value or 0.0, row)
            for row in rows
            if row.against_plain is not None and row.against_plain.verdict == "improved" and not row.invalid
        ]
        best = max(sure, key=lambda one: one[0])[1] if sure else None
        found.append(Recommended(load=load, row=best, comparison=None if best is None else best.against_plain))
    return tuple(found)


def configuration(point: SweepPoint) -> str:
    """What a point sets beside its load, as JSON."""
    return json.dumps(without_loads(json.loads(point.changes_json)), sort_keys=True)


def load_of(point: SweepPoint) -> str:
    """e.g. `concurrency 4`; empty where it has none of its own."""
    changes = json.loads(point.changes_json)
    return ", ".join(f"{key} {changes[key]}" for key in LOADS if key in changes)


def _gain(row: Row) -> float | None:
    """The logarithm of its speed-up; None = not soundly measured."""
    change = None if row.against_plain is None or row.invalid else row.against_plain.change.value
    return None if change is None or change <= -1 else math.log1p(change)


def _is_slower(row: Row) -> bool:
    return row.against_plain is not None and row.against_plain.verdict == "regressed"


def unit_of(unit_id: str, block: int, points: Sequence[SweepPoint]) -> SweepUnit:
    """The start that measures these points of one configuration; their loads in the order its job has them."""
    changes = [json.loads(point.changes_json) for point in points]
    ordered = sorted(zip(points, changes, strict=True), key=lambda one: "request_rate" in one[1])
    told = without_loads(changes[0])
    if any(key in changes[0] for key in LOADS):
        told |= {key: [one[key] for _, one in ordered if key in one] for key in LOADS}
    return SweepUnit(
        unit_id=unit_id,
        block=block,
        changes_json=json.dumps(told),
        points=tuple(point.point_id for point, _ in ordered),
    )
