"""What a tree takes on its disk, and what keeps us from taking it away. No link is followed."""

import os
import pwd
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

BLOCK_BYTES = 512
"""The unit of `st_blocks` (stat(2)), whatever the file system's own blocks are."""
Inode = tuple[int, int]


@dataclass
class Weight:
    """Bytes allocated; files of several names are counted once, and are freed with their last name only."""

    plain_bytes: int = 0
    """Of what has one name."""
    linked: dict[Inode, list[int]] = field(default_factory=dict)
    """Of what has more: (bytes, names met, names it has)."""
    problem: str | None = None
    """Why the tree cannot be taken away."""

    @property
    def size_bytes(self) -> int:
        """All of it."""
        return self.plain_bytes + sum(size for size, _, _ in self.linked.values())

    @property
    def frees_bytes(self) -> int:
        """What no name elsewhere holds."""
        return self.plain_bytes + sum(size for size, met, names in self.linked.values() if met >= names)

    def add(self, other: "Weight") -> None:
        """Both together; a file that both have a name of is counted once."""
        self.plain_bytes += other.plain_bytes
        for inode, (size, met, names) in other.linked.items():
            known = self.linked.setdefault(inode, [size, 0, names])
            known[1] += met
        self.problem = self.problem or other.problem


def together(weights: Iterable[Weight]) -> Weight:
    """All of them as one."""
    total = Weight()
    for weight in weights:
        total.add(weight)
    return total


def weigh(path: Path, device: int, tick: Callable[[], None]) -> Weight:
    """The tree at `path`, or the one file; `device` is that of the root. What vanishes meanwhile weighs nothing."""
    weight = Weight()
    with suppress(FileNotFoundError):
        _count(os.lstat(path), str(path), device, weight)
        waiting = [str(path)] if path.is_dir() and not path.is_symlink() else []
        while waiting and weight.problem is None:
            tick()
            waiting += _folder(waiting.pop(), device, weight)
    return weight


def _folder(path: str, device: int, weight: Weight) -> list[str]:
    """Count what lies in a folder; the folders below it."""
    below = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=False)
                    _count(found, entry.path, device, weight)
                    if stat.S_ISDIR(found.st_mode):
                        below.append(entry.path)
    except FileNotFoundError:
        return []
    except OSError as error:
        weight.problem = weight.problem or f"{error.strerror}: {path}"
    return below


def _count(found: os.stat_result, path: str, device: int, weight: Weight) -> None:
    size = found.st_blocks * BLOCK_BYTES
    if found.st_dev != device:
        weight.problem = weight.problem or f"another file system is mounted in it: {path}"
        return
    if not stat.S_ISDIR(found.st_mode) and found.st_nlink > 1:
        known = weight.linked.setdefault((found.st_dev, found.st_ino), [size, 0, found.st_nlink])
        known[1] += 1
        return
    weight.plain_bytes += size
    if stat.S_ISDIR(found.st_mode) and os.geteuid() not in (0, found.st_uid):
        weight.problem = weight.problem or f"a folder of {owner(found.st_uid)} is in it: {path}"


def owner(uid: int) -> str:
    """A user by name, where the host knows one."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
