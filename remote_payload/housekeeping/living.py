"""What lives on this host, in one look over its processes, and what the schedules name."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from remote_payload import processes

HASH = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
"""A payload's name."""
MOST_BYTES = 1 << 20
"""Of one file of a schedule."""


@dataclass(frozen=True, kw_only=True)
class Living:
    """Not covered: processes of other users, and of other hosts that share the root."""

    run_dirs: frozenset[str]
    """Run folders whose mark some process carries."""
    payloads: frozenset[str]
    """Payloads on some command line."""


def look() -> Living:
    """Over all processes that this user may look into."""
    run_dirs: set[str] = set()
    payloads: set[str] = set()
    mark = f"{processes.MARK}=".encode()
    for pid in processes.all_pids():
        for name in _read(f"/proc/{pid}/environ").split(b"\0"):
            if name.startswith(mark):
                run_dirs.add(os.fsdecode(name[len(mark) :]))
        line = _read(f"/proc/{pid}/cmdline")
        if b".pyz" in line:
            payloads.update(HASH.findall(line.decode("ascii", "replace")))
    return Living(run_dirs=frozenset(run_dirs), payloads=frozenset(payloads))


def scheduled(root: Path) -> frozenset[str]:
    """Payloads that stand in any file below `<root>/schedules`. Raises OSError where one cannot be read."""
    found: set[str] = set()
    waiting = [root / "schedules"]
    while waiting:
        folder = waiting.pop()
        if not folder.is_dir():
            continue
        for entry in folder.iterdir():
            found.update(HASH.findall(entry.name))
            if entry.is_dir() and not entry.is_symlink():
                waiting.append(entry)
            elif entry.is_file():
                with entry.open("rb") as file:
                    found.update(HASH.findall(file.read(MOST_BYTES).decode("utf-8", "replace")))
    return frozenset(found)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
