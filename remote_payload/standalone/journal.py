"""What a job tells while it runs and what of it stays in the result: phases, progress, warnings."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from remote_payload.schema.run import Event
from remote_payload.schema.standalone import Phase

Report = Callable[[Event], None]
PROGRESS_INTERVAL_S = 0.5


class Journal:
    """Sends events as they happen; keeps phases and warnings for the result."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._progressed = 0.0
        self.phases: list[Phase] = []
        self.warnings: list[str] = []

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Tell that a phase begins, and keep how long it took. Tokens, if any, are added with `count_tokens`."""
        self._tell("phase", name, "")
        started = time.perf_counter()
        yield
        self.phases.append(Phase(name=name, seconds=time.perf_counter() - started))

    def count_tokens(self, tokens: int) -> None:
        """Note how many tokens the phase that just ended went through."""
        last = self.phases.pop()
        self.phases.append(Phase(name=last.name, seconds=last.seconds, tokens=tokens))

    def warn(self, name: str, message: str) -> None:
        """Tell a warning and keep it."""
        self.warnings.append(message)
        self._tell("warning", name, message)

    def note(self, name: str, message: str) -> None:
        """Tell something worth knowing that is no warning."""
        self._tell("note", name, message)

    def tell_skipped(self, name: str, reason: str) -> None:
        """Tell of a skipped row; the result names it among its rows."""
        self._tell("warning", "row_skipped", f"{name}: {reason}")

    def progress(self, name: str, done: int, total: int | None, message: str, *, last: bool = False) -> None:
        """Tell how many rows are done, twice a second at most, and always the `last` time."""
        now = time.perf_counter()
        if not last and now - self._progressed < PROGRESS_INTERVAL_S:
            return
        self._progressed = now
        self._report(
            Event(
                time_unix_s=time.time(),
                kind="progress",
                name=name,
                message=message,
                done=float(done),
                total=None if total is None else float(total),
                unit="rows",
            )
        )

    def _tell(self, kind: Literal["phase", "warning", "note"], name: str, message: str) -> None:
        self._report(Event(time_unix_s=time.time(), kind=kind, name=name, message=message))
