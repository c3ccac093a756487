"""The disk under the root: can we write there, run from there, and how much is left."""

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class DiskFacts:
    """None is unknown; `problem` None is a root that takes files."""

    problem: str | None
    noexec: bool | None = None
    filesystem: str | None = None
    free_bytes: int | None = None
    inodes_free: int | None = None


def look_at(root: Path) -> DiskFacts:
    """Look at the root, or at the nearest folder above it that exists."""
    folder = root
    while not os.path.lexists(folder):
        folder = folder.parent
    problem = _write_problem(folder)
    try:
        numbers = os.statvfs(folder)
    except OSError:
        return DiskFacts(problem=problem)
    return DiskFacts(
        problem=problem,
        noexec=bool(numbers.f_flag & os.ST_NOEXEC),
        filesystem=_filesystem(folder),
        free_bytes=numbers.f_bavail * numbers.f_frsize,
        inodes_free=numbers.f_favail if numbers.f_files else None,  # btrfs and others count none
    )


def _write_problem(folder: Path) -> str | None:
    if not folder.is_dir():
        return f"a file is in the way: {folder}"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0" * 4096)
    except OSError as error:
        return f"{error.strerror}: {folder}"
    return None


def _filesystem(folder: Path) -> str | None:
    """Type of the last mount over the folder, e.g. `ext4`, by device number (mountinfo(5))."""
    try:
        device = folder.stat().st_dev
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    wanted = str(folder.resolve())
    best_rank, best_type = -1, None
    for line in lines:
        fields = line.split()
        mount = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        covers = wanted == mount or wanted.startswith(mount.rstrip("/") + "/")
        same = fields[2] == f"{os.major(device)}:{os.minor(device)}"
        rank = (len(mount) + (10000 if same else 0)) if covers else -1
        if covers and rank >= best_rank:
            best_rank, best_type = rank, fields[fields.index("-") + 1]
    return best_type
