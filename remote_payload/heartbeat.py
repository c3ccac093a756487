"""The heartbeat file: a counter that the supervisor moves, and a lock that it holds while it lives.

The lock (flock) is the strongest sign of life: the kernel drops it when the supervisor dies, however it dies.
"""

import contextlib
import fcntl
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

BEAT_S = 2.0
"""Seconds between beats."""


@dataclass(frozen=True)
class Beat:
    """What the file says: how many beats, when the last one was (CLOCK_BOOTTIME, seconds) and on which host."""

    count: int
    boottime_s: float
    host: str


class Heartbeat:
    """The supervisor's side. Raises OSError when the file cannot be made."""

    def __init__(self, path: Path, *, locked: bool = True) -> None:
        """`locked=False`: on a file system that hosts share, a host that died may keep the lock for ever."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._count = 0
        self._due_s = 0.0
        if not locked:
            return
        with contextlib.suppress(OSError):  # a file system without locks: readers then go by pid and start time
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)  # readers hold it for microseconds: waiting is fine

    def beat_when_due(self) -> None:
        """Count one beat if `BEAT_S` have passed since the last."""
        now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        if now_s < self._due_s:
            return
        self._due_s = now_s + BEAT_S
        self._count += 1
        line = f"{self._count} {now_s:.3f} {os.uname().nodename}".ljust(255) + "\n"
        with contextlib.suppress(OSError):  # a full disk must not end the supervisor
            os.pwrite(self._descriptor, line.encode("utf-8", "replace"), 0)


def read_beat(path: Path) -> Beat | None:
    """The last beat; None before the first."""
    try:
        fields = path.read_text(encoding="utf-8").split()
        beat = Beat(count=int(fields[0]), boottime_s=float(fields[1]), host=fields[2])
    except (OSError, ValueError, IndexError):
        return None
    return beat if math.isfinite(beat.boottime_s) else None


def beat_age_s(path: Path) -> float | None:
    """Seconds since the last beat; None when unknown, written on another host or before a reboot."""
    beat = read_beat(path)
    if beat is None or beat.host != os.uname().nodename:
        return None
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - beat.boottime_s
    return round(age_s, 3) if age_s >= 0 else None


def shared_age_s(path: Path) -> float | None:
    """Seconds since the file was last written, on whichever host, by this host's clock and the file server's.

    A file system that hosts share may show a beat half a minute late. None when there is none.
    """
    try:
        return max(0.0, round(time.time() - path.stat().st_mtime, 3))
    except OSError:
        return None


def is_held(path: Path) -> bool:
    """Whether a supervisor holds the file's lock, so is alive. False also where the file system has no locks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # not there, or not ours to read
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
