"""What the client itself cost and lacked: a client that gets no core measures itself, not the server."""

import time
from pathlib import Path

_SCHEDSTAT = Path("/proc/thread-self/schedstat")
_NS = 1e9


class OwnCpu:
    """Between its making and `stop`, both on the thread that sends and receives.

    `cpu_s` counts the whole process. `waited_s` is how long this thread was runnable without a core: the second field
    of /proc/thread-self/schedstat, nanoseconds on the run queue (Linux, Documentation/scheduler/sched-stats); None
    where the kernel does not count it.
    """

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self.waited_s: float | None = None
        self._cpu_before_s = time.process_time()
        self._waited_before_s = _waited_s()

    def stop(self) -> None:
        """Fill the figures."""
        self.cpu_s = time.process_time() - self._cpu_before_s
        waited_s = _waited_s()
        if waited_s is not None and self._waited_before_s is not None:
            self.waited_s = waited_s - self._waited_before_s


def _waited_s() -> float | None:
    try:
        return int(_SCHEDSTAT.read_text(encoding="ascii").split()[1]) / _NS
    except (OSError, ValueError, IndexError):
        return None
