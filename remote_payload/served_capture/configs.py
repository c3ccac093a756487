"""A model's config.json, as far as it can be read on this host."""

import contextlib
import os
from pathlib import Path

LARGEST_BYTES = 4 << 20


def config_text(folder: str | None) -> str | None:
    """A folder's config.json; None where it is no folder here, or not to be read.

    A relative path is a name on a hub: whoever asks stands in another folder than the job that would load it.
    """
    if folder is None:
        return None
    path = Path(os.path.expanduser(folder), "config.json")
    if not path.is_absolute():
        return None
    with contextlib.suppress(OSError, ValueError):  # the latter: a NUL in the name, no UTF-8 in the file
        if path.stat().st_size <= LARGEST_BYTES:
            return path.read_text(encoding="utf-8")
    return None
