"""How a run ended -> the error to raise. Pure."""

from dataclasses import replace

from orchestrator.errors import (
    CheckpointError,
    HostNotReadyError,
    JobCancelledError,
    JobError,
    JobKilledError,
    JobLostError,
    JobOutOfMemoryError,
    JobTimedOutError,
    RowsError,
)
from orchestrator.flags import told_in_flags
from remote_payload.schema import Failure, RunState

_BY_FAILURE: dict[str, type[JobError] | type[HostNotReadyError]] = {
    "checkpoint": CheckpointError,
    "rows": RowsError,
    "machine": HostNotReadyError,
    "disk_full": HostNotReadyError,
}


def error_of(state: RunState, *, job_kind: str, host: str) -> JobError | HostNotReadyError | None:
    """The error that a terminal state means; None for a run that succeeded or is not over.

    `host` is its name as the user gave it, for the command that goes on with the work.
    """
    run, again = f"run {state.run_id}", _again(state.run_id, job_kind, host)
    logs = f"`eagle3-remote logs {state.run_id}` shows what the job printed"
    if state.phase == "failed":
        failure = state.failure if job_kind in ("bench", "capture") else None
        error = _failed(state, logs) if failure is None else _failed_bench(failure, logs)
        error.hint = _at(host, error.hint)
        return error
    if state.phase == "killed":
        return JobKilledError(f"{run}: the job was ended by {state.signal or 'a signal'}", hint=f"{logs}; {again}")
    if state.phase == "out_of_memory":
        return JobOutOfMemoryError(
            f"{run}: the kernel ended the job because memory ran out",
            hint="what the server loads does not fit: look at the host's `free` and its cgroup's limit, or take another"
            if job_kind == "bench"
            else "one row is in memory at a time, so fewer rows do not help: try --dtype bfloat16, or another host",
        )
    if state.phase == "timed_out":
        return JobTimedOutError(
            f"{run}: the deadline passed", hint=f"raise `deadline_s` in eagle3.toml, or {_less(job_kind)}; {again}"
        )
    if state.phase == "cancelled":
        return JobCancelledError(f"{run}: cancelled", hint=again if job_kind == "sweep" else None)
    if state.phase == "lost":
        return JobLostError(
            f"{run}: its supervisor is gone without a final state ({state.note or 'killed, or the host rebooted'})",
            hint=f"`eagle3-remote attach {state.run_id}` brings home what its worker left once nothing of it runs, "
            f"`eagle3-remote cancel {state.run_id}` ends what may be left of it; else {again}",
        )
    return None


def _at(host: str, hint: str | None) -> str | None:
    """A hint of the host's own, which does not know by what name it is called here."""
    return None if hint is None else hint.replace("--host NAME", f"--host {host}").replace("top NAME", f"top {host}")


def _less(job_kind: str) -> str:
    """What makes a job of that kind shorter."""
    return "ask for fewer loads, --repeats or --requests" if job_kind == "bench" else "lower --max-rows"


def _again(run_id: str, job_kind: str, host: str) -> str:
    """How the work goes on; only a sweep and the standalone test keep what they have finished."""
    if job_kind == "sweep":
        return f"`eagle3-remote sweep resume {run_id}` measures what is left"
    if job_kind != "standalone":
        return "launch it again"
    command = f"eagle3-remote run standalone --host {host} --resume {run_id}"
    return f"`{command}` asks for the same job again and takes over the rows that were finished"


def _failed(state: RunState, logs: str) -> JobError | HostNotReadyError:
    failure = state.failure
    if failure is None:
        return JobError(f"run {state.run_id}: the job failed with exit code {state.exit_code}", hint=logs)
    return _BY_FAILURE.get(failure.kind, JobError)(_words(failure), hint=failure.hint or logs)


def _failed_bench(failure: Failure, logs: str) -> JobError | HostNotReadyError:
    """In flags. Where the server's log is, too long to come home, the details say: not every server has one of ours."""
    hint = None if failure.hint is None else told_in_flags("bench", failure.hint)
    if failure.kind == "rows" and hint is None:
        hint = "each line of --prompts is an object with `input_ids`, `messages` or `text`"
    told = replace(failure, message=told_in_flags("bench", failure.message), hint=hint)
    return _BY_FAILURE.get(failure.kind, JobError)(_words(told), hint=told.hint or logs)


def _words(failure: Failure) -> str:
    return "\n".join([failure.message, *(f"  - {detail}" for detail in details_beside(failure))])


def details_beside(failure: Failure) -> tuple[str, ...]:
    """The details but the line that the message quotes at its end: it is told once."""
    return tuple(detail for detail in failure.details if not failure.message.endswith(detail.strip()))


def cause_of(state: RunState) -> str | None:
    """Why a run ended before it was done, in a few words; None for one that was done, or is not over."""
    failure = state.failure.message.splitlines()[0] if state.failure is not None and state.failure.message else ""
    words = {
        "failed": failure or f"it failed with exit code {state.exit_code}",
        "killed": f"ended by {state.signal or 'a signal'}",
        "out_of_memory": "the kernel ended it because memory ran out",
        "timed_out": "the deadline passed",
        "cancelled": "somebody cancelled it",
        "lost": "its supervisor is gone without a final state",
    }
    return words.get(state.phase)
