"""What Linux does about parents and children: orphans that come home to this process, children that die with it."""

import os
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """prctl(PR_SET_CHILD_SUBREAPER, 1), Linux 3.4 and later, no root needed. False where it cannot be had."""
    try:
        import ctypes  # noqa: PLC0415 - some builds of Python lack it

        return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def dying_with_us() -> Callable[[], None] | None:
    """For a child between fork and exec: the kernel kills it when this process, by this thread, is gone.

    None where that cannot be had. Not for a process with threads: a fork there may leave locks held.
    """
    try:
        import ctypes  # noqa: PLC0415 - as above

        prctl, parent = ctypes.CDLL(None).prctl, os.getpid()
    except (ImportError, OSError, AttributeError):
        return None

    def bind() -> None:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # it was gone before the kernel was told
            os._exit(1)

    return bind
