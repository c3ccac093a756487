"""Finding captured rows on disk, and the merged JSONL that may lie beside them. Reads no row."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remote_payload.failure import rows_failure

ROW_FILE = re.compile(r"(\d+)\.(?:ckpt|pt)(?:\.gz)?$")


@dataclass(frozen=True, kw_only=True)
class RowFile:
    """One row on disk."""

    path: Path
    name: str
    """Relative to the rows folder."""
    number: int
    """The number in its name: `data_12.ckpt` is 12, and line 12 (0-based) of the merged JSONL is its own."""


@dataclass(frozen=True, kw_only=True)
class Merged:
    """A merged JSONL, kept as the byte offset of each line, so that memory does not grow with its text."""

    path: Path
    offsets: tuple[int, ...]

    def line(self, number: int) -> dict[str, Any] | str:
        """Line `number` (0-based) as an object, or the reason why there is none."""
        if number >= len(self.offsets):
            return f"the merged JSONL has only {len(self.offsets)} lines, no line {number + 1}"
        with self.path.open("rb") as file:
            file.seek(self.offsets[number])
            try:
                value = json.loads(file.readline())
            except ValueError as error:
                return f"line {number + 1} of the merged JSONL is not JSON: {error}"
            except RecursionError:
                return f"line {number + 1} of the merged JSONL is nested too deeply"
        return value if isinstance(value, dict) else f"line {number + 1} of the merged JSONL is not an object"


@dataclass(frozen=True, kw_only=True)
class RowFolder:
    """The rows of a folder in natural order, and what lies beside them."""

    folder: Path
    layout: str
    files: tuple[RowFile, ...]
    merged: Merged | None


def find_rows(folder: Path, merged: Path | None, max_rows: int | None) -> RowFolder:
    """List the rows of a folder: `rows_A-B/data_i.ckpt[.gz]`, or the same files directly in it.

    `merged` defaults to `merged.jsonl` in the folder itself, if there is one. Raises JobFailure(rows).
    """
    if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises on names that are too long
        raise rows_failure(
            f"the folder of captured rows does not exist on this machine: {folder}",
            hint="`rows` must name a folder on the server that runs the job",
        )
    candidates = _candidates(folder)
    files = sorted((file for path in candidates if (file := _row_file(path, folder))), key=_natural)
    if not files:
        found = sorted(path.name for path in candidates)
        raise rows_failure(
            f"no captured rows (`rows_A-B/data_i.ckpt` or `.ckpt.gz`) in the folder: {folder}",
            hint=f"it holds: {', '.join(found[:5])}{', ...' if len(found) > 5 else ''}" if found else "it is empty",
        )
    beside = merged or (folder / "merged.jsonl" if (folder / "merged.jsonl").is_file() else None)
    nested = any("/" in file.name for file in files)
    layout = f"{'specforge offline (rows_A-B)' if nested else 'row files'}{' + merged JSONL' if beside else ''}"
    return RowFolder(
        folder=folder,
        layout=layout,
        files=tuple(files[:max_rows]),
        merged=_index_merged(beside) if beside else None,
    )


def _candidates(folder: Path) -> list[Path]:
    try:
        found = list(folder.iterdir())
        for sub in found[:]:
            if sub.name.startswith("rows_") and sub.is_dir():
                found += sub.iterdir()
    except OSError as error:
        raise rows_failure(f"the folder of captured rows cannot be read ({error.strerror}): {error.filename}") from None
    return found


def _row_file(path: Path, folder: Path) -> RowFile | None:
    match = ROW_FILE.search(path.name)
    if match is None or not path.is_file():
        return None
    return RowFile(path=path, name=path.relative_to(folder).as_posix(), number=int(match.group(1)))


def _natural(file: RowFile) -> list[tuple[int, str]]:
    """`data_10` after `data_2`: digits compare as numbers."""
    parts = re.split(r"(\d+)", file.name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _index_merged(path: Path) -> Merged:
    offsets: list[int] = []
    try:
        with path.open("rb") as file:
            position = 0
            for line in file:
                if line.strip():
                    offsets.append(position)
                position += len(line)
    except (OSError, ValueError) as error:  # a name with a NUL is the latter
        told = error.strerror if isinstance(error, OSError) else str(error)
        raise rows_failure(
            f"the merged JSONL cannot be read ({told}): {path}",
            hint="`merged` must name a file on the server that runs the job",
        ) from None
    return Merged(path=path, offsets=tuple(offsets))
