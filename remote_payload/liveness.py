"""The state of a run now: after a look whether its supervisor lives, for a state file outlives whoever wrote it."""

import contextlib
import dataclasses
import os
import time
from typing import Any

from remote_payload import heartbeat, processes
from remote_payload.rundir import RunDir
from remote_payload.runstate import advance, read_state
from remote_payload.schema import Failure, RunState


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
