"""Whether another sweep went on with one, as this laptop's runs tell: its host knows, until `gc` takes them away."""

from orchestrator.errors import ClaimedError
from orchestrator.store import Store
from orchestrator.sweeping import asking
from remote_payload.schema import SweepJob


def require_none_went_on(sweep_id: str, job: SweepJob, new_id: str, store: Store) -> None:
    """Raise ClaimedError where a later sweep measured something and has points of `job`, which would go on with it.

    `new_id` is what `job` is to be called: asked for again by that name it is the same sweep. Also raises StoreError.
    """
    names = [run.run_id for run in store.list() if run.job_kind == "sweep" and run.problem is None]
    jobs = {name: asking.sweep_job(store.load_exact(name)) for name in names if name != new_id}
    wanted, chain = _pairs(job), [sweep_id]
    for earlier in chain:
        for name, later in jobs.items():
            if later.resumes != earlier or name in chain:
                continue
            chain.append(name)
            if _pairs(later) & wanted and _has_measured(name, store):
                raise ClaimedError(
                    f"sweep `{name}` goes on with sweep `{earlier}`, and has the same points",
                    hint=f"`eagle3-remote sweep resume {name}` measures what that one leaves",
                )


def _has_measured(sweep_id: str, store: Store) -> bool:
    attempts = asking.known(sweep_id, store).attempts
    return any(outcome.end == "measured" for one in attempts for outcome in one.points)


def _pairs(job: SweepJob) -> set[tuple[str, int]]:
    return {(point, unit.block) for unit in job.units for point in unit.points}
