"""Inside the batch job: the run's supervisor in the foreground, so that Slurm's signals and control group are its own.

Slurm ends a job by TERM, and says why in the job's output before it: a requeue, a preemption, a node that fails, or
nothing but CANCELLED, also for a TERM of our own `cancel`, which is known by its file in the run's folder. Where Slurm
may start the job again the run gets no final state from here: what becomes of it is Slurm's word (see settle.py).
"""

import contextlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from remote_payload.end_told import tell_the_end
from remote_payload.event_log import EventLog
from remote_payload.outcome import Outcome
from remote_payload.rundir import RunDir
from remote_payload.runstate import read_state
from remote_payload.schema import Event, RunSpec, RunState
from remote_payload.schema.slurm import SlurmJob
from remote_payload.supervisor import Origin, supervise_here

_ENDED = re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON (\S+) CANCELLED AT \S+(?: DUE TO ([A-Z ]+?))? \*\*\*")
"""slurmstepd's line before it ends a job. Source: `_kill_msg`, src/slurmd/slurmstepd/mgr.c and req.c."""
COMES_BACK = "JOB REQUEUE"
UNDECIDED = ("PREEMPTION", "NODE FAILURE")
"""After these the job may be started again or not, as the partition is configured."""


@dataclass(frozen=True, kw_only=True)
class Here:
    """The batch job that this process is: its Slurm id, its output, the payload, the time before its limit."""

    job: SlurmJob
    log: Path
    archive: Path
    signal_s: int


def take_up(
    run: RunDir,
    spec: RunSpec,
    values: dict[str, str],
    here: Here,
    before: RunState,
    *,
    sweep: RunDir | None = None,
) -> RunState | None:
    """Run it to its end, or on after Slurm has started the job again; the state it is left in."""
    submitted_s = before.slurm.submitted_unix_s if before.slurm else here.job.submitted_unix_s
    job = replace(here.job, submitted_unix_s=submitted_s)
    if before.phase != "queued" or before.started_unix_s is not None:
        _tell_restart(run, job)
    for leftover in (run.failure, run.manifest):  # of the attempt before, which nobody is to take for this one's
        leftover.unlink(missing_ok=True)
    asks = (run.cancel,) if sweep is None else (run.cancel, sweep.cancel)
    origin = Origin(archive=here.archive, sweep=sweep, slurm=job, before=before, reworded=_reworded(here, asks))
    # What it had to wait for, Slurm has waited for.
    supervise_here(run, replace(spec, waiting=None), values, origin)
    if sweep is None:  # a sweep's end is told, not those of its units
        tell_the_end(run, spec)
    return read_state(run)


def _reworded(here: Here, asks: tuple[Path, ...]) -> Callable[[Outcome], Outcome]:
    """What Slurm has to say about an end; `asks` are the files by which this tool asks for one."""
    from_byte = here.log.stat().st_size if here.log.exists() else 0

    def reworded(verdict: Outcome) -> Outcome:
        if verdict.phase == "timed_out" and verdict.note is not None and "time limit" in verdict.note:
            note = f"ended for Slurm's time limit, of which Slurm told up to {here.signal_s + 60} s before"
            return replace(verdict, note=note)
        if verdict.phase != "cancelled" or any(path.exists() for path in asks):
            return verdict
        why = why_ended(here.log, from_byte)
        if why is None:
            return replace(verdict, note="ended by a signal that neither this tool nor Slurm accounts for")
        if why == COMES_BACK:
            return Outcome(phase="queued", note="Slurm takes the job back into its queue and starts it again")
        if why in UNDECIDED:
            return Outcome(phase="running", note=f"Slurm ended the job: {why.lower()}")
        if why == "TIME LIMIT":
            return replace(verdict, phase="timed_out", note="Slurm ended the job: time limit")
        return replace(verdict, note="ended by Slurm: scancel, by whom Slurm does not say")

    return reworded


def why_ended(log: Path, from_byte: int = 0) -> str | None:
    """Why Slurm ended the job, in its words; empty: it was cancelled; None: Slurm did not end it."""
    with contextlib.suppress(OSError):
        told = log.read_bytes()[from_byte:].decode("utf-8", "replace")
        if lines := list(_ENDED.finditer(told)):
            return lines[-1][2] or ""
    return None


def _tell_restart(run: RunDir, job: SlurmJob) -> None:
    message = f"Slurm started the job again on {job.node} (restart {job.restarts}); the run begins anew in its folder"
    with contextlib.suppress(OSError):
        EventLog(run.events).report(Event(time_unix_s=time.time(), kind="warning", name="restarted", message=message))
