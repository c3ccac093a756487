"""The result of a run, brought home whole: every file of the manifest, each checked by size and sha256."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import ProtocolError
from orchestrator.records import record_bytes
from remote_payload.rundir import RunDir, write_atomically
from remote_payload.schema import Manifest, ManifestFile

if TYPE_CHECKING:
    from orchestrator.remote.link import Link


def collect(link: "Link", root: str, manifest: Manifest, run_dir: RunDir) -> int:
    """Fetch what did not come inline, check everything, write the manifest last. Returns the bytes of the result.

    Raises ProtocolError naming the file whose content differs from the manifest; LinkLostError when the link breaks
    (what is already here stays, the next try goes on with the rest).
    """
    for file in manifest.files:
        local = run_dir.result / file.name
        if _problem(local, file) is None:
            continue
        local.parent.mkdir(parents=True, exist_ok=True)
        link.get_file(f"{root}/runs/{manifest.run_id}/result/{file.name}", local, size=file.size_bytes)
        problem = _problem(local, file)
        if problem is not None:
            raise ProtocolError(f"result file `{file.name}` did not come home whole: {problem}", hint="try again")
    run_dir.result.mkdir(parents=True, exist_ok=True)
    write_atomically(run_dir.manifest, record_bytes(manifest))
    return sum(file.size_bytes for file in manifest.files)


def _problem(path: Path, file: ManifestFile) -> str | None:
    if not path.is_file():
        return "not here"
    size = path.stat().st_size
    if size != file.size_bytes:
        return f"expected {file.size_bytes} bytes, found: {size}"
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return None if digest == file.sha256 else f"expected sha256 {file.sha256}, found: {digest}"
