"""The result of a run, brought home whole: every file of the manifest, each checked by size and sha256."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import NotFoundError, ProtocolError
from orchestrator.records import record_bytes
from orchestrator.remote.local_disk import local_disk
from remote_payload.rundir import RunDir, write_atomically
from remote_payload.schema import Manifest, ManifestFile

if TYPE_CHECKING:
    from orchestrator.remote.link import Link


def collect(link: "Link", root: str, manifest: Manifest, run_dir: RunDir, arrived: Callable[[], None]) -> int:
    """Fetch what did not come inline, check everything, write the manifest last. Returns the bytes of the result.

    `arrived` is called after every file that was fetched. Raises ProtocolError naming the file that is missing or whose
    content differs from the manifest; StoreError where this laptop's disk refuses; LinkLostError when the link breaks
    (what is already here stays, the next try goes on with the rest).
    """
    for file in missing(manifest, run_dir):
        local = run_dir.result / file.name
        with local_disk(local):
            local.parent.mkdir(parents=True, exist_ok=True)
        try:
            link.get_file(f"{root}/runs/{manifest.run_id}/result/{file.name}", local, size=file.size_bytes)
        except NotFoundError:
            raise ProtocolError(
                f"result file `{file.name}` is in the manifest of run `{manifest.run_id}` and missing on the host",
                hint="somebody removed it there; launch the job again",
            ) from None
        problem = _problem(local, file)
        if problem is not None:
            raise ProtocolError(f"result file `{file.name}` did not come home whole: {problem}", hint="try again")
        arrived()
    with local_disk(run_dir.manifest):
        run_dir.result.mkdir(parents=True, exist_ok=True)
        write_atomically(run_dir.manifest, record_bytes(manifest))
    return sum(file.size_bytes for file in manifest.files)


def missing(manifest: Manifest, run_dir: RunDir) -> list[ManifestFile]:
    """The files that are not here as the manifest has them."""
    return [file for file in manifest.files if _problem(run_dir.result / file.name, file) is not None]


def _problem(path: Path, file: ManifestFile) -> str | None:
    with local_disk(path):
        if not path.is_file():
            return "not here"
        size = path.stat().st_size
        if size != file.size_bytes:
            return f"expected {file.size_bytes} bytes, found: {size}"
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    return None if digest == file.sha256 else f"expected sha256 {file.sha256}, found: {digest}"
