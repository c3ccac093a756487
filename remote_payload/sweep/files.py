"""The files that lie under a path of a sweep: a model's folder, a file of prompts, or by mistake somebody's home."""

import contextlib
from pathlib import Path

DEEPEST, MOST_FILES = 3, 20_000
"""Of a folder: how far down, and how many of its files, for a path may be a home."""


def files_of(place: Path) -> list[Path]:
    """The file itself, or those of a folder and its subfolders, in an order. Raises OSError, ValueError."""
    return [place] if place.is_file() else _files(place, DEEPEST)


def _files(folder: Path, depth: int) -> list[Path]:
    """Raises OSError where the folder itself cannot be read; links to folders are not followed."""
    entries = sorted(folder.iterdir())
    found = [entry for entry in entries if entry.is_file()]
    for entry in entries if depth else ():
        is_made_by_use = entry.name.startswith(".") or entry.name == "__pycache__"
        if len(found) < MOST_FILES and not is_made_by_use and entry.is_dir() and not entry.is_symlink():
            with contextlib.suppress(OSError):
                found += _files(entry, depth - 1)
    return found[:MOST_FILES]
