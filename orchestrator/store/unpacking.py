"""What is in an archive, read as if an enemy had made it: no paths out, no links, no bombs, every hash checked."""

import gzip
import hashlib
import math
import tarfile
import zlib
from pathlib import Path

from orchestrator.errors import InvalidRunError, UsageError
from orchestrator.records import read_record
from orchestrator.records.exported import ExportManifest
from orchestrator.store.archive import MANIFEST, MAX_BYTES
from orchestrator.store.files import translated

MAX_FILES = 10_000
MAX_NAME = 200
_BROKEN = (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, ValueError, OverflowError)


class _Bounded:
    """A stream that ends with an error where it is longer than an archive may be."""

    def __init__(self, inner: gzip.GzipFile, where: Path) -> None:
        self._inner, self._where, self._left = inner, where, MAX_BYTES

    def read(self, size: int) -> bytes:
        data = self._inner.read(min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise InvalidRunError(f"{self._where}: expected at most {MAX_BYTES >> 20} MB unpacked, found more")
        return data


def read_bounded(path: Path) -> bytes:
    """The file's bytes. Raises UsageError where it is larger than what is read at once, StoreError."""
    with translated("read", path, in_store=False):
        _require_bounded(path)
        return path.read_bytes()


def is_gzip(path: Path) -> bool:
    """Whether the file begins as gzip files do. Raises as `read_bounded`."""
    with translated("read", path, in_store=False):
        _require_bounded(path)
        with path.open("rb") as file:
            return file.read(2) == b"\x1f\x8b"


def _require_bounded(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise UsageError(f"expected a file, found a folder, a pipe or a device: {path}")
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise UsageError(f"{path}: expected at most {MAX_BYTES >> 20} MB, found: {math.ceil(size / 2**20)} MB")


def unpacked_run(path: Path) -> tuple[str, dict[str, bytes]]:
    """The run id and the files of an exported run. Raises InvalidRunError naming what is wrong, StoreError."""
    with translated("read", path, in_store=False), gzip.open(path) as inner:
        stream = _Bounded(inner, path)
        try:
            with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload] # it reads, no more
                members = _members(tar, path)
            while stream.read(1 << 16):
                pass  # to the end: only then is gzip's own sum checked
        except _BROKEN as error:
            raise InvalidRunError(
                f"{path}: expected an exported run (.tar.gz), found: {error}",
                hint="another tool's file is imported unpacked: gunzip it first",
            ) from None
    manifest_data = members.pop(MANIFEST, None)
    if manifest_data is None:
        raise InvalidRunError(f"{path}: expected an exported run, found no {MANIFEST} in it")
    manifest = read_record(ExportManifest, manifest_data, where=f"{path}: {MANIFEST}", error=InvalidRunError)
    prefix = f"{manifest.run_id}/"
    files = {name.removeprefix(prefix): data for name, data in members.items()}
    _require_whole(manifest, files, path)
    return manifest.run_id, files


def _members(tar: tarfile.TarFile, path: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    seen: set[str] = set()
    for member in tar:
        if not member.isreg() or member.issparse():
            raise InvalidRunError(
                f"{path}: expected plain files alone, found a link, folder or device: {member.name!r}"
            )
        if not _is_safe(member.name) or member.name.casefold() in seen:
            raise InvalidRunError(f"{path}: expected names inside the run, each once, found: {member.name!r}")
        if len(seen) >= MAX_FILES:
            raise InvalidRunError(f"{path}: expected at most {MAX_FILES} files, found more")
        seen.add(member.name.casefold())
        file = tar.extractfile(member)
        assert file is not None  # it is a plain file
        found[member.name] = file.read()
    return found


def _is_safe(name: str) -> bool:
    """Whether a name stays below the run's folder, on any system."""
    parts = name.split("/")
    strange = any(part.startswith(".") or not part or not part.isprintable() for part in parts)
    return not strange and len(name) <= MAX_NAME and not set(name) & set("\\:")


def _require_whole(manifest: ExportManifest, files: dict[str, bytes], path: Path) -> None:
    expected = {file.name: file for file in manifest.files}
    for name in sorted(set(expected) ^ set(files)):
        words = "is in its manifest and missing" if name in expected else "is not in its manifest"
        raise InvalidRunError(
            f"{path}: `{name}` {words}", hint="the archive is cut or was changed; export the run again"
        )
    for name, data in files.items():
        digest = hashlib.sha256(data).hexdigest()
        if digest != expected[name].sha256:
            raise InvalidRunError(
                f"{path}: `{name}`: expected sha256 {expected[name].sha256}, found: {digest}",
                hint="the archive was changed; export the run again",
            )
