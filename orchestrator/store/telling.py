"""Who was told of a run's end by this laptop: each way is tried by one process at a time, and again where it failed."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.errors import StoreError
from orchestrator.records import RunTold, WayTold, read_record, record_bytes
from orchestrator.store.files import read_text, write
from orchestrator.store.layout import TOLD
from orchestrator.store.lock import locked
from remote_payload.rundir import RunDir

MOST_TRIES = 5
"""How often the end may be seen and a way that fails be tried."""


def claim(home: Path, run: RunDir, ways: Sequence[str]) -> tuple[str, ...]:
    """Which of these ways are to tell of the end now: at first all, later those that failed and are still open.

    Until `settle` they are taken: a process that dies over them may have told, and nobody is told twice knowingly.
    Raises StoreError.
    """
    with locked(home):
        known = _read(run)
        if known is None:
            due = tuple(WayTold(way=way, tries=1) for way in ways)
            others: tuple[WayTold, ...] = ()
        else:
            due = tuple(
                WayTold(way=one.way, tries=one.tries + 1) for one in known.ways if one.is_open and one.way in ways
            )
            others = tuple(one for one in known.ways if one.way not in {again.way for again in due})
        if known is None or due:
            _write(run, (*others, *due))
    return tuple(one.way for one in due)


def settle(home: Path, run: RunDir, due: Sequence[str], problems: Mapping[str, str], over: Sequence[str] = ()) -> None:
    """What came of the ways that were claimed: why some failed; `over`: of these the ones not to be tried again.

    Raises StoreError.
    """
    with locked(home):
        known = _read(run)
        if known is not None:
            _write(run, tuple(_settled(one, problems, over) if one.way in due else one for one in known.ways))


def untold(run: RunDir) -> tuple[str, ...]:
    """A sentence for each way that did not tell of the end. Raises StoreError."""
    known = _read(run)
    failed = [one for one in known.ways if one.problem is not None] if known is not None else []
    return tuple(
        f"its end was not told by {one.way}: {one.problem}; "
        f"{'tried again when `attach` or `collect` sees the end' if one.is_open else 'not tried again'}"
        for one in failed
    )


def _settled(one: WayTold, problems: Mapping[str, str], over: Sequence[str]) -> WayTold:
    problem = problems.get(one.way)
    is_open = problem is not None and one.way not in over and one.tries < MOST_TRIES
    return WayTold(way=one.way, tries=one.tries, problem=problem, is_open=is_open)


def _read(run: RunDir) -> RunTold | None:
    path = run.path / TOLD
    if not path.is_file():
        return None
    return read_record(RunTold, read_text(path), where=str(path), error=StoreError)


def _write(run: RunDir, ways: tuple[WayTold, ...]) -> None:
    write(run.path / TOLD, record_bytes(RunTold(told_unix_s=time.time(), ways=ways)))
