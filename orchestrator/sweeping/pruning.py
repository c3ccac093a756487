"""`--prune RUN`: what an earlier sweep, or a drafter test, rules out; only of the same machine, models and software."""

from orchestrator.compare.prediction import Prediction
from orchestrator.config import HostConfig
from orchestrator.errors import InvalidRunError
from orchestrator.jobfile import PlannedJob
from orchestrator.order import Order
from orchestrator.pipeline import python_for
from orchestrator.records import RunRecord
from orchestrator.remote.session import HostSession
from orchestrator.remote.ssh_config import resolve
from orchestrator.report.content import predictions
from orchestrator.report.question import Question
from orchestrator.review import review
from orchestrator.store import Store
from orchestrator.sweep.plan import changed_paths
from orchestrator.sweep.pruning import nothing_said
from orchestrator.sweep.software import installed_anew, measured_with
from orchestrator.sweep.tested import DrafterRead, replaced, replaced_target, tested
from orchestrator.sweeping.asking import known
from orchestrator.sweeping.going_on import installed_now
from orchestrator.sweeping.identity import pair_there
from orchestrator.sweeping.planning import Wanted, without, without_foretold
from orchestrator.sweeping.tables import table_of
from remote_payload.schema import StandaloneJob, SweepJob, job_from_json


def by_sweep(wanted: Wanted, record: RunRecord, store: Store) -> tuple[Wanted, str | None]:
    """Without what cannot win by the chains that a sweep measured; where that rules nothing out, why.

    Raises InvalidRunError where it is no sweep.
    """
    chains = table_of(known(record.run_id, store), store).chains
    found = without(wanted, chains)
    is_whole = len(found.expanded.points) == len(wanted.expanded.points)
    return found, nothing_said(chains) if is_whole else None


def by_test(wanted: Wanted, record: RunRecord, store: Store, question: Question) -> Wanted:
    """Without what cannot win by what a drafter test foretells; `question` holds the step cost.

    Raises InvalidRunError for a run without figures, and as `without_foretold`.
    """
    told, read = _foretold(record, store, question)
    return without_foretold(wanted, told, read)


def require_same_machine(record: RunRecord, name: str, host: HostConfig) -> None:
    """Whether a run was measured where `name` leads, not how it is called. Raises InvalidRunError."""
    there = resolve(host.ssh).destination
    if record.host.destination != there:
        raise InvalidRunError(
            f"--prune: `{record.run_id}` was measured on {record.host.name} ({record.host.destination}), and speeds "
            f"and models of one machine say nothing about {name} ({there})",
            hint=f"a run of {name} prunes there; else go without --prune",
        )


def require_the_same(job: SweepJob, record: RunRecord, session: HostSession, store: Store) -> None:
    """Refuse to prune by a sweep of other models or of other software, or by a test of another drafter.

    Raises InvalidRunError where a path leads to something else now, or another version is installed.
    """
    then = job_from_json(record.spec.job_json)
    if isinstance(then, StandaloneJob):
        _require_drafter(_foretold(record, store, None)[1], record, session)
    if not isinstance(then, SweepJob):
        return
    order = Order(planned=PlannedJob(job=job, settings=()), run_id=record.run_id)
    python = python_for(order, session, store, lambda _: None, trust=True)  # told when it is launched
    installed = measured_with(then, known(record.run_id, store).attempts)
    anew = installed_anew(installed, installed_now(session, job.base_json, python)) if installed else ()
    if anew:
        raise InvalidRunError(
            f"--prune: sweep `{record.run_id}` was measured with other software: {'; '.join(anew)}",
            hint="go without --prune: figures of other software rule nothing out",
        )
    paths = changed_paths(then.identity, job.identity)
    if paths:
        raise InvalidRunError(
            f"--prune: what lies under {', '.join(paths)} is another than sweep `{record.run_id}` measured",
            hint="go without --prune: figures of other models rule nothing out",
        )


def _require_drafter(then: DrafterRead, record: RunRecord, session: HostSession) -> None:
    drafter, target = pair_there(session, then.whole, then.target or "")
    if other := replaced(then, drafter) or replaced_target(then, target):
        raise InvalidRunError(
            f"--prune: what lies under {other[0]} is another than `{record.run_id}` tested, by {other[1]}",
            hint="test the drafter again, or go without --prune: another pair accepts otherwise",
        )


def _foretold(record: RunRecord, store: Store, question: Question | None) -> tuple[Prediction, DrafterRead]:
    """What a server would get of the drafter, as it would be fed."""
    job, report = job_from_json(record.spec.job_json), review(store, record, question).standalone
    if report is None or not isinstance(job, StandaloneJob):
        raise InvalidRunError(f"--prune: `{record.run_id}` has no result of a drafter test on this laptop")
    found = predictions(report)
    told = next((one for one in found if one.role != "best"), found[0]).prediction
    return told, tested(job, report.result)
