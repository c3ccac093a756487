"""What commands show of runs: where they are, what came of them; as text, or as JSON where it is asked for."""

from typing import TYPE_CHECKING

from orchestrator.cli import console

if TYPE_CHECKING:
    from orchestrator.records import RunRecord
    from orchestrator.report.content import RunReport
    from orchestrator.report.question import Question
    from orchestrator.report.views import View
    from orchestrator.store import Store
    from remote_payload.schema import CancelAnswer, StatusAnswer


def show_launched(record: "RunRecord", *, as_json: bool) -> None:
    """A detached run: its id is the data."""
    if as_json:
        console.out_json({"run_id": record.run_id, "host": record.host.name, "phase": record.phase})
    else:
        console.out(record.run_id)


def show_run(
    record: "RunRecord",
    store: "Store",
    *,
    as_json: bool,
    view: "View" = "report",
    question: "Question | None" = None,
    kept: bool = True,
) -> "RunReport | None":
    """A run with everything that can be said about its result; `question` is what its reader adds to the measured.

    `kept`: whether it can be shown again; the demonstration's store goes away. Returns what was said; None = nothing.
    """
    if not as_json and not store.has_figures(record) and record.job_kind != "capture":
        from orchestrator.report.head import head

        console.out("\n".join(head(record, console.width())))  # the whole report would cost the import of numpy
        return None
    from orchestrator.review import review

    report = review(store, record, question)
    if as_json:
        from orchestrator.report.json import run_json

        console.out_json(run_json(report))
    else:
        from orchestrator.report.views import view_text

        console.out(view_text(report, view, width=console.width(), kept=kept))
    return report


def show_status(answer: "StatusAnswer", host_name: str, *, units: bool, as_json: bool) -> None:
    """Where runs are on a host."""
    from orchestrator.report.runs_text import status_json, status_text

    if as_json:
        console.out_json(status_json(answer, host_name))
    else:
        console.out(status_text(answer, host_name, units=units))


def show_cancel(answer: "CancelAnswer", *, as_json: bool) -> None:
    """What cancel did."""
    from orchestrator.report.runs_text import cancel_json, cancel_text

    if as_json:
        console.out_json(cancel_json(answer))
    else:
        console.out(cancel_text(answer))
