"""The state of a run: reading it, moving it on by one, and finding out that its supervisor is gone."""

import contextlib
import dataclasses
import os
import time
from pathlib import Path
from typing import Any

from remote_payload import heartbeat, processes
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir, write_atomically
from remote_payload.schema import Failure, RunSpec, RunState, SchemaError, from_json, to_json

DAMAGE = (OSError, UnicodeDecodeError, SchemaError)
"""What reading a record raises that something else stands in the place of, or that cannot be read."""


def run_at(root: Path, run_id: str) -> RunDir:
    """The run's directory. Raises Refusal `no_such_run` when nobody ever claimed it."""
    run = RunDir(root / "runs" / run_id)
    if not run.path.is_dir():
        raise Refusal("no_such_run", f"no run of this id under {root / 'runs'}: {run_id}", "list the host's runs")
    return run


def read_state(run: RunDir) -> RunState | None:
    """The state as written; None when the launch never got so far. Raises Refusal on a damaged file."""
    with contextlib.suppress(*DAMAGE):
        return _parse_state(run)
    time.sleep(0.05)  # see `overwrite`
    try:
        return _parse_state(run)
    except DAMAGE as error:
        message = f"the run's state is damaged: {error}: {run.state}"
        raise Refusal("no_such_run", message, "`cancel` ends what still runs of it; then run again") from None


def _parse_state(run: RunDir) -> RunState | None:
    try:
        state = from_json(RunState, run.state.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    if state.run_id != run.path.name:
        raise SchemaError(f"$.run_id: expected {run.path.name}, found: {state.run_id}")
    return state


def read_spec(run: RunDir) -> RunSpec:
    """What was asked. Raises FileNotFoundError before it was written, Refusal on a damaged file."""
    try:
        return from_json(RunSpec, run.spec.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except DAMAGE as error:
        raise Refusal("no_such_run", f"the run's spec is damaged: {error}: {run.spec}") from None


def advance(run: RunDir, state: RunState, *, durable: bool = True, **changes: Any) -> RunState:
    """Write the next state: `changes` applied, `sequence` one up. Raises OSError (the old state stays whole)."""
    following = dataclasses.replace(state, sequence=state.sequence + 1, **changes)
    write_atomically(run.state, to_json(following).encode("ascii"), durable=durable)
    return following


def overwrite(run: RunDir, state: RunState, **changes: Any) -> None:
    """As `advance`, for a disk so full that no new file fits: into the blocks that the state already has.

    Not atomic; a reader in that very moment may see a damaged file and must look again. Raises OSError.
    """
    following = dataclasses.replace(state, sequence=state.sequence + 1, **changes)
    if following.failure is not None:
        following = dataclasses.replace(following, failure=dataclasses.replace(following.failure, details=()))
    with run.state.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        file.write(to_json(following).encode("ascii").ljust(size))
        file.truncate()


def current_state(run: RunDir, slurm_s: float | None = None) -> RunState | None:
    """The state after a look at the supervisor: `lost`, written for everybody, when it died without a final state.

    `slurm_s`: how long a Slurm that has to be asked may keep the caller, who then gets its last answer; None = as long
    as the host's settings let it.
    """
    state = read_state(run)
    if state is not None and state.slurm is not None and not state.is_terminal:
        from remote_payload.slurm.settle import told  # noqa: PLC0415 - few hosts have a Slurm

        return told(run, state, state.slurm, slurm_s)
    if state is None or state.is_terminal or is_supervised(run, state):
        return state
    again = read_state(run)  # it may have finished between the two looks; its lock outlives its last write
    if again is None or again.is_terminal:
        return again
    return _declare_lost(run, again)


def is_supervised(run: RunDir, state: RunState) -> bool:
    """Whether the supervisor lives: by its lock, else by pid and start, else (seen from another host) by its beats."""
    if heartbeat.is_held(run.heartbeat):
        return True
    beat = heartbeat.read_beat(run.heartbeat)
    if beat is not None and beat.host != os.uname().nodename:
        return _still_beats(run, beat.count)
    return (
        state.boot_id == processes.boot_id()
        and state.supervisor_pid is not None
        and state.supervisor_start_ticks is not None
        and processes.is_running(state.supervisor_pid, state.supervisor_start_ticks)
    )


def _still_beats(run: RunDir, count: int) -> bool:
    """Watch the counter of a supervisor on another host (a home that hosts share) for two and a half beats."""
    until_s = time.monotonic() + 2.5 * heartbeat.BEAT_S
    while time.monotonic() < until_s:
        time.sleep(0.1)
        beat = heartbeat.read_beat(run.heartbeat)
        if beat is not None and beat.count != count:
            return True
    return False


def _declare_lost(run: RunDir, state: RunState) -> RunState:
    rebooted = state.boot_id != processes.boot_id()
    cause = "the host rebooted" if rebooted else "it was killed or crashed"
    orphans = () if rebooted else processes.marked(str(run.path))
    note = None
    if orphans:
        note = f"processes of the run still alive: {', '.join(map(str, orphans))}; `cancel` ends them"
    changes: dict[str, Any] = {
        "phase": "lost",
        "finished_unix_s": time.time(),
        "failure": Failure(
            kind="supervisor",
            message=f"supervisor {state.supervisor_pid} is gone and left no final state: {cause}",
            hint="look into the host's kernel log for the reason, then run again",
        ),
        "note": note,
    }
    with contextlib.suppress(OSError):  # a full or read-only disk: the finding stands, the next look finds it again
        return advance(run, state, **changes)
    return dataclasses.replace(state, sequence=state.sequence + 1, **changes)
