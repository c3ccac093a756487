"""`diagnoses/<id>.json`: what a diagnosis was asked, and what was read on its host before anything ran."""

from remote_payload.schema import SCHEMA_VERSION
from remote_payload.schema.capture_rule import WiringFacts
from remote_payload.schema.record import Record
from remote_payload.schema.run import require_run_id


class DiagnosisRecord(Record):
    """Written as it begins, so that the same is told again later, without its host. Its stages are ordinary runs."""

    schema_version: int = SCHEMA_VERSION
    diagnosis_id: str
    created_unix_s: float
    host: str
    """As this laptop names it."""
    asked_json: str
    """Everything that was asked, as `diagnosing.keeping` writes it."""
    about_json: str | None = None
    """What the look at the host depended on: another one is due where it differs."""
    facts: WiringFacts | None = None
    """Both config.json and the source of the host's SGLang; None = they were not read."""
    why_not: str | None = None
    """Why they were not."""
    runs: tuple[str, ...] = ()
    """The runs that answered it as it was asked last, as far as they were taken; a stage may have others."""

    def __post_init__(self) -> None:
        require_run_id(self.diagnosis_id)
