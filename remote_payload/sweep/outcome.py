"""What became of the points of a unit that has ended: measured, failed, or not reached.

A served benchmark keeps the loads that it finished. The load under which it ended is a failure, and those after it were
not reached: a further start takes them up. Where no load had begun, the start itself failed, and with it every load.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.runstate import read_spec
from remote_payload.schema import BenchJob, Job, PointOutcome, RunState, SweepUnit, job_from_json
from remote_payload.schema.sweep import PointEnd
from remote_payload.sweep.ledger import read_ledger

LOAD_BEGINS = ("warm-up", "harness")
"""The phases of a served benchmark with which a load begins: by our own client, or by SGLang's tool."""
OF_SERVER = "server "
"""How the message of a phase begins that is the start of a server, which has a warm-up of its own."""


def outcomes_of(
    points: Sequence[str], job: Job, state: RunState, run: RunDir, *, with_sweep: bool = False
) -> tuple[PointOutcome, ...]:
    """How each of the unit's points ended; of a served benchmark they are its loads, in its order.

    `with_sweep`: nobody lived to write that down. A unit lost in that way, as in a power cut, tells nothing of its
    points: it was cut off and did not fail. Where its sweep lived on, the point may be what killed its supervisor.
    """
    if state.phase == "succeeded":
        return tuple(PointOutcome(point_id=point, end="measured") for point in points)
    lost: PointEnd = "cancelled" if state.phase == "cancelled" or (with_sweep and state.phase == "lost") else "failed"
    if not isinstance(job, BenchJob):
        return tuple(PointOutcome(point_id=point, end=lost) for point in points)
    ends = ends_of_loads(len(points), job.repeats_in_all, _finished(run), _begun(run))
    if lost == "cancelled":
        ends = tuple("measured" if end == "measured" else "cancelled" for end in ends)
    return tuple(PointOutcome(point_id=point, end=end) for point, end in zip(points, ends, strict=True))


def ends_of_adopted(unit: SweepUnit, state: RunState, run: RunDir) -> tuple[PointOutcome, ...]:
    """How the unit's points ended in a run that was started for these and others, by the ledger of its own sweep."""
    ledger = read_ledger(RunDir(run.path.with_name(run.path.name.rsplit(".", 2)[0])))
    told = next((one for one in ledger if one.run_id == run.path.name), None)
    ids = unit.points if told is None else tuple(outcome.point_id for outcome in told.points)
    try:
        found = {one.point_id: one for one in outcomes_of(ids, job_from_json(read_spec(run).job_json), state, run)}
    except (OSError, Refusal, ValueError):  # its spec is gone, or it had other loads than are known
        found = {}
    lacking: PointEnd = "cancelled" if state.phase == "cancelled" else "not_reached"
    return tuple(found.get(point, PointOutcome(point_id=point, end=lacking)) for point in unit.points)


def ends_of_loads(loads: int, repeats: int, finished: int, begun: int) -> tuple[PointEnd, ...]:
    """Of a served benchmark that ended early, by how many measurements it finished and began, repeat after repeat."""
    ends: list[PointEnd] = []
    if begun == 0 and finished == 0:  # no load was reached: the start itself failed
        return tuple("failed" for _ in range(loads))
    # What ended it between two loads is told of the one that could not begin.
    under_way = max(begun - 1, finished) % loads
    for load in range(loads):
        measured = finished // loads + (load < finished % loads)
        ends.append("measured" if measured >= repeats else "failed" if load == under_way else "not_reached")
    return tuple(ends)


def _finished(run: RunDir) -> int:
    try:
        result = json.loads((run.result / "bench.json").read_bytes())
        return len(result["points"]) + len(result["harness"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _begun(run: RunDir) -> int:
    try:
        lines = run.events.read_bytes().splitlines()
    except OSError:
        return 0
    return sum(_begins_a_load(line) for line in lines)


def _begins_a_load(line: bytes) -> bool:
    try:
        event: Mapping[str, Any] = json.loads(line)
        is_load = event["kind"] == "phase" and event["name"] in LOAD_BEGINS
        return is_load and not str(event["message"]).startswith(OF_SERVER)
    except (ValueError, KeyError, TypeError):
        return False
