"""The state of a run under Slurm, seen from the login node: what its supervisor wrote, and what Slurm says of its job.

A pid means nothing here, and a supervisor that is silent may be behind a slow file system: that a run is over without a
final state of its own is Slurm's word alone, and only once it has stood for a while. Nobody here writes into the state
of a run that goes on: what Slurm says of it meanwhile is told, not kept. Slurm that does not answer is no end.
"""

import contextlib
import dataclasses
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from remote_payload.end_told import tell_apart
from remote_payload.heartbeat import shared_age_s
from remote_payload.left_behind import tail_of
from remote_payload.manifest import write_manifest
from remote_payload.rundir import RunDir
from remote_payload.runstate import advance, read_spec, read_state
from remote_payload.schema import TERMINAL_PHASES, Failure, RunState, SweepAttempt, SweepJob, job_from_json
from remote_payload.schema.slurm import SlurmJob
from remote_payload.slurm import secrets as kept
from remote_payload.slurm.elements import keep, patience_s, unbegun
from remote_payload.slurm.giving_up import is_left_out
from remote_payload.slurm.poll import Answer, look
from remote_payload.slurm.texts import GONE, PHASES, QUEUED, JobView, read_scontrol
from remote_payload.slurm.tools import SlurmError, ask
from remote_payload.sweep.ledger import begun_units, read_ledger
from remote_payload.sweep.wanted import Wanted

_LOST_HINT = (
    "`slurm.log` in the run's folder holds what Slurm said there; `root` must lie on a file system that the compute "
    "nodes share"
)


def told(run: RunDir, state: RunState, job: SlurmJob, wait_s: float | None = None) -> RunState:
    """The state of a run that has no final one, with Slurm's word: as a note while it goes on, kept once it is over.

    `wait_s`: how long Slurm may keep us; None = as long as it takes, within its bound.
    """
    answer = look(run.path.parent.parent, job, wait_s=wait_s)
    if answer.problem is not None:
        age_s = shared_age_s(run.heartbeat) if state.phase == "running" else None
        beat = "" if age_s is None else f"; its supervisor's last sign of life is {age_s:.0f} s old"
        phase = "running" if job.elements is not None and begun_units(run) else state.phase  # an array writes no state
        words = f"{answer.problem}; this is what the run's own folder says{beat}"
        return dataclasses.replace(state, phase=phase, note=words)
    if job.elements is not None:
        return _sweep(run, state, job, answer)
    known = answer.jobs.get(job.job_id)
    if known is None or known.view is None or answer.polled_unix_s < job.submitted_unix_s:
        return state
    if not known.view.is_over:
        return _going(state, known.view)
    if answer.polled_unix_s - known.since_unix_s < patience_s(job):
        return state
    state = settle(run, known.view)
    tell_apart(run)
    return state


def in_the_end(run: RunDir) -> RunState | None:
    """The state for whoever looks seldom: where Slurm says that the run is over, waits until that has stood."""
    state = read_state(run)
    if state is None or state.is_terminal or state.slurm is None:
        return state
    answer, of = look(run.path.parent.parent, state.slurm, fresh=True), state.slurm.job_id
    parts = [
        known for one, known in answer.jobs.items() if of in (one, one.partition("_")[0]) and known.view is not None
    ]
    if answer.problem is None and parts and all(known.view is not None and known.view.is_over for known in parts):
        stood_s = answer.polled_unix_s - max(known.since_unix_s for known in parts)
        time.sleep(max(0.0, patience_s(state.slurm) - stood_s))
        look(run.path.parent.parent, state.slurm, fresh=True)
    return told(run, read_state(run) or state, state.slurm)


def settle(run: RunDir, view: JobView) -> RunState:
    """The final state: its supervisor's if there is one by now, else one by Slurm's word. Raises Refusal."""
    state = read_state(run)
    if state is None or state.is_terminal or state.slurm is None:
        return state or RunState(run_id=run.path.name, sequence=0, phase="lost")
    view = _exactly(state.slurm, view)
    was_asked = run.cancel.exists()
    phase = "cancelled" if was_asked else PHASES.get(view.state, "lost")
    where = f"Slurm job {state.slurm.job_id}: {view.words}"
    failure = None
    if phase != "cancelled":
        message = f"the run ended without a final state of its own; {where}"
        kind: Literal["machine", "supervisor"] = "supervisor" if phase == "lost" else "machine"
        failure = Failure(kind=kind, message=message, hint=_LOST_HINT, details=tail_of(run.path / "slurm.log"))
    by = None if phase != "cancelled" else "as asked" if was_asked else "by scancel, outside this tool"
    return _finish(run, state, phase=phase, failure=failure, note=f"{where}, {by}" if by else where)


def _exactly(job: SlurmJob, view: JobView) -> JobView:
    """With exit code and reason, which squeue does not tell of what has ended."""
    if view.exit_code is not None or view.signal is not None or view.state == GONE:
        return view
    with contextlib.suppress(SlurmError):
        found = read_scontrol(ask(["scontrol", "-o", "show", "job", job.job_id], job.answer_s)).get(job.job_id)
        if found is not None and found.is_over:
            return found
    return view


def _finish(run: RunDir, state: RunState, **changes: Any) -> RunState:
    kept.forget(run.path.parent.parent, state.run_id)
    changes["finished_unix_s"] = time.time()
    with contextlib.suppress(OSError):  # a full or read-only disk: the finding stands, the next look finds it again
        if any(names for _, _, names in os.walk(run.result)) and not run.result.is_symlink():
            write_manifest(run)
        return advance(run, state, **changes)
    return dataclasses.replace(state, sequence=state.sequence + 1, **changes)


def _going(state: RunState, view: JobView) -> RunState:
    """A job that was taken back into the queue makes its run one that waits, whatever its supervisor wrote last."""
    if view.state in QUEUED:
        again = "" if state.started_unix_s is None else "to be started again; "
        return dataclasses.replace(state, phase="queued", note=f"{again}Slurm: {view.words}")
    if state.phase == "queued" or view.state not in ("RUNNING", "COMPLETING"):
        return dataclasses.replace(state, note=f"Slurm: {view.words}")
    return state


def _sweep(run: RunDir, state: RunState, job: SlurmJob, answer: Answer) -> RunState:
    """An array has no supervisor: it is under way as long as one of its elements is, and over with the last."""
    views = answer.elements(job.job_id)
    going = [view for view in views.values() if not view.is_over]
    if going or (not views and _is_unknown(answer, job)):
        is_running = len(going) < len(views) or any(view.state not in QUEUED for view in going)
        return dataclasses.replace(
            state,
            phase="running" if is_running else "queued",
            note=f"Slurm: {_counted(views)}" if views else state.note,
        )
    since_s = max(known.since_unix_s for one, known in answer.jobs.items() if one.partition("_")[0] == job.job_id)
    if answer.polled_unix_s - since_s < patience_s(job) and not is_all_told(run):
        return dataclasses.replace(state, phase="running")
    state = settle_sweep(run, views)
    tell_apart(run)
    return state


def is_all_told(run: RunDir) -> bool:
    """Whether what became of every unit of a sweep is written down, and none is to be tried again."""
    job = job_from_json(read_spec(run).job_json)
    if not isinstance(job, SweepJob) or begun_units(run) < len(job.units):
        return False
    wanted = {unit.unit_id: Wanted(points=unit.points, retries=job.retries) for unit in job.units}
    for attempt in read_ledger(run):
        if attempt.phase not in TERMINAL_PHASES:
            return False
        wanted[attempt.unit_id].settle(() if is_left_out(attempt) else attempt.points)
    return not any(one.points for one in wanted.values())


def _is_unknown(answer: Answer, job: SlurmJob) -> bool:
    """Whether Slurm has not been asked about the array yet."""
    known = answer.jobs.get(job.job_id)
    return known is None or known.view is None


def settle_sweep(run: RunDir, views: Mapping[int, JobView]) -> RunState:
    """The final state of a sweep whose elements are over: it succeeded where every unit left an attempt.

    `views` are the elements as Slurm tells them; none where nobody asked it.
    """
    state = read_state(run)
    if state is None or state.is_terminal:
        return state or RunState(run_id=run.path.name, sequence=0, phase="lost")
    job, attempts = job_from_json(read_spec(run).job_json), read_ledger(run)
    units = {unit.unit_id for unit in job.units} if isinstance(job, SweepJob) else set()
    missing = len(units - {attempt.unit_id for attempt in attempts})
    never = unbegun(run, state, attempts) if views else ()
    keep(run, never)
    started_s = min((attempt.started_unix_s for attempt in attempts), default=None)
    note = f"Slurm: {_counted(views)}" if views else None
    if run.cancel.exists():
        return _finish(run, state, phase="cancelled", started_unix_s=started_s, note=note)
    if missing and {view.state for view in views.values()} in ({"CANCELLED"}, {"CANCELLED", GONE}):
        note = f"{note}; not by this tool"
        return _finish(run, state, phase="cancelled", started_unix_s=started_s, note=note)
    if missing:
        failure = _missing(f"{missing} of {len(units)} units", note, never)
        return _finish(run, state, phase="failed", started_unix_s=started_s, failure=failure, note=note)
    return _finish(run, state, phase="succeeded", started_unix_s=started_s, exit_code=0, note=note)


def _missing(which: str, note: str | None, never: Sequence[SweepAttempt]) -> Failure:
    """Why a sweep is not whole: by what Slurm says of elements that never began, as far as it does."""
    why = next((one.failure for one in never if one.failure is not None), None)
    if why is not None:
        return Failure(
            kind="supervisor", message=f"{which} never began; {never[0].unit_id}: {why.message}", hint=why.hint
        )
    message = f"{which} left no attempt; {note or 'Slurm does not know its jobs any more'}"
    return Failure(kind="supervisor", message=message, hint=_LOST_HINT)


def _counted(views: Mapping[int, JobView]) -> str:
    counts = Counter("no longer known" if view.state == GONE else view.state for view in views.values())
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
