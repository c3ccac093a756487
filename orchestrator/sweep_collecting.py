"""What a sweep has measured, brought home: each of its starts as an ordinary run, with the sweep's id as its tag."""

from orchestrator import pipeline
from orchestrator.errors import ClaimedError, NotFoundError, ProtocolError
from orchestrator.following import Tell
from orchestrator.records import RunHost, RunRecord
from orchestrator.records.labels import MAX_NOTE
from orchestrator.remote.session import HostSession
from orchestrator.store import Store
from orchestrator.sweep.points import point_words
from orchestrator.sweeping import Asked
from orchestrator.updates import Note, Reconnecting, Update
from remote_payload.schema import TERMINAL_PHASES


def collect(asked: Asked, session: HostSession, store: Store, tell: Tell) -> tuple[str, ...]:
    """Bring every unit home that has ended and is not here, as a run with the sweep's tag; the sweep itself when over.

    So are the runs of earlier sweeps that it goes on with. Returns what could not be brought, a sentence each. Safe to
    repeat; what is here already costs nothing.
    """
    problems: list[str] = []
    sweep_id = asked.record.run_id
    if asked.state.is_terminal and not _is_here(sweep_id, store):
        pipeline.attach(session, sweep_id, store, tell)
    _begin_all(sweep_id, session, store)
    notes = _notes(asked)
    left = [run_id for run_id in notes if not _is_here(run_id, store)]
    for number, run_id in enumerate(left):
        try:
            pipeline.attach(session, run_id, store, _only_trouble(tell))
        except (NotFoundError, ProtocolError, ClaimedError) as error:
            problems.append(f"{run_id}: {error.message}")
            continue
        tell(Note(name="collected", text=f"{run_id} ({number + 1} of {len(left)})"))
    for run_id, note in notes.items():
        if store.run_dir(run_id).path.is_dir() and sweep_id not in store.labels(run_id).tags:
            store.label(run_id, tags=(f"+{sweep_id}",), note=note[:MAX_NOTE])
    return tuple(problems)


def _notes(asked: Asked) -> dict[str, str]:
    """What each run that has ended measured, or was to, in words, by run id."""
    words = {point.point_id: point_words(point) for point in asked.job.points}
    told: dict[str, list[str]] = {}
    blocks: dict[str, int] = {}
    for done in asked.job.done:
        told.setdefault(done.run_id, []).append(words.get(done.point_id, done.point_id))
        blocks[done.run_id] = done.block
    for one in asked.attempts:
        if one.phase in TERMINAL_PHASES:
            told[one.run_id] = [words.get(outcome.point_id, outcome.point_id) for outcome in one.points]
            blocks[one.run_id] = one.block
    return {run_id: f"{'; '.join(points)}; block {blocks[run_id]}" for run_id, points in told.items()}


def _is_here(run_id: str, store: Store) -> bool:
    return store.run_dir(run_id).path.is_dir() and pipeline.is_home(store.load_exact(run_id), store)


def _begin_all(sweep_id: str, session: HostSession, store: Store) -> None:
    """Make the units known here at once: one question for all of them."""
    answer = pipeline.status(session, None, store, prefix=f"{sweep_id}.")
    host = RunHost(name=session.name, destination=session.destination, root=session.host.root)
    for spec in answer.specs:
        if not store.run_dir(spec.run_id).path.is_dir():
            store.begin(RunRecord(host=host, spec=spec))


def _only_trouble(tell: Tell) -> Tell:
    """Of a unit that is over nobody wants its life told again, but a broken link."""

    def quiet(update: Update) -> None:
        if isinstance(update, Reconnecting):
            tell(update)

    return quiet
