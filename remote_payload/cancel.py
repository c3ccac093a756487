"""`cancel`: end a run's whole tree, through its supervisor while that lives, by the run's mark when it does not."""

import contextlib
import json
import os
import signal
import time

from remote_payload import processes
from remote_payload.claim import absolute_root, lock_claim
from remote_payload.frames import Send
from remote_payload.heartbeat import beat_age_s
from remote_payload.refusal import disk_refusal
from remote_payload.rundir import RunDir, write_atomically
from remote_payload.runstate import advance, current_state, run_at
from remote_payload.schema import CancelAnswer, CancelFrame, CancelRequest, PulseFrame, RunState
from remote_payload.watch import KILL_PATIENCE_S

LOOK_S = 0.02
PULSE_S = 2.0
SUPERVISOR_PATIENCE_S = KILL_PATIENCE_S + 5.0
"""Beyond the grace; a supervisor that has not settled its run by then is stuck and is killed itself."""
GONE_PATIENCE_S = 5.0


def cancel(request: CancelRequest, send: Send) -> None:
    """Answer with a CancelFrame once the run is over and nothing of it is left, or with who is. Raises Refusal."""
    run = run_at(absolute_root(request.root), request.run_id)
    state = current_state(run)
    was_terminal = state is not None and state.is_terminal
    if state is None:
        state = _settle_unstarted(run, request.run_id)
    if not state.is_terminal:
        state = _through_supervisor(run, state, request.grace_s, send)
    survivors = state.survivors
    if state.phase == "lost":
        survivors = _end_marked(run, request.grace_s)
        state = _noted(run, state, survivors)
    send(CancelFrame(answer=CancelAnswer(state=state, was_terminal=was_terminal, survivors=survivors)))


def _settle_unstarted(run: RunDir, run_id: str) -> RunState:
    """A run that was claimed and never started: cancelled from now on, also for a launch that is repeated."""
    try:
        claim = lock_claim(run)
    except OSError as error:
        raise disk_refusal(error, f"cancel in {run.path}") from None
    try:
        state = current_state(run)
        if state is not None:  # it started while we waited
            return state
        first = RunState(
            run_id=run_id, sequence=0, phase="cancelled", finished_unix_s=time.time(), note="never started"
        )
        return advance(run, first)
    finally:
        os.close(claim)


def _through_supervisor(run: RunDir, state: RunState, grace_s: float, send: Send) -> RunState:
    """Ask, wake the supervisor, wait until the state is terminal; kill a supervisor that is stuck."""
    with contextlib.suppress(OSError):  # a full disk: the signal alone asks too, with the default grace
        write_atomically(run.cancel, json.dumps({"grace_s": grace_s}).encode("ascii"))
    _signal_supervisor(state, signal.SIGTERM)
    found = _wait_until_over(run, grace_s + SUPERVISOR_PATIENCE_S, send)
    if found is None:
        _signal_supervisor(state, signal.SIGKILL)
        found = _wait_until_over(run, GONE_PATIENCE_S, send)
    return found or state


def _wait_until_over(run: RunDir, patience_s: float, send: Send) -> RunState | None:
    """The terminal state, None when there is none after `patience_s`. Pulses tell the laptop that the link is alive."""
    now_s = pulsed_s = time.monotonic()
    until_s = now_s + patience_s
    while now_s < until_s:
        found = current_state(run)
        if found is not None and found.is_terminal:
            return found
        time.sleep(LOOK_S)
        now_s = time.monotonic()
        if now_s - pulsed_s >= PULSE_S:
            pulsed_s = now_s
            send(PulseFrame(heartbeat_age_s=beat_age_s(run.heartbeat)))
    return None


def _signal_supervisor(state: RunState, number: signal.Signals) -> None:
    if state.supervisor_pid is None or state.supervisor_start_ticks is None or state.boot_id != processes.boot_id():
        return
    with contextlib.suppress(PermissionError):  # another user's run: the state will show that nothing happened
        processes.send_signal(state.supervisor_pid, state.supervisor_start_ticks, number)


def _end_marked(run: RunDir, grace_s: float) -> tuple[int, ...]:
    """TERM, grace, KILL for whoever carries the mark of a run without supervisor; returns those left."""
    mark = str(run.path)
    left = _ended_tree(mark, signal.SIGTERM)
    until_s = time.monotonic() + grace_s
    while left and time.monotonic() < until_s:
        time.sleep(LOOK_S)
        left = processes.marked(mark)
    until_s = time.monotonic() + KILL_PATIENCE_S
    while left and time.monotonic() < until_s:
        _ended_tree(mark, signal.SIGKILL)
        time.sleep(LOOK_S)
        left = processes.marked(mark)
    return left


def _ended_tree(mark: str, number: signal.Signals) -> tuple[int, ...]:
    """Signal the marked and, while their parents are known, the unmarked below them."""
    marked = processes.marked(mark)
    below = {pid for ancestor in marked for pid in processes.descendants(ancestor)} - set(marked)
    processes.signal_all((*marked, *below), number)
    return marked


def _noted(run: RunDir, state: RunState, survivors: tuple[int, ...]) -> RunState:
    note = "its processes were ended by `cancel`" if not survivors else "some of its processes cannot be ended"
    if state.note is None and not survivors:
        return state
    with contextlib.suppress(OSError):
        return advance(run, state, note=note, survivors=survivors)
    return state
