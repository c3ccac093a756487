"""The store's dealings with the disk: every OSError becomes a StoreError that names the path and what to try."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import StoreError
from remote_payload.rundir import write_atomically

LOCK_TIMEOUT_S = 10.0


@contextmanager
def translated(doing: str, path: Path) -> Iterator[None]:
    """Turn an OSError into StoreError: what we were doing, where, and the system's reason."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot {doing} `{path}`: {error.strerror or error}",
            hint="the store's folder can be moved with the environment variable EAGLE3_REMOTE_HOME",
        ) from None


def read_text(path: Path) -> str:
    """The file's text. Raises StoreError, also where it is not UTF-8."""
    with translated("read", path):
        data = path.read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise StoreError(f"{path}: expected UTF-8 text, found: {error.reason} at byte {error.start}") from None


def write(path: Path, data: bytes) -> None:
    """Replace the file atomically, making its folder (mode 0700) where it is missing. Raises StoreError."""
    with translated("write", path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, data)


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Hold the store's lock: for every change that reads before it writes. Raises StoreError after 10 s of waiting."""
    from filelock import FileLock, Timeout  # noqa: PLC0415 - 10 ms that a listing does not need

    with translated("lock", home):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(home / ".lock")
        try:
            lock.acquire(timeout=LOCK_TIMEOUT_S)
        except Timeout:
            raise StoreError(
                f"expected the store's lock within {LOCK_TIMEOUT_S:g} s, held by another process: {home / '.lock'}",
                hint="is another eagle3-remote still writing? try again",
            ) from None
    try:
        yield
    finally:
        lock.release()
