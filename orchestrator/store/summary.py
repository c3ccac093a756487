"""One line of `runs list`, read without pydantic; a run that cannot be read becomes a line that says why."""

from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import StoreError
from orchestrator.records import RunRecord
from orchestrator.store.files import read_text
from remote_payload.rundir import RunDir
from remote_payload.schema import SCHEMA_VERSION, SchemaError, from_json


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One line of `runs list`. An unreadable run has a `problem` and nothing else that is known."""

    run_id: str
    phase: str
    """The last state seen, `unknown`, or `unreadable`."""
    job_kind: str | None = None
    host: str | None = None
    created_unix_s: float | None = None
    finished_unix_s: float | None = None
    has_result: bool = False
    tags: tuple[str, ...] = ()
    problem: str | None = None


def record_path(run: RunDir) -> Path:
    """Where a run's RunRecord lies."""
    return run.path / "run.json"


def read_summary(run: RunDir) -> RunSummary:
    """The run's line; never raises for what is wrong with its record."""
    run_id, path = run.path.name, record_path(run)
    try:
        record = from_json(RunRecord, read_text(path))
        require_own(record, run_id, path)
    except StoreError as error:
        return RunSummary(run_id=run_id, phase="unreadable", problem=error.message)
    except SchemaError as error:
        return RunSummary(run_id=run_id, phase="unreadable", problem=f"{path}: {error}")
    return RunSummary(
        run_id=run_id,
        phase=record.phase,
        job_kind=record.job_kind,
        host=record.host.name,
        created_unix_s=record.created_unix_s,
        finished_unix_s=record.finished_unix_s,
        has_result=run.manifest.is_file(),
        tags=record.tags,
    )


def require_own(record: RunRecord, run_id: str, path: Path) -> None:
    """Refuse a record of another run, or of a newer version. Raises StoreError."""
    if record.run_id != run_id:
        raise StoreError(f"{path}: expected the run `{run_id}`, found: {record.run_id}")
    if record.schema_version > SCHEMA_VERSION:
        raise StoreError(f"{path}: written by a newer eagle3-remote, schema version: {record.schema_version}")
