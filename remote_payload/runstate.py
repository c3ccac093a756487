"""What is written down of a run: its spec and its state, read, and the state moved on by one."""

import contextlib
import dataclasses
import os
import time
from pathlib import Path
from typing import Any

from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir, write_atomically
from remote_payload.schema import RunSpec, RunState, SchemaError, from_json, to_json

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
