"""`sweep`: every attempt so far, and the state of the sweep's own run; the unit under way as it is now."""

import contextlib
import dataclasses
from pathlib import Path

from remote_payload.claim import absolute_root
from remote_payload.frames import Send
from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.runstate import read_spec, run_at
from remote_payload.schema import (
    TERMINAL_PHASES,
    EndFrame,
    Failure,
    PointOutcome,
    SchemaError,
    SweepAttempt,
    SweepFrame,
    SweepRequest,
    job_from_json,
)
from remote_payload.sweep.driven import with_drivers
from remote_payload.sweep.ledger import read_ledger
from remote_payload.sweep.outcome import outcomes_of
from remote_payload.sweep.succession import drivers

A_FRAME = 200
"""Attempts a frame: some 400 bytes each."""


def progress(request: SweepRequest, send: Send) -> None:
    """Answer with SweepFrames, the last with the state. Raises Refusal `no_such_run`."""
    run = run_at(absolute_root(request.root), request.run_id)
    state = current_state(run)
    if state is None:
        raise Refusal("no_such_run", f"this sweep was claimed but never started: {request.run_id}", "launch it again")
    attempts = [_now(attempt, run) for attempt in read_ledger(run)]
    if state.slurm is not None and not state.is_terminal:
        from remote_payload.slurm.elements import unbegun  # noqa: PLC0415 - few hosts have a Slurm

        attempts += unbegun(run, state, attempts)
    for first in range(0, len(attempts), A_FRAME):
        send(SweepFrame(attempts=tuple(attempts[first : first + A_FRAME])))
    left = drivers(run) if state.phase == "lost" else ()
    send(SweepFrame(attempts=(), state=with_drivers(state, left), drivers=left))
    send(EndFrame())


def _now(attempt: SweepAttempt, sweep: RunDir) -> SweepAttempt:
    """An attempt whose end nobody wrote down, as its own run tells: it goes on, or ended with its sweep."""
    run = RunDir(sweep.path.parent / attempt.run_id)
    if attempt.phase in TERMINAL_PHASES:
        return _without_result(attempt, run) if attempt.phase == "succeeded" else attempt
    if not run.path.is_dir():
        return _never_begun(attempt, sweep)
    with contextlib.suppress(Refusal, OSError, SchemaError):
        state = current_state(run)
        if state is not None:
            attempt = dataclasses.replace(
                attempt, phase=state.phase, failure=state.failure, finished_unix_s=state.finished_unix_s
            )
            if state.is_terminal:
                job = job_from_json(read_spec(run).job_json)
                ids = [outcome.point_id for outcome in attempt.points]
                attempt = dataclasses.replace(attempt, points=outcomes_of(ids, job, state, run, with_sweep=True))
            return attempt
    return dataclasses.replace(attempt, phase="lost")


def _without_result(attempt: SweepAttempt, run: RunDir) -> SweepAttempt:
    """A unit that its sweep saw succeed, and of which a power cut or a hand left no result: nothing came of it.

    What was cleaned away as a whole has come home before, and counts.
    """
    if not run.path.is_dir() or all(_has_content(path) for path in (run.state, run.manifest)):
        return attempt
    message = f"it was measured, and its result is lost on the host: {run.state} or {run.manifest} is gone or empty"
    return dataclasses.replace(
        attempt,
        points=tuple(PointOutcome(point_id=one.point_id, end="cancelled") for one in attempt.points),
        failure=Failure(kind="supervisor", message=message, hint="`sweep resume` measures these points again"),
    )


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _never_begun(attempt: SweepAttempt, sweep: RunDir) -> SweepAttempt:
    """Written down, and its run was not made: it is about to be, or its sweep ended over it, as on a full disk."""
    with contextlib.suppress(Refusal):
        state = current_state(sweep)
        if state is not None and state.is_terminal:
            return dataclasses.replace(
                attempt, phase="failed", failure=state.failure, finished_unix_s=state.finished_unix_s
            )
    return attempt
