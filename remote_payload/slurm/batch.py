"""What Slurm starts: one run seen through, or an element of a sweep, once the launcher has said that it is this job."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from remote_payload.rundir import RunDir
from remote_payload.runstate import read_spec, read_state
from remote_payload.schema import RunSpec, RunState, SweepJob, job_from_json
from remote_payload.schema.slurm import SlurmJob, SlurmSettings
from remote_payload.slurm import secrets as kept
from remote_payload.slurm.taking_up import Here, take_up

LAUNCHER_S = 90.0
"""How long the launcher's word - which job the run is - may take to be seen: file systems that hosts share are slow."""
LOOK_S = 0.2


def batch(run_directory: str, archive: Path) -> int:
    """See one run through, or this array element's units of a sweep; the exit code is for Slurm's own records."""
    run = RunDir(Path(run_directory))
    try:
        spec = read_spec(run)
    except FileNotFoundError:
        print(f"no such run any more: {run.path}", flush=True)  # noqa: T201 - Slurm's log
        return 1
    here = _here(run, spec, os.environ, archive)
    values = kept.read(run.path.parent.parent, spec.run_id)
    job = job_from_json(spec.job_json)
    if isinstance(job, SweepJob):
        from remote_payload.slurm.element import Element  # noqa: PLC0415 - no sweep, no need

        if not is_array_of(run, here.job):
            return 1
        return Element(run, spec, job, here, values).run(int(os.environ["SLURM_ARRAY_TASK_ID"]))
    before = until_submitted(run, here.job)
    if before is None or before.is_terminal:
        return 1
    state = take_up(run, spec, values, here, before)
    if state is not None and state.is_terminal:
        kept.forget(run.path.parent.parent, spec.run_id)
    return 0 if state is not None and state.phase == "succeeded" else 1


def until_submitted(run: RunDir, job: SlurmJob) -> RunState | None:
    """The run's state once the launcher has said that it is this job; None: it is another one, or was taken away."""
    state = _first_word(run)
    if state is None:  # the launcher died before it could say so
        return RunState(run_id=run.path.name, sequence=0, phase="queued", slurm=job) if run.path.is_dir() else None
    return state if state.slurm is not None and state.slurm.job_id == job.job_id else None


def is_array_of(sweep: RunDir, element: SlurmJob) -> bool:
    """Whether the launcher has said that the sweep is this element's array, and not another that came of its launch."""
    state = _first_word(sweep)
    return state is not None and state.slurm is not None and state.slurm.job_id == element.job_id.partition("_")[0]


def _first_word(run: RunDir) -> RunState | None:
    """The run's state once its launcher has written one; None where it does not, or the run was taken away."""
    until_s = time.monotonic() + LAUNCHER_S
    while (state := read_state(run)) is None and run.path.is_dir() and time.monotonic() < until_s:
        time.sleep(LOOK_S)
    return state


def _here(run: RunDir, spec: RunSpec, environ: Mapping[str, str], archive: Path) -> Here:
    settings = spec.slurm or SlurmSettings()
    job_id, log = environ["SLURM_JOB_ID"], run.path / "slurm.log"
    if "SLURM_ARRAY_TASK_ID" in environ:
        job_id = f"{environ['SLURM_ARRAY_JOB_ID']}_{environ['SLURM_ARRAY_TASK_ID']}"
        log = log.with_name(f"slurm.log.{environ['SLURM_ARRAY_TASK_ID']}")
    job = SlurmJob(
        job_id=job_id,
        submitted_unix_s=time.time(),
        poll_s=settings.poll_s,
        answer_s=settings.answer_s,
        restarts=int(environ.get("SLURM_RESTART_COUNT", "0")),
        node=environ.get("SLURMD_NODENAME"),
    )
    return Here(job=job, log=log, archive=archive, signal_s=settings.signal_s)
