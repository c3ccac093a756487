"""Result files of other tools as they lie on the disk: a file, or a sweep's folder, of which each file is a line."""

import datetime
import gzip
import hashlib
import math
import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from orchestrator.errors import NotFoundError, UsageError
from orchestrator.importers.source import Source
from orchestrator.records.measurement import MeasurementSet
from orchestrator.records.packed import packed
from orchestrator.store import Store
from orchestrator.store.archive import MAX_BYTES
from orchestrator.store.files import names_in, translated
from orchestrator.store.intake import take_in
from orchestrator.store.layout import RAW
from orchestrator.store.unpacking import read_bounded

_OF_A_SWEEP = ("run=*.json", "*failure.json", "profile_export_aiperf.json")
_DEPTH, _MOST_FILES = 4, 100_000
_HASH_IN_ID = re.compile(r"-([0-9a-f]{12})\Z")
_PART = 1 << 16
_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


def opened(path: Path, label: str = "") -> Source:
    """A file or folder of results, read.

    Raises NotFoundError where there is none, UsageError where it is too large or a folder without results, StoreError.
    """
    if not path.exists():
        raise NotFoundError(f"no such file: {path}")
    if not path.is_dir():
        return Source(path.name, read_bounded(path), label, day=_day([path]))
    files = sorted(_results(path))
    if not any("failure" not in file.name for file in files):
        raise UsageError(
            f"{path}: expected the folder of a sweep with results in it ({', '.join(_OF_A_SWEEP)}), found none",
            hint="of other tools import the files themselves",
        )
    with translated("read", path, in_store=False):
        size = sum(file.stat().st_size for file in files)
    if size > MAX_BYTES:
        raise UsageError(
            f"{path}: expected at most {MAX_BYTES >> 20} MB of results, found: {math.ceil(size / 2**20)} MB"
        )
    # A line end is white space wherever JSON may have one, so each file can be a line of its own.
    lines = [read_bounded(file).translate(_ONE_LINE) for file in files]
    places = tuple(f"{path.name}/{file.relative_to(path).as_posix()}" for file in files)
    return Source(path.absolute().name, b"\n".join(lines), label, day=_day(files), places=places)


def kept_as(store: Store, found: MeasurementSet) -> str | None:
    """The id under which the store has these very bytes; None where it has not. The day in an id may be another."""
    ending = f"-{(found.source_sha256 or '')[:12]}"
    for name in names_in(store.home / "runs"):
        if name.endswith(ending) and store.is_imported(name):
            known = store.imported(name)
            if (known.source_sha256, known.tool) == (found.source_sha256, found.tool):
                return name
    return None


def beginnings_kept(store: Store, source: Source) -> tuple[str, ...]:
    """The runs whose file was the beginning of this one, which has grown since: their results are in it as well.

    Not covered: files that were not kept, because they seem to hold a secret.
    """
    sizes: dict[int, list[str]] = {}
    for name in names_in(store.home / "runs"):
        path = store.home / "runs" / name / RAW
        if _HASH_IN_ID.search(name) is not None and path.is_file():
            sizes.setdefault(_unpacked_size(path), []).append(name)
    so_far, begin, found = hashlib.sha256(), 0, list[str]()
    for size in sorted(size for size in sizes if 0 < size < len(source.data)):
        so_far.update(memoryview(source.data)[begin:size])
        begin = size
        found += [name for name in sizes[size] if name.endswith(so_far.hexdigest()[:12])]
    return tuple(found)


def grown_kept(store: Store, source: Source) -> tuple[str, ...]:
    """The runs whose file begins with this one: it is an earlier state of theirs. Not covered: as `beginnings_kept`."""
    found = []
    for name in names_in(store.home / "runs"):
        path = store.home / "runs" / name / RAW
        is_longer = _HASH_IN_ID.search(name) and path.is_file() and _unpacked_size(path) > len(source.data)
        if is_longer and _begins(path, source.data):
            found.append(name)
    return tuple(found)


def _begins(path: Path, data: bytes) -> bool:
    """Whether the packed file begins with these bytes, read as far as the two are alike. Raises StoreError.

    Of a damaged one it cannot be said.
    """
    parts = (data[begin : begin + _PART] for begin in range(0, len(data), _PART))
    try:
        with translated("read", path), gzip.open(path) as file:
            return all(file.read(len(part)) == part for part in parts)
    except (EOFError, zlib.error):
        return False


def _unpacked_size(path: Path) -> int:
    """Bytes before packing, below 4 GB: what a gzip file ends with (RFC 1952, ISIZE). Raises StoreError."""
    with translated("read", path), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4))
        return int.from_bytes(file.read(4), "little")


def kept_own(store: Store, path: Path, found: MeasurementSet) -> tuple[str, bool]:
    """Keep the run of a file that this tool wrote: its id, and whether it is new here. Raises as `take_in`."""
    with path.open("rb") as file:
        is_record = file.read(2) != b"\x1f\x8b"
    if not is_record:
        return take_in(store.home, path)
    with tempfile.TemporaryDirectory(prefix="eagle3-remote-") as folder:
        sealed = Path(folder) / "run.json"
        sealed.write_bytes(packed(found))  # `measurements.json` as it stands has no hash of its own
        return take_in(store.home, sealed)


def _results(folder: Path) -> Iterator[Path]:
    """Its result files, not too deep and not too many."""
    looked_at = 0
    with translated("list", folder, in_store=False):
        for place, folders, names in os.walk(folder):
            here = Path(place)
            looked_at += len(names)
            if looked_at > _MOST_FILES:
                raise UsageError(f"{folder}: expected the folder of a sweep, found more than {_MOST_FILES} files in it")
            if len(here.relative_to(folder).parts) >= _DEPTH:
                folders.clear()
            yield from (here / name for name in names if any(Path(name).match(pattern) for pattern in _OF_A_SWEEP))


def _day(files: list[Path]) -> str:
    """The day of the newest, in UTC."""
    with translated("read", files[0], in_store=False):
        newest = max(file.stat().st_mtime for file in files)
    return datetime.datetime.fromtimestamp(newest, datetime.UTC).strftime("%Y%m%d")
