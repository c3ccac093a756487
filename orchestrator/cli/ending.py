"""The end of a run's command: the report, what was expected of it, and the error that a bad outcome means."""

from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli import console, showing
from orchestrator.cli.expect import judge_run, require_holding, show_judged
from orchestrator.cli.notify import notify_end
from orchestrator.errors import InvalidRunError
from orchestrator.outcome import error_of

if TYPE_CHECKING:
    from orchestrator.records import RunRecord
    from orchestrator.report.content import RunReport
    from orchestrator.report.question import Question
    from orchestrator.store import Store


UNMEASURED = ("invalid", "nothing_measured")
"""Verdicts on a served benchmark that has no figures to go by."""


def end(
    record: "RunRecord",
    store: "Store",
    *,
    as_json: bool,
    question: "Question | None" = None,
    kept: bool = True,
    junit: Path | None = None,
) -> None:
    """Show the report of a run that is over, and whether what was expected of it holds; then tell those of [notify].

    Raises what its outcome means (see `orchestrator/outcome.py`), else InvalidRunError where a served benchmark is no
    measurement, else ExpectationError. As JSON the report comes last.
    """
    try:
        _show_end(record, store, as_json=as_json, question=question, kept=kept, junit=junit)
    finally:
        if kept:
            notify_end(record, store)


def require_going(record: "RunRecord") -> None:
    """Of a run that nobody follows: raises what its outcome means where it has ended badly already."""
    error = None
    if record.state is not None:
        error = error_of(record.state, job_kind=record.job_kind, host=record.host.name)
    if error is not None:
        raise error


def _show_end(
    record: "RunRecord",
    store: "Store",
    *,
    as_json: bool,
    question: "Question | None",
    kept: bool,
    junit: Path | None,
) -> None:
    error, report = None, None
    if record.state is not None:
        host = record.host
        error = error_of(record.state, job_kind=record.job_kind, host=host.name)
    judgments = judge_run(record, store, junit=junit)
    if judgments and as_json:
        show_judged(record.run_id, judgments, as_json=True)
    if error is None or as_json:
        report = showing.show_run(record, store, as_json=as_json, question=question, kept=kept)
    if judgments and not as_json:
        show_judged(record.run_id, judgments, as_json=False)
    if error is not None:
        if not as_json and store.has_figures(record):
            console.note(f"what was measured before is kept: eagle3-remote runs show {record.run_id}")
        raise error
    _require_measurement(report)
    require_holding(judgments)


def _require_measurement(report: "RunReport | None") -> None:
    """A script that goes by exit codes must not take figures of a broken load for good ones."""
    if report is not None and report.bench is not None and report.bench.diagnosis.verdict in UNMEASURED:
        raise InvalidRunError(
            f"run {report.record.run_id} is no measurement: {report.bench.diagnosis.headline}",
            hint=f"`eagle3-remote runs show {report.record.run_id} --verbose` tells all of it",
        )
