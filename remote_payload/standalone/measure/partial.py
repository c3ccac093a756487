"""`partial.jsonl`: what an unfinished test has measured so far, so that the next run need not measure it again.

The first line says for what it holds (`Fingerprint`); then a line for each reading on each searched row, and for each
row that was measured in full its records. The search decides by hits alone, so a run that takes the lines over comes to
the same decisions. Every line carries its checksum; a line that is torn, as a killed writer leaves the last one, or
damaged is dropped with all that follow, and measured again.
"""

import errno
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from remote_payload.failure import JobFailure, job_failure
from remote_payload.schema.record import from_value, to_json
from remote_payload.schema.standalone import ReadingHits, RowFacts
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.measure.acceptance import packed, unpacked

Fingerprint = dict[str, Any]
"""What must be the same for measured rows to be taken over; plain JSON values by name."""
HEADER = "for"
CHECK_DIGITS = 16
BEFORE, BETWEEN, AFTER = b'{"sha256":"', b'","line":', b"}"
"""A line is JSON as well: its checksum, then what it says."""
FullRow = tuple[RowFacts, tuple[ReadingHits, ...]]


class Partial:
    """The file of this run, and what it holds."""

    def __init__(self, path: Path, fingerprint: Fingerprint, taken_over: Iterable[dict[str, Any]] = ()) -> None:
        """Begins the file anew with the lines `taken_over` from another run. Raises OSError."""
        self._path = path
        self._searched: dict[tuple[int, str, int], torch.Tensor] = {}
        self._rows: dict[tuple[str, str], FullRow] = {}
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._deepest = 0
        self.taken_rows = 0
        """Rows whose records were given out instead of being measured."""
        self._descriptor = os.open(path, flags, 0o600)
        self._write({HEADER: fingerprint})
        for value in taken_over:
            self._take(value)
            self._write(value)

    def __enter__(self) -> "Partial":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def hits(self, row: int, reading: Reading, steps: int) -> torch.Tensor | None:
        """Hits (C, steps) of a reading on a searched row; None = not measured yet."""
        for known in {steps, max(steps, self._deepest)}:
            found = self._searched.get((row, reading.name, known))
            if found is not None:
                return found[:, :steps]
        return None

    def keep_hits(self, row: int, reading: str, hits: torch.Tensor) -> None:
        """Keep hits (C, steps) of a reading on a searched row. Raises OSError."""
        steps = hits.shape[1]
        self._remember(row, reading, hits)
        self._write({"row": row, "reading": reading, "steps": steps, "hits": packed(hits)})

    def full_row(self, split: str, name: str, readings: list[str]) -> FullRow | None:
        """The records of a row measured in full under just these readings; None = not yet. They are given up once."""
        found = self._rows.pop((split, name), None)
        if found is None or [hits.reading for hits in found[1]] != readings:
            return None
        self.taken_rows += 1
        return found

    def keep_row(self, split: str, facts: RowFacts, hits: Iterable[ReadingHits]) -> None:
        """Keep a row measured in full; on disk alone. Raises OSError."""
        records = [json.loads(to_json(item)) for item in hits]
        self._write({"split": split, "facts": json.loads(to_json(facts)), "readings": records})

    def remove(self) -> None:
        """The result is complete: nothing is left to take over. Raises OSError."""
        self._path.unlink(missing_ok=True)

    def _remember(self, row: int, reading: str, hits: torch.Tensor) -> None:
        self._searched[row, reading, hits.shape[1]] = hits
        self._deepest = max(self._deepest, hits.shape[1])

    def _write(self, value: dict[str, Any]) -> None:
        os.write(self._descriptor, sealed(value))

    def _take(self, value: dict[str, Any]) -> None:
        if "split" in value:
            facts = from_value(RowFacts, value["facts"])
            hits = tuple(from_value(ReadingHits, item) for item in value["readings"])
            self._rows[value["split"], facts.name] = (facts, hits)
        else:
            self._remember(value["row"], value["reading"], unpacked(value["hits"], value["steps"]))


def take_over(path: Path, run_id: str, fingerprint: Fingerprint) -> list[dict[str, Any]]:
    """The measured lines of an unfinished run, whole ones alone. Raises JobFailure(job) where they do not fit."""
    try:
        lines = _whole_lines(path)
    except OSError as error:
        raise _nothing(run_id, f"{error.strerror or error}: {path}") from None
    theirs = lines[0].get(HEADER) if lines else None
    if not isinstance(theirs, dict):
        found = "a damaged file: its first line" if path.stat().st_size else "an empty file"
        raise _nothing(run_id, f"{found}: {path}")
    differing = [key for key in fingerprint if fingerprint[key] != theirs.get(key)]
    if differing:
        told = tuple(f"{key}: {theirs.get(key)!r} then, {fingerprint[key]!r} now" for key in differing)
        raise job_failure(
            f"run `{run_id}` measured something else, so its rows cannot be taken over; what differs: "
            f"{', '.join(differing)}",
            hint="run the same job on the same files, or run without `--resume`",
            details=told,
        )
    return lines[1:]


def _nothing(run_id: str, found: str) -> JobFailure:
    return job_failure(
        f"run `{run_id}` left nothing to resume from on this host, found: {found}",
        hint="a run that ended well, measured no row or was removed has nothing left; run without `--resume`",
    )


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    """Lines up to the first one that is torn or damaged. Raises OSError."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    values: list[dict[str, Any]] = []
    for line in path.read_bytes().split(b"\n"):
        value = opened(line)
        if value is None:
            break
        values.append(value)
    return values


def sealed(value: dict[str, Any]) -> bytes:
    """A line of the file."""
    body = json.dumps(value, separators=(",", ":")).encode()
    return BEFORE + _checksum(body) + BETWEEN + body + AFTER + b"\n"


def opened(line: bytes) -> dict[str, Any] | None:
    """What a line, without its end, says; None where it is not as it was written."""
    start = len(BEFORE) + CHECK_DIGITS + len(BETWEEN)
    body = line[start : -len(AFTER)]
    if line[:start] != BEFORE + _checksum(body) + BETWEEN or not line.endswith(AFTER):
        return None
    value: dict[str, Any] = json.loads(body)
    return value


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:CHECK_DIGITS].encode()
