"""A diagnosis as this laptop keeps it: what was asked, so that it is told again without its host."""

import dataclasses
import json
from pathlib import Path

from orchestrator.diagnosing.asked import Asked
from orchestrator.errors import StoreError
from orchestrator.records.diagnosis import DiagnosisRecord


def asked_json(asked: Asked) -> str:
    """Everything that was asked, as JSON."""
    values = dataclasses.asdict(asked)
    return json.dumps({**values, "job_file": None if asked.job_file is None else str(asked.job_file)}, sort_keys=True)


def asked_of(record: DiagnosisRecord) -> Asked:
    """The same read again. Raises StoreError where it is no such thing."""
    names = {item.name for item in dataclasses.fields(Asked)}
    try:
        values = json.loads(record.asked_json)
        job_file = values.pop("job_file")
        known = {name: value for name, value in values.items() if name in names}
        return Asked(**known, job_file=None if job_file is None else Path(job_file))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise StoreError(
            f"what diagnosis {record.diagnosis_id} was asked cannot be read",
            hint="diagnose it again: its runs are kept",
        ) from None
