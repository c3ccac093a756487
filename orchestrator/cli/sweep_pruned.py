"""`sweep run --prune RUN`: what cannot win by an earlier sweep, or by a drafter test, is skipped and said so."""

from typing import TYPE_CHECKING

from orchestrator.cli.options import open_store

if TYPE_CHECKING:
    from orchestrator.compare.prediction import Prediction
    from orchestrator.records import RunRecord
    from orchestrator.store import Store
    from orchestrator.sweeping import Wanted


def pruned(wanted: "Wanted", earlier: str | None, step_cost: str | None) -> "Wanted":
    """Without what cannot win. Raises UsageError, NotFoundError, InvalidRunError where `earlier` tells nothing."""
    from orchestrator import sweeping
    from orchestrator.errors import UsageError
    from orchestrator.sweep_report import table_of
    from remote_payload.schema import StandaloneJob, job_from_json

    if earlier is None:
        if step_cost is not None:
            raise UsageError("--step-cost belongs to --prune RUN, a drafter test")
        return wanted
    store = open_store()
    record = store.load(earlier)
    job = job_from_json(record.spec.job_json)
    if isinstance(job, StandaloneJob):
        return sweeping.without_foretold(wanted, foretold(record, store, step_cost), job.draft)
    if step_cost is not None:
        raise UsageError("--step-cost is for a drafter test; a sweep has measured what its steps cost")
    return sweeping.without(wanted, table_of(sweeping.known(record.run_id, store), store).chains)


def foretold(record: "RunRecord", store: "Store", step_cost: str | None) -> "Prediction":
    """What a server would get of the drafter, as it would be fed. Raises InvalidRunError for a run without figures."""
    from orchestrator.cli.asked import question
    from orchestrator.errors import InvalidRunError
    from orchestrator.report.content import predictions
    from orchestrator.review import review

    report = review(store, record, question(step_cost)).standalone
    if report is None:
        raise InvalidRunError(f"--prune: `{record.run_id}` has no result on this laptop")
    found = predictions(report)
    return next((one for one in found if one.role != "best"), found[0]).prediction
