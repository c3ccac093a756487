"""`diagnoses/<id>.json`: the diagnoses that were asked for from this laptop."""

import difflib
from pathlib import Path

from orchestrator.errors import NotFoundError, StoreError
from orchestrator.records import read_record, record_bytes
from orchestrator.records.diagnosis import DiagnosisRecord
from orchestrator.store.files import names_in, read_text, write
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


def diagnosis_ids(home: Path) -> tuple[str, ...]:
    """All of them, sorted."""
    return tuple(name.removesuffix(SUFFIX) for name in names_in(home / "diagnoses") if name.endswith(SUFFIX))


def _path(home: Path, diagnosis_id: str) -> Path:
    return home / "diagnoses" / f"{diagnosis_id}{SUFFIX}"
