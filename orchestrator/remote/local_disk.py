"""This laptop's disk, where what a host sends is written: it may be full, and that is no bug."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import StoreError


@contextmanager
def local_disk(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into StoreError naming the file; only local files may be touched inside."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"this laptop cannot keep what the host sent in `{path}`: {error.strerror or error}",
            hint="free some space there, or move the store with EAGLE3_REMOTE_HOME",
        ) from None
