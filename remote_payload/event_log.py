"""events.jsonl: what a run tells of itself while it waits and runs."""

import errno
import os
from pathlib import Path

from remote_payload.schema import Event, to_json


class EventLog:
    """events.jsonl, one `write` a line, so that a reader never sees half of one of ours between others."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def report(self, event: Event) -> None:
        """Append one event. Raises OSError."""
        append(self._descriptor, to_json(event).encode("ascii") + b"\n")


def append(descriptor: int, line: bytes) -> None:
    """Append a line, whole or not at all: half of one, as full disks take it, would spoil the next. Raises OSError."""
    written = os.write(descriptor, line)
    if written < len(line):
        end = os.lseek(descriptor, 0, os.SEEK_CUR)
        if os.fstat(descriptor).st_size == end:  # nobody else has written since
            os.ftruncate(descriptor, end - written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
