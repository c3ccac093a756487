"""The worker: reads the spec, runs the job of its kind, and names the reason when it gives up.

Exit codes: 0 done, 1 gave up for a reason it can name (failure.json), 70 a bug (failure.json and a traceback),
`DISK_FULL_EXIT_CODE` no room for failure.json.
"""

import contextlib
import os
import sys
import traceback
from pathlib import Path
from types import TracebackType

from remote_payload.event_log import EventLog
from remote_payload.failure import JobFailure
from remote_payload.outcome import DISK_FULL_EXIT_CODE
from remote_payload.refusal import MAKE_ROOM, is_disk_full
from remote_payload.rundir import RunDir, write_atomically
from remote_payload.runstate import read_spec
from remote_payload.schema import BenchJob, Failure, SelftestJob, SweepJob, job_from_json, to_json
from remote_payload.schema.capture_job import CaptureJob
from remote_payload.schema.hold import HoldJob

BUG_EXIT_CODE = 70


def work(run_directory: str, archive: Path) -> int:
    """Run the job of a run directory; returns the exit code. `archive` is the payload file."""
    run = RunDir(Path(run_directory))
    sys.excepthook = lambda kind, error, trace: _end_by(run, kind, error, trace)
    spec = read_spec(run)
    job = job_from_json(spec.job_json)
    log = EventLog(run.events)
    if isinstance(job, SelftestJob):
        from remote_payload import selftest  # noqa: PLC0415 - each job loads only what it needs

        selftest.run(job, run.result, log.report)
    elif isinstance(job, BenchJob):
        from remote_payload.sglang_bench import job as bench  # noqa: PLC0415 - needs no torch

        bench.run(job, run.result, log.report)
    elif isinstance(job, CaptureJob):
        from remote_payload.standalone.capture import served_job  # noqa: PLC0415 - torch

        served_job.run(job, run.result, log.report)
    elif isinstance(job, SweepJob):
        from remote_payload.sweep import job as sweep  # noqa: PLC0415 - needs no torch

        sweep.run(job, run, spec, archive, log.report)
    elif isinstance(job, HoldJob):
        from remote_payload.hold import job as hold  # noqa: PLC0415 - needs no torch

        hold.run(job, run, archive, log.report)
    else:
        from remote_payload.standalone import job as standalone  # noqa: PLC0415 - torch

        standalone.run(job, run.result, log.report)
    return 0


def failure_of(error: BaseException) -> tuple[Failure, int]:
    """Name an error: the failure to write down and the exit code."""
    if isinstance(error, JobFailure):
        return error.failure, 1
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] in ("torch", "safetensors"):
        message = f"the worker's Python lacks what this job needs: {error}: {sys.executable}"
        hint = "install torch and safetensors there, or name another interpreter as `python` for this host"
        return Failure(kind="machine", message=message, hint=hint), 1
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":  # the latter is torch's
        message = f"out of memory: {str(error) or type(error).__name__}"
        return Failure(kind="machine", message=message, hint="free memory on the host, or use a smaller job"), 1
    if is_disk_full(error):
        message = f"the host's disk or quota is full: {error}"
        return Failure(kind="disk_full", message=message, hint=MAKE_ROOM), 1
    lines = tuple(traceback.format_exception(error)[-20:])
    message = f"{type(error).__name__}: {error}"
    return Failure(kind="bug", message=message, hint="please report this with stderr.log", details=lines), BUG_EXIT_CODE


def _end_by(run: RunDir, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The process's excepthook: reason to failure.json, traceback to stderr.log, then out at once."""
    failure, code = failure_of(error)
    try:
        write_atomically(run.failure, to_json(failure).encode("ascii"))
    except OSError as full:
        code = DISK_FULL_EXIT_CODE if is_disk_full(full) else code
    with contextlib.suppress(OSError):  # the log may be on the same full disk
        sys.__excepthook__(kind, error, trace)
        sys.stderr.flush()
        sys.stdout.flush()
    os._exit(code)
