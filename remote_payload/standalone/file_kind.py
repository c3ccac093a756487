"""What stands in a file's place that cannot be read as one: told before a reader waits for it or calls it damaged."""

from pathlib import Path

POINTER = b"version https://git-lfs"
POINTER_BYTES = 1024
"""No pointer of Git LFS is longer."""


def no_file(path: Path) -> str | None:
    """Why there is no regular file, in words that follow `it is`; None = there is one. Never opens it."""
    if path.is_file():
        return None
    if path.is_symlink() and not path.exists():
        return "a link that leads nowhere"
    if path.is_dir():
        return "a folder"
    return "a pipe, a device or a socket" if path.exists() else "not there"


def is_pointer(path: Path) -> bool:
    """Whether a file only stands for one that Git LFS has not fetched. Raises OSError."""
    if path.stat().st_size > POINTER_BYTES:
        return False
    with path.open("rb") as file:
        return file.read(len(POINTER)) == POINTER


def no_folder(path: Path) -> str:
    """How a path that should name a folder fails to: `does not exist` or `is no folder`."""
    try:
        return "is no folder" if path.exists() else "does not exist"
    except (OSError, ValueError):  # a name that is too long, or with a NUL
        return "does not exist"
