"""A run as it goes on: bars on a terminal, plain lines elsewhere, JSON lines for scripts."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from orchestrator.cli import console
from orchestrator.updates import LogArrived, Note, Progressed, Reconnecting, StateChanged, Update
from remote_payload.schema import Event

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

Tell = Callable[[Update], None]

LINE_EVERY_S = 5.0  # a log file needs no more progress lines than this
BAR_CELLS = 12
WIDE = 100
"""Columns of a terminal below which the words need the bar's room."""


@contextmanager
def watching(*, as_json: bool, quiet: bool = False) -> Iterator[Tell]:
    """Yield the function that shows updates, for as long as the block lasts."""
    if as_json:
        yield _json
    elif quiet:
        yield lambda update: None
    elif console.is_terminal():
        with _bars() as tell:
            yield tell
    else:
        yield _Lines().tell


def update_values(update: Update) -> dict[str, Any]:
    """One update as JSON values: `update` names its kind."""
    if isinstance(update, LogArrived):
        return {"update": "log", "stream": update.stream, "text": update.data.decode(errors="replace")}
    if isinstance(update, Progressed):
        return {"update": "event", **dataclasses.asdict(update.event)}
    if isinstance(update, StateChanged):
        return {"update": "state", **dataclasses.asdict(update.state)}
    name = "note" if isinstance(update, Note) else "reconnecting"
    return {"update": name, **dataclasses.asdict(update)}


def update_line(update: Update) -> str | None:
    """One update as one line for a person; None for what a plain log does not need."""
    if isinstance(update, Note):
        return f"{update.name}: {update.text}"
    if isinstance(update, Reconnecting):
        return f"link: {update.reason} - the job goes on, reconnecting (try {update.attempt})"
    if isinstance(update, StateChanged):
        waits = f" - {update.state.note}" if update.state.phase == "queued" and update.state.note else ""
        return console.safe(f"state: {update.state.phase}{waits}", "\t")
    if isinstance(update, Progressed):
        return _event_line(update.event)
    return None


def _event_line(event: Event) -> str:
    counted = f" {counted_text(event)}" if event.done is not None else ""
    line = f"{event.kind}: {event.name}{counted}{f' - {event.message}' if event.message else ''}"
    return console.safe(line, "\t")  # a newline of the host's would begin a line that looks like ours


def counted_text(event: Event) -> str:
    """How far it is, e.g. `3/12 rows`; empty where the event does not say. What its name says already is left out."""
    if event.done is None:
        return ""
    of = "" if event.total is None else f"/{_count(event.total)}"
    unit = "" if event.unit in (None, event.name) else f" {event.unit}"
    return f"{_count(event.done)}{of}{unit}"


def _count(value: float) -> str:
    """Whole numbers as such, others with a decimal; nothing a person would have to decipher."""
    if not math.isfinite(value):
        return "unknown"
    if abs(value) >= 1e9:
        return f"{value:.3g}"
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def _json(update: Update) -> None:
    console.out_json(update_values(update))


class _Lines:
    """Plain lines on stderr; progress at most every few seconds."""

    def __init__(self) -> None:
        self._last_progress_s = float("-inf")

    def tell(self, update: Update) -> None:
        if isinstance(update, Progressed) and update.event.kind == "progress":
            now = time.monotonic()
            if now - self._last_progress_s < LINE_EVERY_S and update.event.done != update.event.total:
                return
            self._last_progress_s = now
        line = update_line(update)
        if line is not None:
            console.note(line)


@contextmanager
def _bars() -> Iterator[Tell]:
    """One bar: what is going on now. It goes away with the phase it counts, and at the end.

    Counting that begins anew, as at the next point of a benchmark, is a new bar with a clock of its own. What stands
    beside it is cut to the terminal's width, never the clock.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    name, counted = (
        TextColumn(f"{{task.fields[{key}]}}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
        for key in ("name", "counted")
    )
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    message = TextColumn("{task.fields[message]}", markup=False, table_column=rest)
    clock = TimeElapsedColumn(table_column=Column(min_width=7, no_wrap=True))
    terminal = console.rich_stderr()
    bar = [BarColumn(bar_width=BAR_CELLS)] if terminal.width >= WIDE else []
    with Progress(name, *bar, counted, clock, message, console=terminal, transient=True, expand=True) as progress:
        counting = _Counting(progress)

        def tell(update: Update) -> None:
            if isinstance(update, Progressed) and update.event.kind == "progress":
                counting.show(update.event)
                return
            if isinstance(update, Progressed) and update.event.kind == "phase":
                counting.end()
            line = update_line(update)
            if line is not None:
                progress.console.print(console.safe(line), markup=False, highlight=False)

        yield tell


class _Counting:
    """The one bar there is, or none: of which phase, and how far it was."""

    def __init__(self, progress: "Progress") -> None:
        self._progress = progress
        self._shown: tuple[str, TaskID, float] | None = None

    def show(self, event: Event) -> None:
        """Counting that begins anew is a new bar."""
        words: dict[str, Any] = {
            "name": _cell(event.name),
            "counted": _cell(counted_text(event)),
            "message": _cell(event.message),
        }
        done = _finite(event.done) or 0.0
        if self._shown is None or self._shown[0] != event.name or done < self._shown[2]:
            if self._shown is not None:
                self._progress.remove_task(self._shown[1])
            self._shown = event.name, self._progress.add_task("", total=None, **words), done
        self._shown = *self._shown[:2], done
        self._progress.update(self._shown[1], completed=done, total=_finite(event.total), **words)

    def end(self) -> None:
        """The phase that it counts is over."""
        if self._shown is not None:
            self._progress.remove_task(self._shown[1])
            self._progress.refresh()
            self._shown = None


def _cell(text: str) -> str:
    return console.safe(text, "")


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
