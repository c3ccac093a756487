"""The end of a run under Slurm: asked for in its folder and through Slurm, then what shows that nothing is left."""

import contextlib
import time
from collections.abc import Callable

from remote_payload.end_told import tell_apart
from remote_payload.rundir import RunDir
from remote_payload.runstate import read_state
from remote_payload.schema import CancelAnswer, RunState
from remote_payload.schema.slurm import SlurmJob
from remote_payload.slurm.poll import Answer, look
from remote_payload.slurm.settle import settle, settle_sweep
from remote_payload.slurm.texts import GONE, JobView, read_config
from remote_payload.slurm.tools import RefusedError, SlurmError, ask

LOOK_S = 2.0
"""Somebody waits for the answer, so Slurm is asked more often than for a look."""
KILL_S = 60.0
"""How long Slurm may take to end what it was told to end: its KillWait is 30 s unless configured."""
SUPERVISOR_S = 15.0
"""Beyond the grace, until Slurm is told to end a job whose supervisor has not."""
PROVING = ("proctrack/cgroup",)
"""Ways of Slurm to know a job's processes that miss none of them."""

Pulse = Callable[[], None]


def cancel_job(run: RunDir, state: RunState, grace_s: float, pulse: Pulse) -> CancelAnswer:
    """End the job of a run whose cancel file is written; the answer says whether anything can be left of it."""
    job = state.slurm
    if job is None:
        raise ValueError(f"no run of Slurm: {state.run_id}")
    try:
        # What waits ends at once; what runs is asked, so that its supervisor settles the run and its whole tree.
        _scancel(job, "--state=PENDING")
        _scancel(job, "--state=RUNNING", "--batch", "--signal=TERM")
        answer = _until_over(run, job, grace_s + SUPERVISOR_S, pulse)
        if not _is_over(answer, job):
            _scancel(job)
            answer = _until_over(run, job, KILL_S, pulse)
    except SlurmError as problem:
        answer = Answer(problem=str(problem))
    if answer.problem is not None:  # the supervisor reads the run's folder all the same
        _until_settled(run, grace_s + SUPERVISOR_S, pulse)
    return _answered(run, state, job, answer)


def _scancel(job: SlurmJob, *options: str) -> None:
    with contextlib.suppress(RefusedError):  # a job that is over, or in another state than the one meant
        ask(["scancel", "--quiet", *options, job.job_id], job.answer_s)


def _until_over(run: RunDir, job: SlurmJob, patience_s: float, pulse: Pulse) -> Answer:
    until_s = time.monotonic() + patience_s
    while True:
        answer = look(run.path.parent.parent, job, fresh=True)
        if answer.problem is not None or _is_over(answer, job) or time.monotonic() >= until_s:
            return answer
        pulse()
        time.sleep(min(LOOK_S, job.poll_s))


def _until_settled(run: RunDir, patience_s: float, pulse: Pulse) -> None:
    until_s = time.monotonic() + patience_s
    while time.monotonic() < until_s:
        state = read_state(run)
        if state is None or state.is_terminal:
            return
        pulse()
        time.sleep(LOOK_S)


def _views(answer: Answer, job: SlurmJob) -> list[JobView]:
    if job.elements is not None:
        return list(answer.elements(job.job_id).values())
    known = answer.jobs.get(job.job_id)
    return [known.view] if known is not None and known.view is not None else []


def _is_over(answer: Answer, job: SlurmJob) -> bool:
    return answer.problem is None and all(view.is_over for view in _views(answer, job))


def _answered(run: RunDir, before: RunState, job: SlurmJob, answer: Answer) -> CancelAnswer:
    state = read_state(run) or before
    if state.is_terminal and job.elements is None:  # by its supervisor, which saw its tree empty or names who is left
        return CancelAnswer(state=state, was_terminal=False, survivors=state.survivors)
    if not _is_over(answer, job):
        why = answer.problem or "Slurm has not ended the job yet"
        return CancelAnswer(state=state, was_terminal=False, survivors=state.survivors, unproved=why)
    if job.elements is not None:
        state = settle_sweep(run, answer.elements(job.job_id))
        has_run = state.started_unix_s is not None
    else:
        has_run = state.supervisor_pid is not None
        state = settle(run, next(iter(_views(answer, job)), JobView(state=GONE)))
    tell_apart(run)
    doubt = doubt_of(job) if has_run else None
    return CancelAnswer(state=state, was_terminal=False, survivors=state.survivors, unproved=doubt)


def doubt_of(job: SlurmJob) -> str | None:
    """Why Slurm's word that a job is over does not prove that none of its processes is left; None = it does."""
    try:
        tracked = read_config(ask(["scontrol", "show", "config"], job.answer_s)).get("ProctrackType", "unknown")
    except SlurmError as problem:
        return str(problem)
    return None if tracked in PROVING else f"Slurm tracks processes by {tracked} here, which misses some"
