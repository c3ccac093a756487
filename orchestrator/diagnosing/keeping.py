"""A diagnosis as this laptop keeps it: what was asked, so that it is told again without its host."""

import dataclasses
import json
from pathlib import Path

from orchestrator.diagnosing.asked import Asked
from orchestrator.errors import StoreError, UsageError
from orchestrator.jobfile import parse_states
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
        asked = Asked(**known, job_file=None if job_file is None else Path(job_file))
        if asked.trained is not None:  # read now: whoever judges it reads them as well
            parse_states(asked.trained, "--trained")
        return asked
    except (ValueError, TypeError, KeyError, AttributeError, UsageError):
        raise StoreError(
            f"what diagnosis {record.diagnosis_id} was asked cannot be read",
            hint="diagnose it again: its runs are kept",
        ) from None
