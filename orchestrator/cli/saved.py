"""A text as a file that the user named: whole or not at all, readable as any file of theirs."""

import os
from pathlib import Path

from orchestrator.errors import OutputError, UsageError


def require_place(path: Path, flag: str = "") -> None:
    """Raise UsageError where no file can be named so, OutputError where its folder cannot be written."""
    named = f"{flag}: " if flag else ""
    if path.exists() and not path.is_file():
        raise UsageError(f"{named}expected a place for a file, there is something else: {path}")
    if not path.parent.is_dir():
        raise UsageError(f"{named}expected a file in a folder that exists, found: {path}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise OutputError(f"{named}cannot write into this folder: {path.parent}", hint="name another place")


def save(path: Path, text: str) -> None:
    """Write the file in place of what is there. Raises UsageError for no place of a file, OutputError."""
    require_place(path)
    half = path.with_name(f".{path.name[:200]}.{os.getpid()}.half")
    try:
        half.write_text(text, encoding="utf-8", newline="")
        half.replace(path)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise OutputError(
            f"cannot write `{path}`: {error.strerror or error}", hint="--out FILE names another place"
        ) from None
