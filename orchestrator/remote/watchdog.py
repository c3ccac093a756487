"""A deadline that does not need the blocked call's help: when it passes, the connection is dropped under it.

Many of paramiko's calls take no timeout, or one that a full socket or a held lock defeats. Dropping the socket ends
every one of them within a tenth of a second.
"""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Watchdog:
    """Calls `drop` once, from its own thread, when nobody restarted it for `period_s`, or after `limit_s` in all.

    complaint: None until it did, then what to say of the other side.
    """

    def __init__(self, drop: Callable[[], None], *, period_s: float, limit_s: float | None = None) -> None:
        self.period_s = period_s
        self.complaint: str | None = None
        self._drop = drop
        self._limit_s = limit_s
        self._limit = None if limit_s is None else time.monotonic() + limit_s
        self._deadline: float | None = None
        self._done = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._watch, name="link-watchdog", daemon=True)
        self.restart()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def restart(self, period_s: float | None = None) -> None:
        """Something came: wait another period from now (`period_s`: a new one from here on)."""
        if period_s is not None:
            self.period_s = period_s
        deadline = time.monotonic() + self.period_s
        self._set(deadline if self._limit is None else min(deadline, self._limit))

    def pause(self) -> None:
        """Nobody waits for the other side now."""
        self._set(None)

    def stop(self) -> None:
        """The call is over."""
        with self._changed:
            self._done = True
            self._changed.notify()

    def _set(self, deadline: float | None) -> None:
        with self._changed:
            later = deadline is None or (self._deadline is not None and deadline >= self._deadline)
            self._deadline = deadline
            if not later:  # a thread that sleeps until an earlier moment finds the later one by itself
                self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while not self._done:
                remaining = None if self._deadline is None else self._deadline - time.monotonic()
                if remaining is not None and remaining <= 0:
                    limited = self._limit is not None and self._deadline == self._limit
                    silent = f"gave no sign of life for {self.period_s:g} s"
                    self.complaint = f"was not done within {self._limit_s:g} s" if limited else silent
                    break
                self._changed.wait(remaining)
        if self.complaint is not None:
            self._drop()
