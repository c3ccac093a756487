"""What a served benchmark tells while it runs: phases, warnings (kept for the result), and how far a point is."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Literal

from remote_payload.schema.bench import RequestSample
from remote_payload.schema.run import Event
from remote_payload.sglang_bench.course import Course, in_time

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

    def __init__(self, journal: Journal, total: int, course: Course) -> None:
        self._journal, self._total, self._course = journal, total, course
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
            done, figures = self._done, self._figures(tokens)
        self._journal.pass_on(requests_event(done, self._total, figures))

    def _figures(self, tokens: int) -> dict[str, float]:
        spent_s = max(1e-9, time.monotonic() - self._began_s)
        figures = {"output_tok_s": tokens / spent_s, "failed": float(self._failed)}
        if self._verify:
            figures["accept_length"] = 1 + self._correct / self._verify
        return {**figures, **place(self._course, self._done / self._total)}


def place(course: Course, share: float) -> dict[str, float]:
    """Where in the job a point is, `share` of whose requests are over, and the seconds left."""
    left = course.left_s(share)
    told = {} if left is None else {"point_left_s": left[0], "left_s": left[1]}
    return {"point": float(course.number), "points": float(course.points), **told}


def requests_event(done: int, total: int, figures: Mapping[str, float], also: str = "") -> Event:
    """How far a point is, for people and for programs; `also` = more words."""
    words = [f"point {figures['point']:.0f}/{figures['points']:.0f}"] if figures["points"] > 1 else []
    words += [f"{figures['failed']:.0f} FAILED"] if figures.get("failed") else []
    words += [f"{figures['output_tok_s']:.1f} tok/s"] if "output_tok_s" in figures else []
    words += [f"accept length {figures['accept_length']:.2f}"] if "accept_length" in figures else []
    words += [also] if also else []
    words += [f"{in_time(figures['left_s'])} left"] if figures.get("left_s") else []
    return Event(
        time_unix_s=time.time(),
        kind="progress",
        name="requests",
        message=", ".join(words),
        done=float(done),
        total=float(total),
        unit="requests",
        figures=dict(figures),
    )
