"""A run's folder appears whole or not at all, and goes at once; what a killed process left half-done is swept later."""

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from remote_payload.rundir import sync, write_atomically

LEFTOVER_AGE_S = 3600.0
"""Nobody takes that long over a folder: older ones belong to nobody."""


@contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """A hidden folder to fill, which becomes `path` in the end; nothing is left where filling it fails."""
    half = path.with_name(f".{path.name}.{os.getpid()}.new")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(mode=0o700, parents=True)
    try:
        yield half
        half.rename(path)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise
    if os.name == "posix":
        sync(path.parent)


def write_together(folder: Path, files: Mapping[Path, bytes]) -> None:
    """Write files of a folder and bring all to the disk at once: cheaper than each by itself. Raises OSError."""
    for path, data in files.items():
        write_atomically(path, data, durable=False)
    if os.name == "posix":
        for path in (*files, folder):
            sync(path)


def vanish(path: Path) -> None:
    """Remove a folder: at once out of every listing, even if the rest is interrupted."""
    gone = path.with_name(f".{path.name}.{os.getpid()}.removed")
    path.rename(gone)
    shutil.rmtree(gone)


def sweep(folders: tuple[Path, ...]) -> int:
    """Remove what killed processes left in these folders an hour ago or earlier; returns how many things that were."""
    swept = 0
    oldest_s = time.time() - LEFTOVER_AGE_S
    for entry in [entry for folder in folders if folder.is_dir() for entry in os.scandir(folder)]:
        is_ours = entry.name.startswith(".") and entry.name.endswith((".new", ".removed", ".begin", ".tmp"))
        if not is_ours or entry.stat(follow_symlinks=False).st_mtime > oldest_s:
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            Path(entry.path).unlink(missing_ok=True)
        swept += 1
    return swept
