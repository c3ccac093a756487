"""`diagnoses/<id>.json`: the diagnoses that were asked for from this laptop."""

import dataclasses
import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import ClaimedError, NotFoundError, StoreError
from orchestrator.records import read_record, record_bytes
from orchestrator.records.diagnosis import DiagnosisRecord
from orchestrator.store.files import names_in, read_text, translated, write
from remote_payload.rundir import RUN_ID_PATTERN

SUFFIX = ".json"


def find_diagnosis(home: Path, diagnosis_id: str) -> DiagnosisRecord | None:
    """The record; None where there is none. Raises StoreError where it is broken."""
    path = _path(home, diagnosis_id)
    if RUN_ID_PATTERN.fullmatch(diagnosis_id) is None or not path.is_file():
        return None
    return read_record(DiagnosisRecord, read_text(path), where=str(path), error=StoreError)


def load_diagnosis(home: Path, diagnosis_id: str) -> DiagnosisRecord:
    """The record. Raises NotFoundError, StoreError where it is broken."""
    found = find_diagnosis(home, diagnosis_id)
    if found is None:
        near = difflib.get_close_matches(diagnosis_id, diagnosis_ids(home), n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "`eagle3-remote diagnose` makes one"
        raise NotFoundError(f"no diagnosis on this laptop is called: {diagnosis_id}", hint=hint)
    return found


def keep_diagnosis(home: Path, record: DiagnosisRecord) -> None:
    """Write it in place of what is there. Raises StoreError."""
    write(_path(home, record.diagnosis_id), record_bytes(record))


def keep_run(home: Path, diagnosis_id: str, run_id: str) -> None:
    """Note that a run answered a diagnosis. Raises NotFoundError, StoreError."""
    known = load_diagnosis(home, diagnosis_id)
    if run_id not in known.runs:
        keep_diagnosis(home, dataclasses.replace(known, runs=(*known.runs, run_id)))


@contextmanager
def going_on(home: Path, diagnosis_id: str) -> Iterator[None]:
    """Nobody else on this laptop goes on with this diagnosis for as long as the block lasts; the kernel frees it too.

    Raises ClaimedError, StoreError.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415 - 14 ms that a report does not need

    path = home / "diagnoses" / f".{diagnosis_id}.lock"
    lock = FileLock(path, mode=0o600)
    with translated("lock", path.parent):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise ClaimedError(
                f"another command on this laptop is at diagnosis {diagnosis_id}",
                hint=f"wait for it, or see what is home: eagle3-remote report --diagnosis {diagnosis_id}",
            ) from None
    try:
        yield
    finally:
        lock.release()


def diagnosis_ids(home: Path) -> tuple[str, ...]:
    """All of them, sorted."""
    return tuple(name.removesuffix(SUFFIX) for name in names_in(home / "diagnoses") if name.endswith(SUFFIX))


def _path(home: Path, diagnosis_id: str) -> Path:
    return home / "diagnoses" / f"{diagnosis_id}{SUFFIX}"
