"""The end of a run's command: the report, and the error that a bad outcome means."""

from typing import TYPE_CHECKING

from orchestrator.cli import console
from orchestrator.outcome import error_of

if TYPE_CHECKING:
    from orchestrator.records import RunRecord
    from orchestrator.report.question import Question
    from orchestrator.store import Store


def end(
    record: "RunRecord", store: "Store", *, as_json: bool, question: "Question | None" = None, kept: bool = True
) -> None:
    """Show the report of a run that is over; raise what its outcome means (see `orchestrator/outcome.py`)."""
    error = None
    if record.state is not None:
        error = error_of(record.state, job_kind=record.job_kind, host=record.host.name)
    if error is None or as_json:
        console.show_run(record, store, as_json=as_json, question=question, kept=kept)
    if error is not None:
        if not as_json and store.has_figures(record):
            console.note(f"what was measured before is kept: eagle3-remote runs show {record.run_id}")
        raise error
