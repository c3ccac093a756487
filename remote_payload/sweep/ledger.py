"""`result/units.jsonl`: an attempt a line, at its start and again at its end; the last line of a run counts.

Where units run at the same time on several hosts, each has a file of its own, `result/units/UNIT/units.jsonl`: lines
that several hosts append to one file over a network get lost.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from remote_payload.event_log import append
from remote_payload.rundir import RunDir
from remote_payload.schema import SchemaError, SweepAttempt, from_json, to_json

NAME = "units.jsonl"
UNITS = "units"


class Ledger:
    """The writing side; every line is on the disk before the next unit begins. Raises OSError."""

    def __init__(self, folder: Path) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(folder / NAME, flags, 0o600)

    def write(self, attempt: SweepAttempt, *, durable: bool) -> None:
        """Append one line, whole."""
        append(self._descriptor, to_json(attempt).encode("ascii") + b"\n")
        if durable:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """No more lines."""
        os.close(self._descriptor)


def read_ledger(sweep: RunDir) -> tuple[SweepAttempt, ...]:
    """The attempts in the order of their starts; what a power cut left half-written is passed over."""
    found = list(latest(_read(sweep.result / NAME)))
    apart = [attempt for path in (sweep.result / UNITS).glob(f"*/{NAME}") for attempt in latest(_read(path))]
    return (*found, *sorted(apart, key=lambda attempt: (attempt.started_unix_s, attempt.run_id)))


def unit_folder(sweep: RunDir, unit_id: str) -> Path:
    """The folder of a unit's own ledger, made where it is not there. Raises OSError."""
    folder = sweep.result / UNITS / unit_id
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def begun_units(sweep: RunDir) -> int:
    """How many units have a ledger of their own: a cheap look for whoever wants to know whether all have begun."""
    try:
        return len(os.listdir(sweep.result / UNITS))  # noqa: PTH208 - names only
    except OSError:
        return 0


def read_unit_ledger(sweep: RunDir, unit_id: str) -> tuple[SweepAttempt, ...]:
    """As `read_ledger`, of one unit that has a ledger of its own."""
    return latest(_read(sweep.result / UNITS / unit_id / NAME))


def _read(path: Path) -> list[SweepAttempt]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    return [attempt for line in lines if (attempt := _parsed(line)) is not None]


def latest(attempts: Iterable[SweepAttempt]) -> tuple[SweepAttempt, ...]:
    """The last word on each attempt, in the order of the first."""
    found: dict[str, SweepAttempt] = {}
    for attempt in attempts:
        found[attempt.run_id] = attempt
    return tuple(found.values())


def _parsed(line: bytes) -> SweepAttempt | None:
    try:
        return from_json(SweepAttempt, line)
    except SchemaError:
        return None
