"""What a start tells while it goes on: events, from the lines of the server's log."""

import dataclasses
import time
from collections.abc import Callable
from typing import Literal

from remote_payload.schema.run import Event
from remote_payload.sglang_bench.phases import PhaseClock, bar_of

BAR_INTERVAL_S = 0.5


class Telling:
    """Sends the events of one start; `name`: of the server, as people are told."""

    def __init__(self, report: Callable[[Event], None], name: str) -> None:
        self._report, self._name = report, name
        self._told_s = 0.0
        self.clock = PhaseClock(time.monotonic(), self._begun)

    def _begun(self, phase: str, whose: str) -> None:
        self._report(event("phase", phase, f"{self._name}{f', {whose}' if whose else ''}"))

    def read(self, line: str, now_s: float) -> None:
        """One line of the log."""
        self.clock.read(line, now_s)
        bar = bar_of(line) if self.clock.name is not None and now_s - self._told_s >= BAR_INTERVAL_S else None
        if bar is not None:
            self._told_s = now_s
            progress = event("progress", self.clock.name or "", f"{self._name}: {bar.what}")
            self._report(dataclasses.replace(progress, done=float(bar.done), total=float(bar.total), unit="pieces"))

    def phase(self) -> str:
        """Where the start is."""
        return self.clock.name or "ready"

    def finish(self, ready_s: float) -> None:
        """It is ready."""
        self.clock.finish(time.monotonic())
        self._report(event("note", "server_ready", f"{self._name} is ready after {ready_s:.1f} s"))


def event(kind: Literal["phase", "warning", "note", "progress"], name: str, message: str) -> Event:
    """An event of now."""
    return Event(time_unix_s=time.time(), kind=kind, name=name, message=message)
