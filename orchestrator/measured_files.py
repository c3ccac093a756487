"""A file as one side of a comparison, without keeping it: an exported run, measurements, another tool's results."""

import json
import tempfile
from pathlib import Path

from orchestrator.errors import InvalidRunError, NotFoundError
from orchestrator.importers.kinds import measured
from orchestrator.measurements import set_of_run
from orchestrator.records import read_record
from orchestrator.records.measurement import MeasurementSet
from orchestrator.result_files import opened
from orchestrator.store import Store
from orchestrator.store.intake import take_in
from orchestrator.store.unpacking import read_bounded

_GZIP = b"\x1f\x8b"


def file_set(path: Path) -> MeasurementSet:
    """The measurements in a file, or in a folder of a sweep.

    Raises NotFoundError where there is none, UsageError where it is too large, InvalidRunError naming what is wrong.
    """
    if not path.exists():
        raise NotFoundError(f"no such file: {path}", hint="a run's id or the beginning of one has no `/` and no ending")
    return own_set(path) or measured(opened(path))


def own_set(path: Path) -> MeasurementSet | None:
    """The measurements in a file that this tool wrote: `measurements.json`, or a run as it was exported.

    None where it is no such file. Raises as `file_set`.
    """
    if path.is_dir():
        return None
    data = read_bounded(path)
    if not data.startswith(_GZIP) and _has(data, "measurements", "schema_version"):
        return read_record(MeasurementSet, data, where=str(path), error=InvalidRunError)
    if not data.startswith(_GZIP) and not _has(data, "sha256", "content"):
        return None
    with tempfile.TemporaryDirectory(prefix="eagle3-remote-") as folder:
        store = Store(Path(folder))
        run_id, _ = take_in(store.home, path)
        return set_of_run(store, run_id)


def _has(data: bytes, *keys: str) -> bool:
    """Whether it is one JSON object with these keys: `measurements.json` as it stands, or packed with its hash."""
    if not all(f'"{key}"'.encode() in data for key in keys):
        return False  # what is large and none of ours is not parsed for that
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and set(keys) <= set(value)
