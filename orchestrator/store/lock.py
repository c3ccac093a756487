"""The store's lock between processes of this laptop; the kernel frees it with its holder, so nobody has to break it."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import StoreError
from orchestrator.store.files import translated

TIMEOUT_S = 10.0
_POLL_S = 0.01

if sys.platform == "win32":
    import msvcrt

    def _try_to_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True
else:
    import fcntl

    def _try_to_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Hold the store's lock: for every change that reads before it writes. Raises StoreError after 10 s of waiting."""
    path = home / ".lock"
    with translated("lock", home):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        until_s = time.monotonic() + TIMEOUT_S
        with translated("lock", path):
            while not _try_to_lock(descriptor):
                if time.monotonic() > until_s:
                    raise StoreError(
                        f"expected the store's lock within {TIMEOUT_S:g} s, held by another process: {path}",
                        hint="is another eagle3-remote still writing? try again",
                    )
                time.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)
