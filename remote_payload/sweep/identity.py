"""`identify`: what lies under the paths of a sweep, and what is installed, so that what was replaced is noticed.

By names, sizes and times, and the content of small JSON files; weights are not read unless the content is asked for, as
to compare two hosts. Not covered: a hub's names, and a file whose content was changed with its size and time kept.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from remote_payload.frames import Send
from remote_payload.schema import EndFrame, IdentifyFrame, IdentifyRequest, PathIdentity, UnitJob, job_from_json
from remote_payload.software import installed_as
from remote_payload.sweep.files import files_of
from remote_payload.weights import folder_facts

SMALL_BYTES = 1 << 20
LONGEST_S = 40.0
"""To read the content of all paths; a disk that is slower leaves it unknown."""


def identify(request: IdentifyRequest, send: Send) -> None:
    """Answer with an IdentifyFrame."""
    installed: dict[str, str] = {}
    if request.job_json is not None:
        job = job_from_json(request.job_json)
        if isinstance(job, UnitJob):
            installed = installed_as(job, request.python, request.environment)
    until_s = time.monotonic() + LONGEST_S if request.content else None
    paths = tuple(_identity(path, until_s) for path in request.paths)
    whole = tuple(map(whole_sha256, request.whole))
    folders = tuple(folder_facts(os.path.expanduser(path)) for path in request.folders)
    send(IdentifyFrame(paths=paths, installed=installed, whole=whole, folders=folders))
    send(EndFrame())


def _identity(path: str, until_s: float | None) -> PathIdentity:
    """With the content as far as it is read until then, if it is asked for."""
    if until_s is None:
        return PathIdentity(path=path, digest=digest_of(path))
    from remote_payload.sweep.content import content_of  # noqa: PLC0415 - for sweeps over several hosts alone

    return PathIdentity(path=path, digest=digest_of(path), content=content_of(path, until_s))


def whole_sha256(paths: Sequence[str]) -> str | None:
    """Of the bytes of these files, one after the other; None where one cannot be read, or there is none."""
    told = hashlib.sha256()
    try:
        for path in paths:
            with Path(os.path.expanduser(path)).open("rb") as reading:
                while block := reading.read(SMALL_BYTES):
                    told.update(block)
    except (OSError, ValueError):
        return None
    return told.hexdigest() if paths else None


def digest_of(path: str) -> str | None:
    """The identity of a file, or of a folder with its subfolders; None where there is neither."""
    place = Path(os.path.expanduser(path))
    try:
        files = files_of(place)
        told = hashlib.sha256()
        for file in files:
            facts = file.stat()
            name = file.name if file == place else file.relative_to(place).as_posix()
            told.update(f"{name}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
            if file.suffix == ".json" and facts.st_size <= SMALL_BYTES:
                told.update(file.read_bytes())
    except (OSError, ValueError):
        return None
    return told.hexdigest()
