"""`result/manifest.json`: what came out, with size and sha256 of every file."""

import errno
import hashlib
import os
from pathlib import Path

from remote_payload.rundir import RunDir, sync, write_atomically
from remote_payload.schema import Manifest, ManifestFile, to_json


def write_manifest(run: RunDir) -> Manifest:
    """Describe every regular file below `result/` and write that down. Raises OSError, also when `result/` is a link.

    Links, and names that are not UTF-8, are left out. All of it is on the disk then: the final state, and the ledger of
    a sweep, say that it is there, and are kept over a power cut.
    """
    if run.result.is_symlink():  # what it leads to is not this run's
        raise NotADirectoryError(errno.ENOTDIR, "a link stands in the place of the folder", str(run.result))
    manifest = Manifest(run_id=run.path.name, files=tuple(_files(run)))
    write_atomically(run.manifest, to_json(manifest).encode("ascii"))
    return manifest


def _files(run: RunDir) -> list[ManifestFile]:
    files = []
    for folder, _, names in os.walk(run.result):
        if folder != str(run.result):  # the manifest's own folder is synced with it
            sync(Path(folder))
        for name in names:
            path = Path(folder) / name
            if path == run.manifest or path.is_symlink() or not path.is_file() or not _is_utf8(str(path)):
                continue
            size, digest = _digest(path)
            files.append(ManifestFile(name=path.relative_to(run.result).as_posix(), size_bytes=size, sha256=digest))
    return sorted(files, key=lambda file: file.name)


def _is_utf8(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _digest(path: Path) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
            size += len(chunk)
        os.fsync(file.fileno())
    return size, digest.hexdigest()
