"""events.jsonl: what a run tells of itself while it waits and runs."""

import os
from pathlib import Path

from remote_payload.schema import Event, to_json


class EventLog:
    """events.jsonl, one `write` a line, so that a reader never sees half of one of ours between others."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def report(self, event: Event) -> None:
        """Append one event. Raises OSError."""
        os.write(self._descriptor, to_json(event).encode("ascii") + b"\n")
