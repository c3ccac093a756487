"""What the commands of a sweep share: its session, following it home, and how its end is told."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchestrator.cli import console
from orchestrator.cli.notify import notify_end_of
from orchestrator.cli.options import host_of, open_session, open_store, tell_what_matters
from orchestrator.errors import DetachedError, PartialError

if TYPE_CHECKING:
    from orchestrator.cli.live import Tell
    from orchestrator.pipeline import HostSession
    from orchestrator.store import Store


@contextmanager
def sweep_session(
    run_id: str, host_name: str | None, *, accept_new: bool
) -> "Iterator[tuple[str, HostSession, Store]]":
    """The whole id of a sweep, its host and the store, for a command that shows an answer and no progress."""
    store = open_store()
    run_id, host_name = host_of(run_id, host_name, store)
    with open_session(host_name, tell_what_matters, accept_new=accept_new) as session:
        yield run_id, session, store


def follow_home(run_id: str, session: "HostSession", store: "Store", tell: "Tell") -> tuple[str, ...]:
    """Follow the sweep to its end, then bring everything home; returns what did not come, told already.

    Raises DetachedError at Ctrl-C: the sweep goes on.
    """
    from orchestrator import pipeline
    from orchestrator.sweeping import asking
    from orchestrator.sweeping.collecting import collect

    try:
        pipeline.attach(session, run_id, store, tell)
        problems = collect(asking.ask(session, run_id, store), session, store, tell)
        tell_problems(problems)
        notify_end_of(run_id, store)
        return problems
    except (DetachedError, KeyboardInterrupt):
        hint = f"follow with: eagle3-remote sweep follow {run_id} --host {session.name}"
        raise DetachedError("detached; the sweep goes on, and what came home stays", hint=hint) from None


def tell_problems(problems: "Sequence[str]") -> None:
    """What did not come home, a warning each."""
    for problem in problems:
        console.warn(problem)


def require_home(run_id: str, problems: "Sequence[str]") -> None:
    """Raises PartialError where something of a sweep did not come home, which was told already."""
    if problems:
        raise PartialError(
            f"sweep {run_id}: so many of its runs did not come home, as told above: {len(problems)}",
            hint=f"`eagle3-remote sweep collect {run_id}` tries again; what is home already costs nothing",
        )


def show_end(run_id: str, store: "Store", problems: "Sequence[str]" = (), *, as_json: bool) -> None:
    """The report, then the error that the sweep's end means: of its run, of points that failed, of runs not here."""
    from orchestrator.cli.sweep_shown import show_report
    from orchestrator.errors import JobError
    from orchestrator.outcome import error_of
    from orchestrator.sweeping import asking

    known = asking.known(run_id, store)
    show_report(known, store, as_json=as_json)
    error = error_of(known.state, job_kind="sweep", host=known.record.host.name)
    if error is not None:
        raise error
    left = [one for one in known.progress.standings if one.word != "measured"]
    if left:
        raise JobError(
            f"sweep {run_id}: {len(left)} of {len(known.progress.standings)} points are not measured",
            hint=f"`eagle3-remote sweep resume {run_id}` tries them again; "
            f"`eagle3-remote runs list --tag {run_id}` lists its runs",
        )
    require_home(run_id, problems)
