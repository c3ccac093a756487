"""`result/units.jsonl`: an attempt a line, at its start and again at its end; the last line of a run counts."""

import os
from collections.abc import Iterable
from pathlib import Path

from remote_payload.rundir import RunDir
from remote_payload.schema import SchemaError, SweepAttempt, from_json, to_json

NAME = "units.jsonl"


class Ledger:
    """The writing side; every line is on the disk before the next unit begins. Raises OSError."""

    def __init__(self, folder: Path) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(folder / NAME, flags, 0o600)

    def write(self, attempt: SweepAttempt, *, durable: bool) -> None:
        """Append one line, whole."""
        os.write(self._descriptor, to_json(attempt).encode("ascii") + b"\n")
        if durable:
            os.fsync(self._descriptor)


def read_ledger(sweep: RunDir) -> tuple[SweepAttempt, ...]:
    """The attempts in the order of their starts; what a power cut left half-written is passed over."""
    try:
        lines = (sweep.result / NAME).read_bytes().splitlines()
    except OSError:
        return ()
    return latest(attempt for line in lines if (attempt := _parsed(line)) is not None)


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
