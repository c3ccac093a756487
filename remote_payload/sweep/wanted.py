"""What a unit still has to do: the points that no attempt has settled, and the job of its next start. Pure."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from remote_payload.schema import BenchJob, PointOutcome, SweepJob, SweepUnit, UnitJob, job_of_unit


@dataclass
class Wanted:
    """The points of one unit that are not settled, and how often each has failed."""

    points: tuple[str, ...]
    retries: int
    failures: "Counter[str]" = field(default_factory=Counter)

    def settle(self, outcomes: Iterable[PointOutcome]) -> None:
        """Take in how an attempt ended: what was not reached comes next, then what failed and may be tried again."""
        not_reached, again = [], []
        for outcome in outcomes:
            if outcome.end == "not_reached":
                not_reached.append(outcome.point_id)
            elif outcome.end == "failed":
                self.failures[outcome.point_id] += 1
                if self.failures[outcome.point_id] <= self.retries:
                    again.append(outcome.point_id)
        self.points = (*not_reached, *again)


def job_for(sweep: SweepJob, unit: SweepUnit, wanted: Sequence[str]) -> tuple[UnitJob, tuple[str, ...]]:
    """The job that measures the `wanted` points of a unit, and these in the job's own order. Raises SchemaError."""
    whole = job_of_unit(sweep, unit)
    if not isinstance(whole, BenchJob):
        return whole, tuple(wanted)
    loads: list[tuple[str, Any]] = [("concurrency", users) for users in whole.concurrency]
    loads += [("request_rate", rate) for rate in whole.request_rate]
    load_of = dict(zip(unit.points, loads, strict=True))
    closed = tuple(point for point in wanted if load_of[point][0] == "concurrency")
    rates = tuple(point for point in wanted if load_of[point][0] == "request_rate")
    more = {
        "concurrency": [load_of[point][1] for point in closed],
        "request_rate": [load_of[point][1] for point in rates],
    }
    return job_of_unit(sweep, unit, **more), (*closed, *rates)


def changed_settings(unit: SweepUnit) -> dict[str, str]:
    """What the unit sets otherwise than the base, each value as JSON text."""
    return {key: json.dumps(value) for key, value in json.loads(unit.changes_json).items()}
