"""How a sweep is told whose supervisor was killed alone: it runs while its worker does, and is lost after that."""

import dataclasses

from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.runstate import read_spec
from remote_payload.schema import RunState
from remote_payload.sweep.succession import drivers


def as_told(run: RunDir, state: RunState) -> RunState:
    """The state of any run for those who ask; what is written of it stays."""
    return with_drivers(state, drivers(run)) if state.phase == "lost" and _is_sweep(run) else state


def with_drivers(state: RunState, pids: tuple[int, ...]) -> RunState:
    """A lost sweep's state while these drive it on. The number stays: it is the same state, read another way."""
    if not pids:
        return state
    note = f"its supervisor is gone, driven by pid {', '.join(map(str, pids))}; `cancel` ends it"
    return dataclasses.replace(state, phase="running", finished_unix_s=None, failure=None, note=note)


def _is_sweep(run: RunDir) -> bool:
    try:
        return read_spec(run).job_kind == "sweep"
    except (OSError, Refusal):
        return False
