"""A run as one file, `.tar.gz`: the same run gives the same bytes, and what is in it can be checked without a store."""

import gzip
import hashlib
import io
import math
import tarfile
from collections.abc import Mapping
from pathlib import Path

from orchestrator.errors import InvalidRunError, UsageError
from orchestrator.records import record_bytes
from orchestrator.records.exported import ExportManifest
from orchestrator.store.files import translated
from orchestrator.store.layout import KEY, MEASUREMENTS, VERDICT, record_path
from remote_payload.rundir import RunDir, write_atomically
from remote_payload.schema import ManifestFile

MANIFEST = "eagle3-run.json"
MAX_BYTES = 200 << 20
"""Of an archive, packed and unpacked: what a laptop reads at once."""
COPIES = frozenset({MEASUREMENTS, KEY, VERDICT})
"""Beside a run of a host these are made of its result where they are needed; nobody else's are believed."""


def run_files(run: RunDir) -> dict[str, bytes]:
    """The files of a run's folder by name, without what can be made of them.

    Raises InvalidRunError where they are too many bytes, or where a link stands among them: what it leads to is not
    the run's own, and without it the run would not be whole.
    """
    copies = COPIES if record_path(run).is_file() else frozenset()
    with translated("read", run.path):
        entries = {path.relative_to(run.path).as_posix(): path for path in sorted(run.path.rglob("*"))}
        wanted = {name: path for name, path in entries.items() if name not in copies and "/." not in f"/{name}"}
        links = [name for name, path in wanted.items() if path.is_symlink()]
        if links:
            raise InvalidRunError(
                f"expected a run of files alone, found a link: {run.path / links[0]}",
                hint="put what it leads to in its place; FILE.json exports the measurements alone",
            )
        wanted = {name: path for name, path in wanted.items() if path.is_file()}
        size = sum(path.stat().st_size for path in wanted.values())
        if size > MAX_BYTES:
            raise InvalidRunError(
                f"expected a run of at most {MAX_BYTES >> 20} MB, `{run.path.name}` has "
                f"{math.ceil(size / 2**20)} MB on this laptop",
                hint="FILE.json exports its measurements alone",
            )
        return {name: path.read_bytes() for name, path in wanted.items()}


def export_run(run: RunDir, target: Path) -> None:
    """Write the run's archive, whole or not at all. Raises UsageError where the file is there already, StoreError."""
    write_new(target, archived(run.path.name, run_files(run)))


def write_new(target: Path, data: bytes) -> None:
    """Write a file the user named, whole or not at all. Raises UsageError where it is there already, StoreError."""
    if target.exists():
        raise UsageError(f"expected a new file, there is one already: {target}")
    if not target.parent.is_dir():
        raise UsageError(f"expected a file in a folder that exists, found: {target}")
    with translated("write", target, in_store=False):
        write_atomically(target, data)


def archived(run_id: str, files: Mapping[str, bytes]) -> bytes:
    """The archive of these files: sorted, without times, owners and modes."""
    entries = tuple(
        ManifestFile(name=name, size_bytes=len(files[name]), sha256=hashlib.sha256(files[name]).hexdigest())
        for name in sorted(files)
    )
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0, compresslevel=6) as outer,
        tarfile.open(fileobj=outer, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        _add(tar, MANIFEST, record_bytes(ExportManifest(run_id=run_id, files=entries)))
        for name in sorted(files):
            _add(tar, f"{run_id}/{name}", files[name])
    return packed.getvalue()


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o600
    tar.addfile(entry, io.BytesIO(data))
