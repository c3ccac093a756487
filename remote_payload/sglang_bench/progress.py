"""What a served benchmark tells while it runs: phases, warnings (kept for the result), and how far a point is."""

import threading
import time
from collections.abc import Callable
from typing import Literal

from remote_payload.schema.bench import RequestSample
from remote_payload.schema.run import Event

Report = Callable[[Event], None]
INTERVAL_S = 0.5


class Journal:
    """Sends events; may be used by several threads."""

    def __init__(self, report: Report) -> None:
        self._report, self._lock = report, threading.Lock()
        self.warnings: list[str] = []

    def phase(self, name: str, message: str = "") -> None:
        """A phase begins."""
        self.send("phase", name, message)

    def warn(self, name: str, message: str) -> None:
        """Tell a warning and keep it, each text once."""
        if message not in self.warnings:
            self.send("warning", name, message)

    def send(self, kind: Literal["phase", "warning", "note"], name: str, message: str) -> None:
        """Tell it now."""
        self.pass_on(Event(time_unix_s=time.time(), kind=kind, name=name, message=message))

    def pass_on(self, event: Event) -> None:
        """An event that somebody else made; a warning is kept as well."""
        if event.kind == "warning" and event.message not in self.warnings:
            self.warnings.append(event.message)
        with self._lock:
            self._report(event)


class Progress:
    """How far one point is: requests done, tokens a second, accept length, time left."""

    def __init__(self, journal: Journal, total: int) -> None:
        self._journal, self._total = journal, total
        self._lock = threading.Lock()
        self._done = self._failed = self._verify = self._correct = 0
        self._began_s = time.monotonic()

    def count(self, sample: RequestSample) -> None:
        """One more request is over."""
        with self._lock:
            self._done += 1
            self._failed += sample.error is not None
            if sample.verify_steps is not None and sample.correct_drafts is not None:
                self._verify += sample.verify_steps
                self._correct += sample.correct_drafts

    def tell(self, tokens: int) -> None:
        """Send where it stands now; `tokens` = those that came since it began, on all requests."""
        with self._lock:
            done, message = self._done, self._message(tokens)
        self._journal.pass_on(
            Event(
                time_unix_s=time.time(),
                kind="progress",
                name="requests",
                message=message,
                done=float(done),
                total=float(self._total),
                unit="requests",
            )
        )

    def _message(self, tokens: int) -> str:
        spent_s = max(1e-9, time.monotonic() - self._began_s)
        words = [f"{tokens / spent_s:.1f} tok/s"]
        if self._verify:
            words.append(f"accept length {1 + self._correct / self._verify:.2f}")
        if self._failed:
            words.append(f"{self._failed} failed")
        if 0 < self._done < self._total:
            words.append(f"{spent_s / self._done * (self._total - self._done):.0f} s left")
        return ", ".join(words)
