"""What tells this root from every other: a random word in `<root>/place`, made when it is first asked for.

A name in an ssh_config, an address or a machine id may stand for two machines; what lies in a root lies there alone.
"""

import fcntl
import os
import re
import secrets
from pathlib import Path

NAME = "place"
_WORD = re.compile(rb"[0-9a-f]{32}")


def place_of(root: Path) -> str | None:
    """The word; None where none can be kept, as on a full disk. Two that ask at once get one word."""
    try:
        descriptor = os.open(root / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        word = os.pread(descriptor, 64, 0).strip()
        if not _WORD.fullmatch(word):  # new, or emptied by a power cut
            word = secrets.token_hex(16).encode("ascii")
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, word + b"\n", 0)
            os.fsync(descriptor)
        return word.decode("ascii")
    except OSError:
        return None
    finally:
        os.close(descriptor)
