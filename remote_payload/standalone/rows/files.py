"""Finding captured rows on disk, and what lies beside them: a merged JSONL, a prepared dataset, a manifest."""

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from remote_payload.failure import rows_failure
from remote_payload.standalone.file_kind import no_file, no_folder
from remote_payload.standalone.rows.hidden_files import shapes
from remote_payload.standalone.rows.lines import Lines, index_merged, is_dataset, open_prepared
from remote_payload.standalone.rows.shards import Manifest, read_manifest
from remote_payload.standalone.rows.values import RowError

Form = Literal["dict", "hidden", "shard"]
PATTERNS: dict[Form, re.Pattern[str]] = {
    "dict": re.compile(r"(\d*)\.(?:ckpt|pt)(?:\.gz)?$"),
    "hidden": re.compile(r"^hs_(\d+)\.safetensors$"),
    "shard": re.compile(r"^shard-(\d+)\.safetensors$"),
}
FORM_NAMES: dict[Form, str] = {"dict": "torch.save files", "hidden": "hs_i.safetensors", "shard": "shard-*.safetensors"}
NOT_ROWS = ("token_freq", "vocab_mapping", "d2t", "t2d", "optimizer", "scheduler", "training_state", "training_args")
"""Beginnings of .pt files that writers leave beside rows."""
HIDDEN, PREPARED = "hidden_states", "prepared"


@dataclass(frozen=True, kw_only=True)
class RowFile:
    """One row on disk."""

    path: Path
    name: str
    """Relative to the rows folder; a sample of a shard has its place in brackets."""
    number: int | None
    """The number in its name: `data_12.ckpt` is 12, and line 12 (0-based) of the merged JSONL is its own."""
    form: Form = "dict"
    index: int = 0
    """Its place in a shard."""
    odd: str | None = None
    """Why it is not read at all; None = it is."""


@dataclass(frozen=True, kw_only=True)
class RowFolder:
    """The rows of a folder in natural order, and what lies beside them."""

    folder: Path
    layout: str
    files: tuple[RowFile, ...]
    lines: Lines | None = None
    """Merged JSONL or prepared dataset."""
    manifest: Manifest | None = None


def find_rows(folder: Path, merged: Path | None, max_rows: int | None, *, named: str = "rows") -> RowFolder:
    """List the rows of a folder, whatever the dialect; `named` is the job's key for it.

    `rows_A-B/data_i.ckpt[.gz]` or such files (also .pt) directly in it; `hs_i.safetensors` in it or in
    `hidden_states/`, with the prepared dataset in it, beside it or above it; or Automodel's shards with their
    manifest. `merged` defaults to `merged.jsonl` in the folder itself, if there is one. Raises JobFailure(rows).
    """
    if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises on names that are too long
        raise rows_failure(
            f"the folder of captured rows {no_folder(folder)} on this machine: {folder}",
            hint=f"`{named}` must name a folder on the server that runs the job",
        )
    candidates, manifest = _candidates(folder), read_manifest(folder)
    files = sorted((file for path in candidates if (file := _row_file(path, folder))), key=_natural)
    if not files:
        raise _no_rows(folder, candidates)
    form = _form(files, manifest)
    files = [file if file.form == form or file.odd else _odd(file, form) for file in files]
    if form == "shard":
        files = [sample for file in files for sample in _samples(file)]
    beside = merged or (folder / "merged.jsonl" if (folder / "merged.jsonl").is_file() else None)
    lines = Lines(source=index_merged(beside)) if beside else None
    if form == "hidden" and lines is None:
        lines = _prepared(folder, [file for file in files if file.form != form])
    return RowFolder(
        folder=folder,
        layout=_layout(form, files, lines),
        files=tuple(files[:max_rows]),
        lines=lines,
        manifest=manifest,
    )


def _form(files: list[RowFile], manifest: Manifest | None) -> Form:
    """The form of most files; shards can only be read with their manifest."""
    readable = [file for file in files if file.odd is None] or files
    counts = Counter(file.form for file in readable if file.form != "shard" or manifest is not None)
    if not counts:
        raise rows_failure(
            f"shard-*.safetensors need Automodel's manifest.json beside them, there is none in: {files[0].path.parent}"
        )
    return counts.most_common(1)[0][0]


def _odd(file: RowFile, form: Form) -> RowFile:
    return replace(file, odd=f"it is of another layout than most rows, which are {FORM_NAMES[form]}")


def _samples(file: RowFile) -> list[RowFile]:
    """The samples of a shard; one that cannot be opened stands for itself and will tell why."""
    if file.odd:
        return [file]
    try:
        told = shapes(file.path).get("aux_hidden_states", (1,))[0]
        samples = min(told, file.path.stat().st_size)  # empty tensors may claim any number
    except (RowError, OSError, IndexError):
        samples = 1
    return [replace(file, name=f"{file.name}[{index}]", index=index) for index in range(samples)]


def _prepared(folder: Path, others: list[RowFile]) -> Lines:
    """The dataset that holds the loss masks; `others` are row files of another layout, told where it is missing."""
    places = (folder, folder / PREPARED, folder.parent, folder.parent / PREPARED)
    for place in places:
        if is_dataset(place):
            return Lines(source=open_prepared(place))
    raise rows_failure(
        "hs_i.safetensors hold no loss mask: the prepared dataset (data-*.arrow) must lie in, beside or above the "
        f"folder, none was found: {folder}",
        hint=f"{len(others)} row file(s) of another layout lie there as well, the first {others[0].name}: put each "
        "layout into a folder of its own"
        if others
        else "copy `prepared/` (speculators prepare-data) next to `hidden_states/`, or give a merged JSONL",
    )


def _layout(form: Form, files: list[RowFile], lines: Lines | None) -> str:
    nested = any(file.name.startswith("rows_") for file in files)
    dicts = "specforge offline (rows_A-B)" if nested else "row files"
    told = {"dict": dicts, "hidden": "speculators (hs_i.safetensors)", "shard": "automodel cache (shards)"}[form]
    return f"{told} + {lines.name}" if lines else told


def _no_rows(folder: Path, candidates: Iterable[Path]) -> Exception:
    found = sorted(path.name for path in candidates)
    return rows_failure(
        "no captured rows (`rows_A-B/data_i.ckpt[.gz]`, `*.pt`, `hs_i.safetensors`, `shard-*.safetensors`) in the "
        f"folder: {folder}",
        hint=f"it holds: {', '.join(found[:5])}{', ...' if len(found) > 5 else ''}" if found else "it is empty",
    )


def _candidates(folder: Path) -> list[Path]:
    try:
        found = list(folder.iterdir())
        for sub in found[:]:
            if (sub.name.startswith("rows_") or sub.name == HIDDEN) and sub.is_dir():
                found += sub.iterdir()
        sibling = folder.parent / HIDDEN
        if is_dataset(folder) and not (folder / HIDDEN).exists() and sibling.is_dir():
            found += sibling.iterdir()  # the prepared dataset itself was given
    except OSError as error:
        raise rows_failure(f"the folder of captured rows cannot be read ({error.strerror}): {error.filename}") from None
    return found


def _row_file(path: Path, folder: Path) -> RowFile | None:
    for form, pattern in PATTERNS.items():
        match = pattern.search(path.name)
        if match and not path.name.startswith(NOT_ROWS):
            name = path.relative_to(folder if path.is_relative_to(folder) else folder.parent).as_posix()
            number, missing = int(match.group(1)) if match.group(1) else None, no_file(path)
            odd = None if missing is None else f"it is no file but {missing}"
            return RowFile(path=path, name=name, number=number, form=form, odd=odd)
    return None


def _natural(file: RowFile) -> list[tuple[int, str]]:
    """`data_10` after `data_2`: digits compare as numbers."""
    parts = re.split(r"(\d+)", file.name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
