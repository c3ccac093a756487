"""Measurements that another tool made: `runs/<id>/measurements.json`, and beside it the file they were read from.

They are all there is of such a run, so `measurements.key` holds their sha256 and an edit is refused by name. Those that
were kept before there was such a key are believed as they are.
"""

import gzip
import hashlib
from pathlib import Path

from orchestrator.errors import ClaimedError, InvalidRunError, StoreError
from orchestrator.records import read_record, record_bytes
from orchestrator.records.measurement import MeasurementSet
from orchestrator.store.files import read_text, translated, write
from orchestrator.store.folders import appearing
from orchestrator.store.layout import KEY, MEASUREMENTS, RAW, is_imported
from orchestrator.store.lock import locked
from remote_payload.rundir import RunDir


def read_imported(run: RunDir) -> MeasurementSet:
    """The measurements. Raises InvalidRunError where the run is one of a host, StoreError where not as kept."""
    if not is_imported(run):
        raise InvalidRunError(f"expected imported measurements, `{run.path.name}` is a run of a host")
    path = run.path / MEASUREMENTS
    text = read_text(path)
    if (run.path / KEY).is_file():
        _require_kept(text, read_text(run.path / KEY), path)
    measured = read_record(MeasurementSet, text, where=str(path), error=StoreError)
    if measured.run_id != run.path.name:
        raise StoreError(f"{path}: expected the measurements of `{run.path.name}`, found: {measured.run_id}")
    return measured


def add_imported(home: Path, run: RunDir, measured: MeasurementSet, raw: bytes | None) -> bool:
    """Keep a set under its id, whole or not at all; False where that very set is here already.

    Raises ClaimedError where the id belongs to other measurements, or to a run of a host.
    """
    with translated("create", run.path), locked(home):
        if run.path.exists():
            if is_imported(run) and read_imported(run) == measured:
                return False
            raise ClaimedError(
                f"this id belongs to something else on this laptop: {run.path.name}",
                hint=f"`eagle3-remote runs show {run.path.name}` shows it; `runs rm` forgets it",
            )
        with appearing(run.path) as half:
            data = record_bytes(measured)
            write(half / MEASUREMENTS, data)
            write(half / KEY, imported_key(data))
            if raw is not None:
                write(half / RAW, gzip.compress(raw, mtime=0))
    return True


def imported_key(data: bytes) -> bytes:
    """What `measurements.key` holds beside imported measurements."""
    return f"sha256 {hashlib.sha256(data).hexdigest()}".encode()


def _require_kept(text: str, key: str, path: Path) -> None:
    """That the measurements are those that were kept. Raises StoreError naming both hashes."""
    found = imported_key(text.encode()).decode()
    if found != key.strip():
        raise StoreError(
            f"{path}: expected the measurements of {key.strip()[:80]}, found: {found}",
            hint="they were edited or cut after the import; `runs rm` forgets them, `import` reads their file again",
        )
