"""`identify`: what lies under the paths of a sweep, so that a model that was replaced meanwhile is noticed.

By names, sizes and times, and the content of small JSON files; weights are not read. Not covered: a hub's names, and a
file whose content was changed with its size and time kept.
"""

import hashlib
import os
from pathlib import Path

from remote_payload.frames import Send
from remote_payload.schema import EndFrame, IdentifyFrame, IdentifyRequest, PathIdentity

SMALL_BYTES = 1 << 20


def identify(request: IdentifyRequest, send: Send) -> None:
    """Answer with an IdentifyFrame."""
    send(IdentifyFrame(paths=tuple(PathIdentity(path=path, digest=digest_of(path)) for path in request.paths)))
    send(EndFrame())


def digest_of(path: str) -> str | None:
    """The identity of a file, or of a folder's own files; None where there is neither."""
    place = Path(os.path.expanduser(path))
    try:
        files = [place] if place.is_file() else sorted(entry for entry in place.iterdir() if entry.is_file())
        told = hashlib.sha256()
        for file in files:
            facts = file.stat()
            told.update(f"{file.name}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
            if file.suffix == ".json" and facts.st_size <= SMALL_BYTES:
                told.update(file.read_bytes())
    except (OSError, ValueError):
        return None
    return told.hexdigest()
