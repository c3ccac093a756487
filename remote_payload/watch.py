"""Watching a tree of processes until none is left: reaping, deadline, stop requests, and the way from TERM to KILL."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from remote_payload import processes
from remote_payload.outcome import StopReason

LEFTOVER_GRACE_S = 1.0
"""Between TERM and KILL for processes that outlived their worker."""
DEADLINE_GRACE_S = 5.0
UNITS_S = 3.0
"""How much longer the tree of a sweep gets, so that its units' own supervisors can settle their runs."""
KILL_PATIENCE_S = 10.0
"""After this long under SIGKILL a process counts as a survivor (uninterruptible sleep, another user's)."""
IDLE_S, KILLING_S = 1.0, 0.01
"""Longest pauses between two looks; a child's end or a TERM wakes the watch at once."""
WATCHED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGUSR2)
ASKING = (signal.SIGTERM, signal.SIGINT)
TIME_LIMIT = signal.SIGUSR2
"""A batch system's word that its time limit is near. Not USR1, which NCCL takes for itself."""


@dataclass(frozen=True, kw_only=True)
class Watched:
    """How it went: the worker's wait status (None: it survived), why it was stopped, who could not be killed."""

    wait_status: int | None
    stopped: StopReason | None
    survivors: tuple[int, ...] = ()


class Watch:
    """The watch over a worker's tree by its subreaper, which must have WATCHED blocked (sigtimedwait)."""

    def __init__(
        self, worker: int, *, deadline_s: float | None, grace_s: Callable[[bool], float | None], nested: bool = False
    ) -> None:
        """`grace_s(asked)` says whether to stop: seconds between TERM and KILL, or None; `asked` = by a signal.

        `nested`: the tree has supervisors of its own; TERM is theirs alone, for they end what is below them and say so,
        and they get `UNITS_S` more.
        """
        self._worker = worker
        self._deadline_at_s = None if deadline_s is None else time.monotonic() + deadline_s
        self._grace_s = grace_s
        self._nested = nested
        self._status: int | None = None
        self._stopped: StopReason | None = None
        self._kill_at_s: float | None = None

    def until_empty(self, every_round: Callable[[], None]) -> Watched:
        """Return when no process of the tree is left, or the rest cannot be killed."""
        asked = limited = False
        while self._reap(asked):
            now_s = time.monotonic()
            if self._kill_at_s is None:
                self._begin_stop_if_due(now_s, asked, limited)
            elif now_s >= self._kill_at_s + KILL_PATIENCE_S:
                return self._watched(processes.descendants(os.getpid()))
            elif now_s >= self._kill_at_s:
                processes.signal_all(processes.descendants(os.getpid()), signal.SIGKILL)
            every_round()
            caught = signal.sigtimedwait(WATCHED, self._pause_s(time.monotonic()))
            limited = limited or (caught is not None and caught.si_signo == TIME_LIMIT)
            asked = caught is not None and caught.si_signo in ASKING
        return self._watched(())

    def _watched(self, survivors: tuple[int, ...]) -> Watched:
        return Watched(wait_status=self._status, stopped=self._stopped, survivors=survivors)

    def _reap(self, asked: bool) -> bool:
        """Collect whoever ended; False when there is no child any more, which means an empty tree.

        A stop may be sent to the whole tree at once, and the worker end of it before it was begun here (`asked`, or
        still to be caught): whatever the worker made of it, but for a good end, was asked for.
        """
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._worker:
                self._status = status
                asked = asked or not signal.sigpending().isdisjoint(ASKING)
                if status and self._stopped is None and self._grace_s(asked) is not None:
                    self._stopped = "cancelled"

    def _begin_stop_if_due(self, now_s: float, asked: bool, limited: bool) -> None:
        if self._status is not None:  # what the worker left behind goes, whatever it is
            self._begin_stop(self._stopped, now_s + LEFTOVER_GRACE_S)
        elif (grace_s := self._grace_s(asked)) is not None:
            self._begin_stop("cancelled", now_s + grace_s)
        elif self._deadline_at_s is not None and now_s >= self._deadline_at_s:
            self._begin_stop("timed_out", now_s + DEADLINE_GRACE_S)
        elif limited:
            self._begin_stop("time_limit", now_s + DEADLINE_GRACE_S)

    def _begin_stop(self, reason: StopReason | None, kill_at_s: float) -> None:
        self._stopped = reason
        self._kill_at_s = kill_at_s + (UNITS_S if self._nested else 0.0)
        found = processes.children if self._nested else processes.descendants
        processes.signal_all(found(os.getpid()), signal.SIGTERM)

    def _pause_s(self, now_s: float) -> float:
        if self._kill_at_s is not None:
            return KILLING_S if now_s >= self._kill_at_s else min(IDLE_S, self._kill_at_s - now_s)
        if self._deadline_at_s is not None:
            return max(0.0, min(IDLE_S, self._deadline_at_s - now_s))
        return IDLE_S
