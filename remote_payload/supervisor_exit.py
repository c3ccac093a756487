"""Waiting for the end of a run's supervisor, which wakes at once where the kernel has pidfds (5.3)."""

import os
import select
import time

from remote_payload.schema import RunState


class SupervisorExit:
    """A sleep that the supervisor's end cuts short; without pidfds, or once it is gone, a sleep and no more."""

    def __init__(self, state: RunState | None) -> None:
        self._descriptor: int | None = None
        if state is not None and state.supervisor_pid is not None and hasattr(os, "pidfd_open"):
            try:
                self._descriptor = os.pidfd_open(state.supervisor_pid)  # if not ours any more: one wake-up too many
            except OSError:
                return
            self._poll = select.poll()
            self._poll.register(self._descriptor, select.POLLIN)

    def __enter__(self) -> "SupervisorExit":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @property
    def is_told(self) -> bool:
        """Whether the supervisor's end would cut the next sleep short."""
        return self._descriptor is not None

    def wait(self, seconds: float) -> bool:
        """Sleep; True when the supervisor ended meanwhile."""
        if self._descriptor is None:
            time.sleep(seconds)
            return False
        ended = bool(self._poll.poll(seconds * 1000))
        if ended:
            self._close()
        return ended

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
