"""Submission: the batch script, the words for sbatch, and the queued run that comes of it.

The script holds constants alone - interpreter, payload, run directory, each quoted -; what is to be done stands in the
run directory, as for every run.
"""

import contextlib
import math
import os
import shlex
import sys
import time
from pathlib import Path

from remote_payload.claim import remove_unstarted
from remote_payload.failure import JobFailure, job_failure
from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal, disk_refusal
from remote_payload.rundir import RunDir
from remote_payload.runstate import advance, read_state, run_at
from remote_payload.schema import RunSpec, RunState, SweepJob, job_from_json
from remote_payload.schema.slurm import SlurmJob, SlurmSettings, seconds_of
from remote_payload.schema.waiting import Waiting
from remote_payload.slurm import secrets as kept
from remote_payload.slurm.elements import elements_of, units_of
from remote_payload.slurm.texts import job_id_in
from remote_payload.slurm.tools import NoAnswerError, SlurmError, ask
from remote_payload.waiting import start_of

LOG = "slurm.log"
"""In the run directory: what Slurm and the batch job's own shell said."""


def submit(run: RunDir, spec: RunSpec, values: dict[str, str], archive: Path) -> RunState:
    """Hand the run over to Slurm; the state that is there then. `values` are its secrets. Raises Refusal."""
    settings = spec.slurm or SlurmSettings()
    root = run.path.parent.parent
    elements = elements_of(spec)
    _require_none_to_wait_for(run, spec)
    try:
        words = sbatch_words(run, spec, settings, elements)
        kept.keep(root, spec.run_id, values)
        job_id = _id_told(ask(words, settings.answer_s, script=script_of(run, archive)))
    except (SlurmError, OSError, JobFailure) as problem:
        if isinstance(problem, NoAnswerError):
            _take_back(run, settings)
        kept.forget(root, spec.run_id)
        remove_unstarted(run)  # a job that was taken all the same finds no run, and ends
        if isinstance(problem, OSError):
            raise disk_refusal(problem, f"keep the secrets of {spec.run_id}") from None
        words_of = problem.failure.message if isinstance(problem, JobFailure) else str(problem)
        raise Refusal("supervisor_did_not_start", f"not submitted: {words_of}", _HINT) from None
    taken = read_state(run)
    if taken is not None:  # by the job of an earlier launch, whose launcher did not live to say so
        with contextlib.suppress(SlurmError):
            ask(["scancel", "--quiet", job_id], settings.answer_s)
        return taken
    job = SlurmJob(
        job_id=job_id,
        submitted_unix_s=time.time(),
        poll_s=settings.poll_s,
        answer_s=settings.answer_s,
        elements=elements,
    )
    first = RunState(
        run_id=spec.run_id, sequence=0, phase="queued", slurm=job, note=f"submitted to Slurm as job {job_id}"
    )
    return advance(run, first)


def _require_none_to_wait_for(run: RunDir, spec: RunSpec) -> None:
    """An element that waited for a start of an earlier sweep would hold its node meanwhile. Raises Refusal."""
    job = job_from_json(spec.job_json) if spec.job_kind == "sweep" else None
    going = sorted({unit.adopt for unit in job.units if unit.adopt} if isinstance(job, SweepJob) else ())
    if going:
        remove_unstarted(run)
        hint = "resume once it has ended, and what it measured counts; `eagle3-remote cancel RUN` ends it"
        raise Refusal("sweep_goes_on", f"a start of the earlier sweep may still go on: {', '.join(going)}", hint)


def _id_told(told: str) -> str:
    """The job's id in what sbatch, or a wrapper of the site's around it, prints. Raises NoAnswerError without one."""
    found = job_id_in(told)
    if found is None:
        raise NoAnswerError(f"sbatch did not tell a job id: {told.strip()[-200:]!r}")
    return found


def _take_back(run: RunDir, settings: SlurmSettings) -> None:
    """End what Slurm took all the same, known by its folder; what it takes later finds no run, or that it is not it."""
    with contextlib.suppress(SlurmError):
        told = ask(["squeue", "--noheader", f"--user={os.getuid()}", "--format=%F|%Z"], settings.answer_s)
        lines = (line.partition("|") for line in told.splitlines())
        jobs = sorted({job_id for job_id, _, folder in lines if folder.strip() == str(run.path)})
        if jobs:
            ask(["scancel", "--quiet", *jobs], settings.answer_s)


_HINT = "`eagle3-remote hosts check` shows this host's Slurm; [hosts.NAME.slurm] in eagle3.toml says how to submit"


def script_of(run: RunDir, archive: Path) -> str:
    """The batch script. `exec`: the signals that Slurm sends the batch shell are for the supervisor."""
    return f"#!/bin/sh\nexec {shlex.join([sys.executable, '-I', '-S', str(archive), 'batch', str(run.path)])}\n"


def sbatch_words(run: RunDir, spec: RunSpec, settings: SlurmSettings, elements: int | None) -> list[str]:
    """The call of sbatch. Raises JobFailure for a start or a forerunner that cannot be."""
    waiting = spec.waiting or Waiting()
    log = str(run.path / LOG).replace("%", "%%") + ("" if elements is None else ".%a")  # sbatch replaces these
    words = ["sbatch", "--parsable", "--requeue", "--nodes=1", "--ntasks=1", "--open-mode=append", "--export=ALL"]
    words += [f"--job-name=e3r.{spec.run_id}", f"--chdir={run.path}", f"--output={log}"]
    words += [f"--signal=B:USR2@{settings.signal_s}"]
    if elements is not None:
        limit = f"%{settings.array_limit}" if settings.array_limit else ""
        words.append(f"--array=0-{elements - 1}{limit}")
    gres = settings.gres or (f"gpu:{waiting.gpus}" if waiting.gpus else None)
    told = {
        "partition": settings.partition,
        "gres": gres,
        "account": settings.account,
        "qos": settings.qos,
        "time": time_of(settings.time, units_of(spec), elements),
        "cpus-per-task": settings.cpus,
        "mem": settings.mem,
    }
    words += [f"--{name}={value}" for name, value in told.items() if value is not None]
    due_s = start_of(waiting, time.time())
    if due_s is not None:
        words.append(f"--begin={time.strftime('%Y-%m-%dT%H:%M:%S', time.localtime(max(due_s, time.time())))}")
    jobs = [job_id for run_id in waiting.after if (job_id := _forerunner(run, run_id)) is not None]
    if jobs:
        words.append(f"--dependency=afterany:{':'.join(jobs)}")
    return [*words, *settings.options]


def time_of(limit: str | None, units: int, elements: int | None) -> str | None:
    """The time limit of a job: that of a unit, times the units that an element has in turn. In one of Slurm's forms."""
    in_turn = 1 if elements is None else -(-units // elements)
    seconds = None if limit is None else seconds_of(limit)
    if seconds is None or in_turn == 1:
        return limit
    minutes = math.ceil(seconds * in_turn / 60)
    return f"{minutes // 1440}-{minutes // 60 % 24:02}:{minutes % 60:02}:00"


def _forerunner(run: RunDir, run_id: str) -> str | None:
    """The job to wait for; None where that run is over. Raises JobFailure where Slurm does not know it."""
    try:
        state = current_state(run_at(run.path.parent.parent, run_id))
    except Refusal as problem:
        raise _cannot_wait(run_id, problem.message) from None
    if state is not None and state.is_terminal:
        return None
    if state is None or state.slurm is None:
        raise _cannot_wait(run_id, "it is not a run of Slurm, which alone could wait for it")
    return state.slurm.job_id


def _cannot_wait(run_id: str, why: str) -> JobFailure:
    return job_failure(f"cannot wait for {run_id}: {why}")
