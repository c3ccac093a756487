"""Tokens and masks that lie beside the states, a line a row: a merged JSONL, or speculators' prepared dataset."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from remote_payload.failure import rows_failure
from remote_payload.standalone.rows.arrow import ArrowError, ArrowFile, open_arrow
from remote_payload.standalone.rows.values import RowError, integers, sha256_of

COLUMNS = ("input_ids", "loss_mask")
STATE, DATA = "state.json", "data-*.arrow"


@dataclass(frozen=True, kw_only=True)
class Merged:
    """A merged JSONL, kept as the byte offset of each line, so that memory does not grow with its text."""

    path: Path
    offsets: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many lines there are."""
        return len(self.offsets)

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
class Prepared:
    """speculators' prepared dataset: Arrow files with `input_ids` and `loss_mask`, in order."""

    path: Path
    files: tuple[ArrowFile, ...]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(file.rows for file in self.files)

    def line(self, number: int) -> dict[str, Any] | str:
        """Row `number` as tensors, or the reason why there is none."""
        left = number
        for file in self.files:
            if left < file.rows:
                try:
                    return {name: file.read(name, left) for name in COLUMNS}
                except ArrowError as error:
                    return f"row {number} of the prepared dataset cannot be read: {error}"
            left -= file.rows
        return f"the prepared dataset has only {self.count} rows, no row {number}"


@dataclass(kw_only=True)
class Lines:
    """Lines found by number where they fit the row's tokens, else by the tokens themselves."""

    source: Merged | Prepared
    _by_tokens: dict[str, int] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """What they are called in a message."""
        return "merged JSONL" if isinstance(self.source, Merged) else "prepared dataset"

    def of(self, number: int) -> dict[str, Any]:
        """Line `number`. Raises RowError."""
        line = self.source.line(number)
        if isinstance(line, str):
            raise RowError(line)
        return line

    def like(self, tokens: torch.Tensor, number: int | None) -> dict[str, Any]:
        """The line with just these tokens (T,): line `number` where it fits, else the first that does.

        Raises RowError where there is none. The first search reads every line once and keeps a hash of each.
        """
        if number is not None:
            line = self.source.line(number)
            if isinstance(line, dict) and _same(line, tokens):
                return line
        if self._by_tokens is None:
            self._by_tokens = self._hashes()
        found = self._by_tokens.get(sha256_of(tokens))
        if found is None:
            raise RowError(f"no row of the {self.name} has its tokens")
        return self.of(found)

    def _hashes(self) -> dict[str, int]:
        hashes: dict[str, int] = {}
        for number in range(self.source.count):
            line = self.source.line(number)
            if isinstance(line, dict) and (ids := _ids(line)) is not None:
                hashes.setdefault(sha256_of(ids), number)
        return hashes


def _same(line: dict[str, Any], tokens: torch.Tensor) -> bool:
    ids = _ids(line)
    return ids is not None and torch.equal(ids, tokens)


def _ids(line: dict[str, Any]) -> torch.Tensor | None:
    try:
        return integers(line, "input_ids")
    except RowError:
        return None


def index_merged(path: Path) -> Merged:
    """Note where each line of a JSONL begins. Raises JobFailure(rows)."""
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


def is_dataset(folder: Path) -> bool:
    """Whether `datasets.save_to_disk` wrote this folder."""
    return any(folder.glob(DATA))


def open_prepared(folder: Path) -> Prepared:
    """Look at a dataset folder as `datasets.save_to_disk` writes it. Raises JobFailure(rows)."""
    return Prepared(path=folder, files=tuple(_open(path) for path in _arrow_paths(folder)))


def _open(path: Path) -> ArrowFile:
    try:
        return open_arrow(path, COLUMNS)
    except ArrowError as error:
        raise rows_failure(
            f"the prepared dataset cannot be read: {error}: {path}",
            hint="it must be an uncompressed Arrow dataset with lists `input_ids` and `loss_mask`, as "
            "`speculators prepare-data` writes it",
        ) from None
    except OSError as error:
        raise rows_failure(f"the prepared dataset cannot be read ({error.strerror}): {path}") from None


def _arrow_paths(folder: Path) -> list[Path]:
    """The data files in the order that state.json gives; without one, by name."""
    try:
        state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return sorted(folder.glob(DATA))
    except (OSError, ValueError, RecursionError) as error:
        raise rows_failure(f"the prepared dataset's state.json cannot be read ({error}): {folder / STATE}") from None
    listed = state.get("_data_files") if isinstance(state, dict) else None
    names = [item.get("filename") if isinstance(item, dict) else None for item in listed or []]
    if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise rows_failure(f"the prepared dataset's state.json must list `_data_files` of its folder: {folder / STATE}")
    if state.get("_indices_data_files"):
        raise rows_failure(
            f"the prepared dataset is a selection of rows (`_indices_data_files`), which is not read here: {folder}",
            hint="write it out once: load_from_disk(...).flatten_indices().save_to_disk(...)",
        )
    return [folder / str(name) for name in names]
