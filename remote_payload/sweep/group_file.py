"""The file of what a host was told of a group, `<root>/groups/<id>.jsonl`: a line a word, under a lock."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from remote_payload.refusal import disk_refusal
from remote_payload.schema import SchemaError, from_json, to_json
from remote_payload.schema.group import ToldShare
from remote_payload.schema.record import Record

FOLDER = "groups"


class Line(Record):
    """One line: a share that was told, one that was taken back, or one whose run here was taken away."""

    share: ToldShare | None = None
    withdrawn: str | None = None
    gone: str | None = None


@dataclass
class Ledger:
    """What holds now."""

    shares: dict[str, ToldShare] = field(default_factory=dict)
    """By run id, in the order in which they were told."""
    gone: set[str] = field(default_factory=set)
    """Runs of this host that `gc` took away: they have measured, although they are nowhere found."""


def path_of(root: Path, group_id: str) -> Path:
    """Where it lies, or will."""
    return root / FOLDER / f"{group_id}.jsonl"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[int]:
    """Its descriptor, to append to and read, under its lock. Raises Refusal where the disk is full or closed."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = _opened(path)
    except OSError as error:
        raise disk_refusal(error, f"write {path}") from None
    try:
        yield descriptor
    except OSError as error:
        raise disk_refusal(error, f"write {path}") from None
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    """The file under its lock; anew where `gc` took it away while the lock was waited for. Raises OSError."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(descriptor)):
                    return descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)


def append(descriptor: int, path: Path, lines: list[Line]) -> None:
    """All of these lines or none. Raises OSError."""
    if not lines:
        return
    size = path.stat().st_size
    data = memoryview(b"".join(to_json(line).encode("ascii") + b"\n" for line in lines))
    if size and os.pread(descriptor, 1, size - 1) != b"\n":  # a power cut left half a line
        data = memoryview(b"\n" + data)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def read(path: Path) -> Ledger:
    """What holds; half a line is passed over."""
    found = Ledger()
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return found
    for words in text.splitlines():
        with contextlib.suppress(SchemaError):
            line = from_json(Line, words)
            if line.share is not None:
                found.shares[line.share.run_id] = line.share
            elif line.withdrawn is not None:
                found.shares.pop(line.withdrawn, None)
            elif line.gone is not None:
                found.gone.add(line.gone)
    return found
