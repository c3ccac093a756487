"""Whether all that a run left is on this laptop: its result whole, or the host's word that there is none."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from orchestrator.store.files import write
from orchestrator.store.layout import NO_RESULT

if TYPE_CHECKING:
    from orchestrator.records import RunRecord
    from remote_payload.rundir import RunDir


def is_home(run: RunDir, record: RunRecord) -> bool:
    """Whether the run is over and here. That its end was seen is not enough: what it left may not have been fetched."""
    if record.state is None or not record.state.is_terminal:
        return False
    return run.manifest.is_file() or (record.state.phase != "succeeded" and (run.path / NO_RESULT).is_file())


def note_no_result(run: RunDir) -> None:
    """Keep the host's word that there is no result of this run to bring home. Raises StoreError."""
    path = run.path / NO_RESULT
    if not path.is_file():
        write(path, f'{{"told_unix_s": {time.time():.0f}}}\n'.encode())
