"""How a run ended -> the error to raise. Pure."""

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
from remote_payload.schema import Failure, RunState

_BY_FAILURE: dict[str, type[JobError] | type[HostNotReadyError]] = {
    "checkpoint": CheckpointError,
    "rows": RowsError,
    "machine": HostNotReadyError,
    "disk_full": HostNotReadyError,
}


def error_of(state: RunState) -> JobError | HostNotReadyError | None:
    """The error that a terminal state means; None for a run that succeeded or is not over."""
    run = f"run {state.run_id}"
    logs = f"`eagle3-remote logs {state.run_id}` shows what the job printed"
    if state.phase == "failed":
        return _failed(state, logs)
    if state.phase == "killed":
        return JobKilledError(f"{run}: the job was ended by {state.signal or 'a signal'}", hint=logs)
    if state.phase == "out_of_memory":
        return JobOutOfMemoryError(
            f"{run}: the kernel ended the job because memory ran out",
            hint="one row is in memory at a time, so fewer rows do not help: try --dtype bfloat16, or another host",
        )
    if state.phase == "timed_out":
        return JobTimedOutError(
            f"{run}: the deadline passed", hint="raise `deadline_s` in eagle3.toml, or lower --max-rows"
        )
    if state.phase == "cancelled":
        return JobCancelledError(f"{run}: cancelled")
    if state.phase == "lost":
        return JobLostError(
            f"{run}: its supervisor is gone without a final state ({state.note or 'killed, or the host rebooted'})",
            hint="launch it again; `eagle3-remote cancel` ends what may be left of it",
        )
    return None


def _failed(state: RunState, logs: str) -> JobError | HostNotReadyError:
    failure = state.failure
    if failure is None:
        return JobError(f"run {state.run_id}: the job failed with exit code {state.exit_code}", hint=logs)
    return _BY_FAILURE.get(failure.kind, JobError)(_words(failure), hint=failure.hint or logs)


def _words(failure: Failure) -> str:
    return "\n".join([failure.message, *(f"  - {detail}" for detail in failure.details)])
