"""The store's dealings with the disk: every OSError becomes a StoreError that names the path and what to try."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import StoreError
from remote_payload.rundir import write_atomically

_MOVABLE = "the store's folder can be moved with the environment variable EAGLE3_REMOTE_HOME"


@contextmanager
def translated(doing: str, path: Path, *, in_store: bool = True) -> Iterator[None]:
    """Turn an OSError into StoreError: what we were doing, where, and the system's reason.

    `in_store`: the path is the store's, not one that the user named.
    """
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot {doing} `{path}`: {error.strerror or error}",
            hint=_MOVABLE if in_store else None,
        ) from None


def home_of(text: str) -> Path:
    """The folder that EAGLE3_REMOTE_HOME names. Raises StoreError where that can be none, e.g. `~nobody/x`."""
    try:
        return Path(text).expanduser().absolute()
    except (RuntimeError, OSError) as error:
        raise StoreError(f"EAGLE3_REMOTE_HOME: expected a folder, found: {text!r} ({error})") from None


def names_in(folder: Path) -> tuple[str, ...]:
    """The names in a folder, sorted; none where it does not exist (yet). Raises StoreError where it is no folder."""
    with translated("list", folder):
        try:
            return tuple(sorted(entry.name for entry in os.scandir(folder)))
        except FileNotFoundError:
            return ()


def read_text(path: Path) -> str:
    """The file's text. Raises StoreError, also where it is not UTF-8."""
    with translated("read", path):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise StoreError(f"{path}: expected a file, found a pipe or a device")  # reading it could wait for ever
        data = path.read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise StoreError(f"{path}: expected UTF-8 text, found: {error.reason} at byte {error.start}") from None


def write(path: Path, data: bytes, *, shared: bool = False, durable: bool = True) -> None:
    """Replace the file atomically, making its folder where it is missing. Raises StoreError.

    The user's alone (0600 in 0700), or `shared` with whom the umask says, as other files of a project are. What can be
    made again, and tells when it is damaged, need not be `durable`: a power cut may empty it.
    """
    with translated("write", path):
        path.parent.mkdir(mode=0o777 if shared else 0o700, parents=True, exist_ok=True)
        write_atomically(path, data, mode=0o666 if shared else 0o600, durable=durable)
