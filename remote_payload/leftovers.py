"""What lives of a run, asked of the kernel and of no file: who carries its mark, and who keeps its heartbeat."""

import os
import signal
import time

from remote_payload import processes
from remote_payload.rundir import RunDir
from remote_payload.watch import KILL_PATIENCE_S

EXIT_PATIENCE_S = 1.0
"""A supervisor that has written its final state is about to exit by itself."""

COMMANDS = (b".pyz\0launch\0", b".pyz\0work\0")
"""In a supervisor's command line: it is a fork of its launcher, or of the worker of the sweep it is a unit of."""


def supervisors(run: RunDir) -> tuple[int, ...]:
    """Processes that have the run's heartbeat open for writing, also when it was removed since."""
    return processes.writers(str(run.heartbeat), COMMANDS)


def alive(run: RunDir) -> tuple[int, ...]:
    """Supervisors and marked processes. Not covered: those that cleared their environment, and other users'."""
    return tuple(sorted({*supervisors(run), *processes.marked(str(run.path))}))


def end(run: RunDir, grace_s: float, look_s: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """TERM, grace, KILL for whoever lives of a run that should be over; returns those ended and those left."""
    left = _wait(run, EXIT_PATIENCE_S if supervisors(run) else 0.0, look_s)
    if not left:
        return (), ()
    seen = set(left) | _signal_tree(left, signal.SIGTERM)
    left = _wait(run, grace_s, look_s)
    until_s = time.monotonic() + KILL_PATIENCE_S
    while left and time.monotonic() < until_s:
        seen |= set(left) | _signal_tree(left, signal.SIGKILL)
        time.sleep(look_s)
        left = alive(run)
    return tuple(sorted(seen - set(left))), left


def _wait(run: RunDir, patience_s: float, look_s: float) -> tuple[int, ...]:
    """Those who are still there when nobody is any more, or after `patience_s`."""
    until_s = time.monotonic() + patience_s
    while (left := alive(run)) and time.monotonic() < until_s:
        time.sleep(look_s)
    return left


def _signal_tree(pids: tuple[int, ...], number: signal.Signals) -> set[int]:
    """Signal these and, while their parents are known, the unmarked below them; returns the latter."""
    below = {pid for ancestor in pids for pid in processes.descendants(ancestor)} - {*pids, os.getpid()}
    processes.signal_all((*pids, *below), number)
    return below
