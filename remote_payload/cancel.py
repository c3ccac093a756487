"""`cancel`: end a run's whole tree - through its supervisor while that lives, else by what the kernel tells.

A run's state may be damaged, gone, or an old copy, and its very folder removed, while supervisor and worker live on.
So whatever the state says, at the end nothing may carry the run's mark or hold its heartbeat.
"""

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable

from remote_payload import leftovers, processes
from remote_payload.claim import absolute_root, lock_claim
from remote_payload.frames import Send
from remote_payload.heartbeat import beat_age_s
from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal, disk_refusal
from remote_payload.rundir import RunDir, write_atomically
from remote_payload.runstate import advance
from remote_payload.schema import CancelAnswer, CancelFrame, CancelRequest, PulseFrame, RunState
from remote_payload.watch import KILL_PATIENCE_S

LOOK_S = 0.02
PULSE_S = 2.0
SUPERVISOR_PATIENCE_S = KILL_PATIENCE_S + 5.0
"""Beyond the grace; a supervisor that has not settled its run by then is stuck and is killed itself."""
GONE_PATIENCE_S = 5.0


def cancel(request: CancelRequest, send: Send) -> None:
    """Answer with a CancelFrame once the run is over and nothing of it is left, or with who is. Raises Refusal."""
    root = absolute_root(request.root)
    run = RunDir(root / "runs" / request.run_id)
    try:
        was_terminal, state = _known_state(run, request.run_id)
    except Refusal as problem:  # there is no state to go by
        send(CancelFrame(answer=_cancel_unknown(run, request, problem, send)))
        return
    if state.slurm is not None:
        send(CancelFrame(answer=_cancel_job(run, state, request.grace_s, send)))
        return
    if not state.is_terminal:
        state = _through_supervisor(run, state, request.grace_s, send)
    ended, survivors = leftovers.end(run, request.grace_s, LOOK_S)
    if not was_terminal:  # pids of long ago may be others' by now
        survivors = tuple(sorted({*survivors, *(pid for pid in state.survivors if processes.is_alive(pid))}))
    state = _noted(run, state, ended, survivors)
    answer = CancelAnswer(state=state, was_terminal=was_terminal, survivors=survivors, ended=ended)
    send(CancelFrame(answer=answer))


def _cancel_job(run: RunDir, state: RunState, grace_s: float, send: Send) -> CancelAnswer:
    """Of a run under Slurm: its processes are on another host, and Slurm ends them."""
    if state.is_terminal:
        return CancelAnswer(state=state, was_terminal=True)
    from remote_payload.slurm.cancel import cancel_job  # noqa: PLC0415 - few hosts have a Slurm

    _ask(run, grace_s)
    return cancel_job(run, state, grace_s, lambda: send(PulseFrame()))


def _known_state(run: RunDir, run_id: str) -> tuple[bool, RunState]:
    """Whether it was over before, and its state; a claim that never started gets one. Raises Refusal without either."""
    if not run.path.is_dir():
        raise Refusal("no_such_run", f"no run of this id under {run.path.parent}: {run_id}", "list the host's runs")
    state = current_state(run)
    return (state.is_terminal, state) if state is not None else (False, _settle_unstarted(run, run_id))


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
        if leftovers.supervisors(run):
            raise Refusal("no_such_run", f"the run's state was removed: {run.state}")
        note = "its state was removed" if run.heartbeat.exists() else "never started"
        first = RunState(run_id=run_id, sequence=0, phase="cancelled", finished_unix_s=time.time(), note=note)
        return advance(run, first)
    except OSError as error:
        raise disk_refusal(error, f"cancel in {run.path}") from None
    finally:
        os.close(claim)


def _cancel_unknown(run: RunDir, request: CancelRequest, problem: Refusal, send: Send) -> CancelAnswer:
    """End what lives of a run that has no state to go by; when nothing does, its `problem` is the answer (raised)."""
    supervisors, before = leftovers.supervisors(run), leftovers.alive(run)
    if not before:
        if run.path.is_dir():
            problem.message += "; none of its processes is alive on this host"
        raise problem
    _ask(run, request.grace_s)
    processes.signal_all(supervisors, signal.SIGTERM)
    _wait_until_over(run, request.grace_s + SUPERVISOR_PATIENCE_S, send, lambda: bool(leftovers.supervisors(run)))
    ended, survivors = leftovers.end(run, request.grace_s, LOOK_S)
    state = _settle_unknown(run, request.run_id, problem)
    ended = tuple(sorted({*before, *ended} - {*survivors}))
    return CancelAnswer(state=state, was_terminal=False, survivors=survivors, ended=ended)


def _settle_unknown(run: RunDir, run_id: str, problem: Refusal) -> RunState:
    """The state that its supervisor left after all; else one of ours, the damaged one set aside."""
    found = _terminal_state(run)
    if found is not None:
        return found
    note = f"ended by `cancel`: {problem.message}"
    state = RunState(run_id=run_id, sequence=0, phase="cancelled", finished_unix_s=time.time(), note=note)
    if not run.path.is_dir():
        return state
    with contextlib.suppress(OSError):
        run.state.rename(run.state.with_name("state.json.damaged"))
    with contextlib.suppress(OSError):
        return advance(run, state)
    return state


def _through_supervisor(run: RunDir, state: RunState, grace_s: float, send: Send) -> RunState:
    """Ask, wake the supervisor, wait until the state is terminal; kill a supervisor that is stuck."""
    _ask(run, grace_s)
    _signal_supervisor(state, signal.SIGTERM)
    found = _wait_until_over(run, grace_s + SUPERVISOR_PATIENCE_S, send, lambda: True)
    if found is None:
        _signal_supervisor(state, signal.SIGKILL)
        found = _wait_until_over(run, GONE_PATIENCE_S, send, lambda: True)
    return found or state


def _ask(run: RunDir, grace_s: float) -> None:
    with contextlib.suppress(OSError):  # a full disk: the signal alone asks too, with the default grace
        write_atomically(run.cancel, json.dumps({"grace_s": grace_s}).encode("ascii"))


def _wait_until_over(run: RunDir, patience_s: float, send: Send, is_awaited: Callable[[], bool]) -> RunState | None:
    """The terminal state, None when there is none after `patience_s`, or nobody is left (`is_awaited`) to write one.

    Pulses tell the laptop that the link is alive.
    """
    now_s = pulsed_s = time.monotonic()
    until_s = now_s + patience_s
    while now_s < until_s and is_awaited():
        found = _terminal_state(run)
        if found is not None:
            return found
        time.sleep(LOOK_S)
        now_s = time.monotonic()
        if now_s - pulsed_s >= PULSE_S:
            pulsed_s = now_s
            send(PulseFrame(heartbeat_age_s=beat_age_s(run.heartbeat)))
    return None


def _terminal_state(run: RunDir) -> RunState | None:
    with contextlib.suppress(Refusal):  # damaged: there may be a whole one at the next look
        found = current_state(run)
        return found if found is not None and found.is_terminal else None
    return None


def _signal_supervisor(state: RunState, number: signal.Signals) -> None:
    if state.supervisor_pid is None or state.supervisor_start_ticks is None or state.boot_id != processes.boot_id():
        return
    with contextlib.suppress(PermissionError):  # another user's run: the state will show that nothing happened
        processes.send_signal(state.supervisor_pid, state.supervisor_start_ticks, number)


def _noted(run: RunDir, state: RunState, ended: tuple[int, ...], survivors: tuple[int, ...]) -> RunState:
    """The state with what became of the processes that outlived their supervisor."""
    if survivors:
        note = "some of its processes cannot be ended"
    elif ended:
        note = f"`cancel` ended what was left of it, processes: {', '.join(map(str, ended))}"
    elif state.phase == "lost" and state.note is not None:
        note = None  # it named processes that are gone
    else:
        return state
    with contextlib.suppress(OSError):
        return advance(run, state, note=note, survivors=survivors)
    return state
