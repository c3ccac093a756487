"""`sweep run --prune RUN`: what cannot win by an earlier sweep, or by a drafter test, is skipped and said so."""

from typing import TYPE_CHECKING

from orchestrator.cli import console
from orchestrator.cli.options import open_store

if TYPE_CHECKING:
    from orchestrator.pipeline import HostSession
    from orchestrator.sweeping.planning import Wanted
    from remote_payload.schema import SweepJob


def pruned(wanted: "Wanted", earlier: str | None, step_cost: str | None, host: str) -> "Wanted":
    """Without what cannot win on `host`.

    Raises UsageError, NotFoundError, InvalidRunError where `earlier` tells nothing of it.
    """
    from orchestrator import config
    from orchestrator.cli.asked import question
    from orchestrator.errors import UsageError
    from orchestrator.sweeping import pruning

    if earlier is None:
        if step_cost is not None:
            raise UsageError("--step-cost belongs to --prune RUN, a drafter test")
        return wanted
    store = open_store()
    record = store.load(earlier)
    pruning.require_same_machine(record, host, config.load(config.here()).host(host))
    if record.job_kind == "standalone":
        return pruning.by_test(wanted, record, store, question(step_cost))
    if step_cost is not None:
        raise UsageError("--step-cost is for a drafter test; a sweep has measured what its steps cost")
    found, why_nothing = pruning.by_sweep(wanted, record, store)
    if why_nothing is not None:
        console.note(f"--prune skips nothing: sweep `{record.run_id}` rules no point out, {why_nothing}")
    return found


def require_the_same(job: "SweepJob", earlier: str | None, session: "HostSession") -> None:
    """Refuse to prune by what was measured or tested of other models or software. Raises InvalidRunError."""
    from orchestrator.sweeping.pruning import require_the_same as refuse_others

    if earlier is not None:
        store = open_store()
        refuse_others(job, store.load(earlier), session, store)
