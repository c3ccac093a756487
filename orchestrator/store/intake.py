"""A run from one file into the store: an exported run, or a record of measurements alone; checked first, then whole."""

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path

from orchestrator.errors import ClaimedError, InvalidRunError
from orchestrator.records import RunLabels, RunRecord, read_record
from orchestrator.records.measurement import MeasurementSet
from orchestrator.records.packed import unpacked
from orchestrator.store.archive import COPIES, run_files
from orchestrator.store.files import translated, write
from orchestrator.store.folders import appearing, vanish
from orchestrator.store.imported import add_imported, imported_key, read_imported
from orchestrator.store.layout import DERIVED, KEY, LABELS, MEASUREMENTS, RECORD, is_imported
from orchestrator.store.lock import locked
from orchestrator.store.unpacking import is_gzip, read_bounded, unpacked_run
from remote_payload.rundir import RUN_ID_PATTERN, RunDir
from remote_payload.schema import Manifest, RunSpec

_MANIFEST = "result/manifest.json"


def take_in(home: Path, path: Path) -> tuple[str, bool]:
    """Keep the run of this file; returns its id and whether it is new here.

    Raises UsageError where the file is too large, InvalidRunError where it is no whole run, ClaimedError where the id
    belongs to other content, StoreError.
    """
    if not is_gzip(path):
        measured, _ = unpacked(read_bounded(path), where=str(path), error=InvalidRunError)
        return measured.run_id, _take_measurements(home, measured)
    run_id, files = unpacked_run(path)
    record = _require_run(run_id, files, path)
    if record is not None:
        files = {name: content for name, content in files.items() if name not in COPIES}
    else:
        files = {**files, KEY: imported_key(files[MEASUREMENTS])}  # an older export has none
    run = RunDir(home / "runs" / run_id)
    with translated("create", run.path), locked(home):
        is_part = _is_part_of(run, files)
        if run.path.exists() and not is_part:
            _require_same(run, record, files)
            return run_id, False
        with appearing(run.path) as half:
            for name, content in files.items():
                write(half / name, content)
            if is_part:
                if (run.path / LABELS).is_file():
                    write(half / LABELS, (run.path / LABELS).read_bytes())
                vanish(run.path)
    return run_id, True


def _is_part_of(run: RunDir, files: Mapping[str, bytes]) -> bool:
    """Whether the measurements alone of this very run came before it."""
    if not is_imported(run) or _MANIFEST not in files:
        return False
    return read_imported(run).source_sha256 == hashlib.sha256(files[_MANIFEST]).hexdigest()


def _take_measurements(home: Path, measured: MeasurementSet) -> bool:
    if RUN_ID_PATTERN.fullmatch(measured.run_id) is None:
        raise InvalidRunError(f"expected a run id ({RUN_ID_PATTERN.pattern}), found: {measured.run_id!r}")
    run = RunDir(home / "runs" / measured.run_id)
    if run.path.exists() and not is_imported(run):
        with translated("read", run.manifest):
            data = run.manifest.read_bytes() if run.manifest.is_file() else b""
        if hashlib.sha256(data).hexdigest() == measured.source_sha256:
            return False  # they were made of the run that is here
        raise ClaimedError(
            f"another run of this id is on this laptop: {measured.run_id}",
            hint="`eagle3-remote runs rm` forgets the one that is here",
        )
    if is_imported(run) and measured.source_sha256 is not None:
        known = read_imported(run)
        if known.origin == measured.origin == "own" and known.source_sha256 == measured.source_sha256:
            return False  # the same result, as another version of this tool extracted it
    return add_imported(home, run, measured, None)


def _require_run(run_id: str, files: Mapping[str, bytes], path: Path) -> RunRecord | None:
    """The record of a run of a host, None of an imported one, if all fits together. Raises InvalidRunError."""
    if LABELS in files:
        read_record(RunLabels, files[LABELS], where=f"{path}: {LABELS}", error=InvalidRunError)
    if RECORD not in files:
        if MEASUREMENTS not in files or "spec.json" in files:
            raise InvalidRunError(f"{path}: expected {RECORD} or {MEASUREMENTS} in it, found neither")
        measured = read_record(
            MeasurementSet, files[MEASUREMENTS], where=f"{path}: {MEASUREMENTS}", error=InvalidRunError
        )
        _require_id(run_id, measured.run_id, path)
        if files.get(KEY, imported_key(files[MEASUREMENTS])).strip() != imported_key(files[MEASUREMENTS]):
            raise InvalidRunError(f"{path}: {MEASUREMENTS} is not what was imported: {KEY} names another sha256")
        return None
    record = read_record(RunRecord, files[RECORD], where=f"{path}: {RECORD}", error=InvalidRunError)
    _require_id(run_id, record.run_id, path)
    if "spec.json" in files:
        spec = read_record(RunSpec, files["spec.json"], where=f"{path}: spec.json", error=InvalidRunError)
        if spec != record.spec:
            raise InvalidRunError(f"{path}: expected the same spec in {RECORD} and spec.json, found two")
    if _MANIFEST in files:
        manifest = read_record(Manifest, files[_MANIFEST], where=f"{path}: {_MANIFEST}", error=InvalidRunError)
        _require_id(run_id, manifest.run_id, path)
        for file in manifest.files:
            content = files.get(f"result/{file.name}")
            if content is None or hashlib.sha256(content).hexdigest() != file.sha256:
                raise InvalidRunError(f"{path}: `result/{file.name}` is missing or not what the run's manifest says")
    return record


def _require_id(expected: str, found: str, path: Path) -> None:
    if found != expected:
        raise InvalidRunError(f"{path}: expected the run `{expected}`, found: {found}")


def _require_same(run: RunDir, record: RunRecord | None, files: Mapping[str, bytes]) -> None:
    """That the run which is here is this one; what is said about it, and when it was seen, may differ."""
    here = run_files(run)
    known = None
    if record is not None and RECORD in here:
        known = read_record(RunRecord, here[RECORD], where=str(run.path / RECORD))
        record, known = (dataclasses.replace(item, state_seen_unix_s=None, tags=()) for item in (record, known))
    apart = {*DERIVED, RECORD, KEY}
    if known != record or {k: v for k, v in here.items() if k not in apart} != {
        k: v for k, v in files.items() if k not in apart
    }:
        raise ClaimedError(
            f"another run of this id is on this laptop: {run.path.name}",
            hint="`eagle3-remote runs rm` forgets the one that is here",
        )
