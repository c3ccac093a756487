"""`sweep run --prune RUN`: what cannot win by an earlier sweep, or by a drafter test, is skipped and said so."""

from typing import TYPE_CHECKING

from orchestrator.cli import console
from orchestrator.cli.options import open_store

if TYPE_CHECKING:
    from orchestrator.compare.prediction import Prediction
    from orchestrator.pipeline import HostSession
    from orchestrator.records import RunRecord
    from orchestrator.store import Store
    from orchestrator.sweep.tested import DrafterRead
    from orchestrator.sweeping import Wanted
    from remote_payload.schema import StandaloneJob, SweepJob


def pruned(wanted: "Wanted", earlier: str | None, step_cost: str | None, host: str) -> "Wanted":
    """Without what cannot win on `host`.

    Raises UsageError, NotFoundError, InvalidRunError where `earlier` tells nothing of it.
    """
    from orchestrator import config, sweeping
    from orchestrator.errors import UsageError
    from orchestrator.sweep.pruning import nothing_said
    from orchestrator.sweep_report import table_of
    from remote_payload.schema import StandaloneJob, job_from_json

    if earlier is None:
        if step_cost is not None:
            raise UsageError("--step-cost belongs to --prune RUN, a drafter test")
        return wanted
    store = open_store()
    record = store.load(earlier)
    sweeping.require_same_machine(record, host, config.load(config.here()).host(host))
    job = job_from_json(record.spec.job_json)
    if isinstance(job, StandaloneJob):
        told, of = foretold(record, job, store, step_cost)
        return sweeping.without_foretold(wanted, told, of)
    if step_cost is not None:
        raise UsageError("--step-cost is for a drafter test; a sweep has measured what its steps cost")
    table = table_of(sweeping.known(record.run_id, store), store)
    found = sweeping.without(wanted, table.chains)
    if len(found.expanded.points) == len(wanted.expanded.points):
        console.note(f"--prune skips nothing: sweep `{record.run_id}` rules no point out, {nothing_said(table.chains)}")
    return found


def require_the_same(job: "SweepJob", earlier: str | None, session: "HostSession") -> None:
    """Refuse to prune by a sweep of other models or of other software, or by a test of another drafter.

    Raises InvalidRunError where a path leads to something else now, or another version is installed.
    """
    from orchestrator import sweeping
    from orchestrator.errors import InvalidRunError
    from orchestrator.jobfile import PlannedJob
    from orchestrator.pipeline import Order, python_for
    from orchestrator.sweep.plan import changed_paths
    from orchestrator.sweep.software import installed_anew, measured_with
    from orchestrator.sweep_going_on import installed_now
    from remote_payload.schema import StandaloneJob, SweepJob, job_from_json

    store = open_store()
    record = None if earlier is None else store.load(earlier)
    then = None if record is None else job_from_json(record.spec.job_json)
    if record is not None and isinstance(then, StandaloneJob):
        _require_drafter(foretold(record, then, store, None)[1], record, session)
    if record is None or not isinstance(then, SweepJob):
        return
    order = Order(planned=PlannedJob(job=job, settings=()), run_id=record.run_id)
    python = python_for(order, session, store, lambda _: None, trust=True)  # told when it is launched
    known = measured_with(then, sweeping.known(record.run_id, store).attempts)
    anew = installed_anew(known, installed_now(session, job.base_json, python)) if known else ()
    if anew:
        raise InvalidRunError(
            f"--prune: sweep `{record.run_id}` was measured with other software: {'; '.join(anew)}",
            hint="go without --prune: figures of other software rule nothing out",
        )
    paths = changed_paths(then.identity, job.identity)
    if paths:
        raise InvalidRunError(
            f"--prune: what lies under {', '.join(paths)} is another than sweep `{earlier}` measured",
            hint="go without --prune: figures of other models rule nothing out",
        )


def _require_drafter(then: "DrafterRead", record: "RunRecord", session: "HostSession") -> None:
    from orchestrator.errors import InvalidRunError
    from orchestrator.sweep.tested import replaced
    from orchestrator.sweeping import whole_sha256

    if other := replaced(then, whole_sha256(session, then.whole)):
        raise InvalidRunError(
            f"--prune: what lies under {then.draft} is another than `{record.run_id}` tested, by {other}",
            hint="test the drafter again, or go without --prune: another drafter is accepted otherwise",
        )


def foretold(
    record: "RunRecord", job: "StandaloneJob", store: "Store", step_cost: str | None
) -> "tuple[Prediction, DrafterRead]":
    """What a server would get of the drafter, as it would be fed. Raises InvalidRunError for a run without figures."""
    from orchestrator.cli.asked import question
    from orchestrator.errors import InvalidRunError
    from orchestrator.report.content import predictions
    from orchestrator.review import review
    from orchestrator.sweep.tested import tested

    report = review(store, record, question(step_cost)).standalone
    if report is None:
        raise InvalidRunError(f"--prune: `{record.run_id}` has no result on this laptop")
    found = predictions(report)
    told = next((one for one in found if one.role != "best"), found[0]).prediction
    return told, tested(job, report.result.checkpoint)
