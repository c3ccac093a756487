"""`index.json`: the lines of a listing, so that thousands of runs are listed without reading each; only ever a copy.

A line holds as long as the files it was read from do: their times, sizes and inodes stand beside it, taken before the
files were read. Whatever changed since is read again, and a lost, damaged or older index costs time and nothing else.
So it needs no lock: the last writer wins, and both are right.
"""

import json
import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from orchestrator.store.layout import LABELS, MEASUREMENTS, RECORD, VERDICT
from orchestrator.store.summary import RunSummary, read_summary
from remote_payload.rundir import RunDir, write_atomically

NAME = "index.json"
VERSION = 1
FEW = 16
"""So many runs are read quicker than an index of thousands is written."""
_FIELDS = tuple(item.name for item in fields(RunSummary))
_WATCHED = (RECORD, LABELS, VERDICT, "result/manifest.json")
Stamp = list[int]


def listed(home: Path, run_ids: Sequence[str]) -> list[RunSummary]:
    """The lines of these runs, in their order; the index is brought up to date where many were read."""
    known = _read(home / NAME) if len(run_ids) > FEW else {}
    found: list[RunSummary] = []
    lines: dict[str, list[Any]] = {}
    fresh = 0
    folder = str(home / "runs")
    for run_id in run_ids:
        stamp = _stamp(f"{folder}/{run_id}")
        line = known.get(run_id)
        summary = _summary(line) if line is not None and line[0] == stamp else None
        if summary is None:
            summary, fresh = read_summary(RunDir(home / "runs" / run_id)), fresh + 1
            line = [stamp, *(getattr(summary, name) for name in _FIELDS)]
        assert line is not None
        lines[run_id] = line
        found.append(summary)
    if fresh > FEW:
        _write(home, lines)
    return found


def _write(home: Path, lines: Mapping[str, list[Any]]) -> None:
    """Replace the index; a store that cannot be written is listed slower."""
    data = json.dumps({"fields": _FIELDS, "runs": lines}, separators=(",", ":")).encode()
    head = json.dumps({"version": VERSION, "crc32": zlib.crc32(data)}).encode()
    with suppress(OSError):
        write_atomically(home / NAME, b"\n".join((head, data, b"")), durable=False)


def forget(home: Path) -> None:
    """Remove the index; the next listing makes it anew. Raises OSError."""
    (home / NAME).unlink(missing_ok=True)


def _read(path: Path) -> dict[str, list[Any]]:
    """The lines by run; none where the index is missing, damaged, edited, or another version's."""
    try:
        head, _, data = path.read_bytes().removesuffix(b"\n").partition(b"\n")
        if json.loads(head) != {"version": VERSION, "crc32": zlib.crc32(data)}:
            return {}
        value = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return {}
    runs = value["runs"] if value.get("fields") == list(_FIELDS) else {}
    assert isinstance(runs, dict)
    return runs


def _stamp(folder: str) -> Stamp:
    """When and how large each file is that a line is made of; an imported run has no record but measurements.

    The time of the last change to the inode, which nobody can set, tells a file from one that got its number after it.
    """
    stamp: Stamp = []
    for name in _WATCHED:
        try:
            seen = os.stat(f"{folder}/{name}")  # noqa: PTH116 - a Path each would take longer than the rest
        except OSError:
            if name != RECORD:
                stamp.append(0)
                continue
            try:
                seen = os.stat(f"{folder}/{MEASUREMENTS}")  # noqa: PTH116
            except OSError:
                stamp.append(-1)
                continue
        stamp += (seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size, seen.st_ino)
    return stamp


def _summary(line: list[Any]) -> RunSummary:
    values = dict(zip(_FIELDS, line[1:], strict=True))
    return RunSummary(**{**values, "tags": tuple(values["tags"])})
