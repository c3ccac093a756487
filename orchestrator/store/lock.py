"""The store's lock between processes of this laptop; the kernel frees it with its holder, so nobody has to break it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import StoreError
from orchestrator.store.files import translated

TIMEOUT_S = 10.0


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Hold the store's lock: for every change that reads before it writes. Raises StoreError after 10 s of waiting."""
    from filelock import FileLock, Timeout  # noqa: PLC0415 - 14 ms that a listing does not need

    path = home / ".lock"
    lock = FileLock(path, mode=0o600)
    with translated("lock", home):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=TIMEOUT_S)
        except Timeout:
            raise StoreError(
                f"expected the store's lock within {TIMEOUT_S:g} s, held by another process: {path}",
                hint="is another eagle3-remote still writing? try again",
            ) from None
    try:
        yield
    finally:
        lock.release()
