"""A run as it goes on: bars on a terminal, plain lines elsewhere, JSON lines for scripts."""

import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from orchestrator.cli import console
from orchestrator.updates import LogArrived, Note, Progressed, Reconnecting, StateChanged, Update
from remote_payload.schema import Event

Tell = Callable[[Update], None]

LINE_EVERY_S = 5.0  # a log file needs no more progress lines than this


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


def update_json(update: Update) -> str:
    """One update as one line of JSON: `update` names its kind."""
    if isinstance(update, LogArrived):
        text = update.data.decode(errors="replace")
        return json.dumps({"update": "log", "stream": update.stream, "text": text})
    if isinstance(update, Progressed):
        return json.dumps({"update": "event", **dataclasses.asdict(update.event)})
    if isinstance(update, StateChanged):
        return json.dumps({"update": "state", **dataclasses.asdict(update.state)})
    name = "note" if isinstance(update, Note) else "reconnecting"
    return json.dumps({"update": name, **dataclasses.asdict(update)})


def update_line(update: Update) -> str | None:
    """One update as one line for a person; None for what a plain log does not need."""
    if isinstance(update, Note):
        return f"{update.name}: {update.text}"
    if isinstance(update, Reconnecting):
        return f"link: {update.reason} - the job goes on, reconnecting (try {update.attempt})"
    if isinstance(update, StateChanged):
        return f"state: {update.state.phase}"
    if isinstance(update, Progressed):
        return _event_line(update.event)
    return None


def _event_line(event: Event) -> str:
    counted = ""
    if event.done is not None:
        counted = f" {event.done:g}" + (f"/{event.total:g}" if event.total is not None else "")
        counted += f" {event.unit}" if event.unit else ""
    return f"{event.kind}: {event.name}{counted}{f' - {event.message}' if event.message else ''}"


def _json(update: Update) -> None:
    console.out(update_json(update))


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
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[message]}"), console=console.rich_stderr()) as progress:
        tasks: dict[str, object] = {}

        def tell(update: Update) -> None:
            if isinstance(update, Progressed) and update.event.kind == "progress":
                event = update.event
                if event.name not in tasks:
                    tasks[event.name] = progress.add_task(console.safe(event.name), total=event.total, message="")
                progress.update(
                    tasks[event.name],  # type: ignore[arg-type] # rich's TaskID is an int under another name
                    completed=event.done or 0,
                    total=event.total,
                    message=console.safe(event.message),
                )
                return
            line = update_line(update)
            if line is not None:
                progress.console.print(line, markup=False, highlight=False)

        yield tell
