"""Compiled sources beside the payload file, because Python compiles a zip's modules anew at every start.

`<root>/payloads/<sha256>.<cache tag>/` is made once for each Python, in the background, after the first launch was
answered; it is complete or not there. The entry of the payload file (written by the laptop) looks for it.
"""

import contextlib
import os
import sys
from pathlib import Path

from remote_payload.rundir import sync

ROOM_BYTES = 64 << 20
"""Not on a disk with less left than this."""


def bytecode_folder(archive: Path) -> Path:
    """Where the compiled sources of `archive` for this Python are, if they are."""
    return archive.with_suffix(f".{sys.implementation.cache_tag}")


def keep_bytecode(archive: Path) -> None:
    """Make the folder if it is missing, in a process of its own; whatever hinders that costs only speed."""
    folder = bytecode_folder(archive)
    if folder.exists() or os.fork() != 0:
        return
    try:
        os.setsid()
        os.nice(10)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        with contextlib.suppress(OSError):
            make_bytecode(archive, folder)
    finally:
        os._exit(0)  # never back into the launcher's code


def make_bytecode(archive: Path, folder: Path) -> None:
    """Unpack and compile under a temporary name, sync, rename. Raises OSError; nothing half-made stays."""
    import compileall  # noqa: PLC0415 - all four are needed once, and this module at every launch
    import py_compile  # noqa: PLC0415
    import shutil  # noqa: PLC0415
    import zipfile  # noqa: PLC0415

    disk = os.statvfs(folder.parent)
    if disk.f_bavail * disk.f_frsize < ROOM_BYTES:
        return
    made = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        with zipfile.ZipFile(archive) as sources:
            sources.extractall(made)
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH  # the sources never change: named by their hash
        compileall.compile_dir(made, quiet=2, invalidation_mode=mode)
        for path in made.rglob("*.py*"):
            sync(path)
        made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
