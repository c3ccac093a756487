"""The elements of a sweep's array: how many, and what Slurm says became of those that are over before they began.

An element that was cancelled while it waited, or that Slurm could not start, writes nothing: without Slurm's word its
units would wait for ever, and be told as never reached once the sweep is over. Of the former Slurm itself keeps nothing
(seen with 22.05: squeue, scontrol and sacct are silent): it is missing among its array's elements, and that tells.
"""

import contextlib
import math
from collections.abc import Sequence

from remote_payload.rundir import RunDir
from remote_payload.runstate import read_spec
from remote_payload.schema import (
    Failure,
    PointOutcome,
    RunSpec,
    RunState,
    SweepAttempt,
    SweepJob,
    SweepUnit,
    job_from_json,
)
from remote_payload.schema.slurm import SlurmJob
from remote_payload.slurm.poll import Answer, Known, look
from remote_payload.slurm.texts import GONE, PHASES
from remote_payload.sweep.ledger import Ledger, unit_folder
from remote_payload.sweep.unit_ids import unit_run_id

SLOWEST_S = 60.0
"""How long a final state may take to be seen on another host: NFS keeps what it knows of a folder for so long."""
LARGEST_ARRAY = 1000
"""Elements; Slurm's own default (MaxArraySize) is one more. Larger sweeps have several units an element."""
CUT_OFF = ("CANCELLED", "REVOKED", "PREEMPTED", GONE)
"""Ends that say nothing about the point."""

_MISSING = "Slurm knows others of its array and does not know it any more, and it has left nothing"


def patience_s(job: SlurmJob) -> float:
    """How long Slurm's word that a job is over must stand before a run without a final state is settled by it."""
    return min(SLOWEST_S, 2 * job.poll_s)


def elements_of(spec: RunSpec) -> int | None:
    """How many elements the array of a sweep has; None for any other run."""
    return min(units_of(spec), LARGEST_ARRAY) if spec.job_kind == "sweep" else None


def units_of(spec: RunSpec) -> int:
    """How many units a sweep has; any other run is one."""
    job = job_from_json(spec.job_json) if spec.job_kind == "sweep" else None
    return len(job.units) if isinstance(job, SweepJob) else 1


def unbegun(run: RunDir, state: RunState, attempts: Sequence[SweepAttempt]) -> tuple[SweepAttempt, ...]:
    """An attempt for each unit that none of `attempts` is at and whose element is over; asks Slurm where that is due.

    Of a sweep that was cancelled those alone that were over before: the others are told as not run, for that is why.
    """
    job = state.slurm
    if job is None or job.elements is None:
        return ()
    until_s = _asked_to_end_s(run)
    asked = job_from_json(read_spec(run).job_json)
    begun = {attempt.unit_id for attempt in attempts}
    units = asked.units if isinstance(asked, SweepJob) else ()
    left = {at: unit for at, unit in enumerate(units) if unit.unit_id not in begun}
    answer = look(run.path.parent.parent, job) if left else Answer()
    is_array_known = any(view.state != GONE for view in answer.elements(job.job_id).values())
    found = []
    for at, unit in left.items():
        element = f"{job.job_id}_{at % job.elements}"
        known = answer.jobs.get(element)
        if known is not None and known.since_unix_s < until_s and _stands(known, answer, patience_s(job)):
            found.append(_attempt(state.run_id, unit, element, known, is_array_known=is_array_known))
    return tuple(found)


def keep(run: RunDir, attempts: Sequence[SweepAttempt]) -> None:
    """Write them into their units' ledgers, once nothing of the sweep runs any more; on a full disk not."""
    with contextlib.suppress(OSError):
        for attempt in attempts:
            ledger = Ledger(unit_folder(run, attempt.unit_id))
            ledger.write(attempt, durable=True)
            ledger.close()


def _asked_to_end_s(run: RunDir) -> float:
    """When `cancel` was asked for; infinity where it was not."""
    try:
        return run.cancel.stat().st_mtime
    except OSError:
        return math.inf


def _stands(known: Known, answer: Answer, patience: float) -> bool:
    over = known.view is not None and known.view.is_over
    return over and answer.polled_unix_s - known.since_unix_s >= patience


def _attempt(sweep_id: str, unit: SweepUnit, element: str, known: Known, *, is_array_known: bool) -> SweepAttempt:
    assert known.view is not None  # it stands
    state, words = known.view.state, f"Slurm ended its element {element} before it began: {known.view.words}"
    if state == GONE and is_array_known:
        state, words = "CANCELLED", f"its element {element} was cancelled while it waited: {_MISSING}"
    is_cut_off = state in CUT_OFF
    return SweepAttempt(
        unit_id=unit.unit_id,
        attempt=0,
        run_id=unit_run_id(sweep_id, unit.unit_id, 0),
        block=unit.block,
        phase=PHASES.get(state, "lost"),
        points=tuple(PointOutcome(point_id=one, end="cancelled" if is_cut_off else "failed") for one in unit.points),
        failure=Failure(kind="machine", message=words, hint="`sweep resume` measures its points"),
        started_unix_s=known.since_unix_s,
        finished_unix_s=known.since_unix_s,
    )
