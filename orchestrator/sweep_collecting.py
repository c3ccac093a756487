"""What a sweep has measured, brought home: each of its starts as an ordinary run, with the sweep's id as its tag."""

import json

from orchestrator import pipeline
from orchestrator.errors import ClaimedError, NotFoundError, ProtocolError
from orchestrator.following import Tell
from orchestrator.records import RunHost, RunRecord
from orchestrator.remote.session import HostSession
from orchestrator.store import Store
from orchestrator.sweep.points import in_words
from orchestrator.sweeping import Asked
from orchestrator.updates import Note, Reconnecting, Update
from remote_payload.schema import TERMINAL_PHASES, SweepAttempt


def collect(asked: Asked, session: HostSession, store: Store, tell: Tell) -> tuple[str, ...]:
    """Bring every unit home that has ended and is not here, as a run with the sweep's tag; the sweep itself when over.

    Returns what could not be brought, a sentence each. Safe to repeat; what is here already costs nothing.
    """
    problems: list[str] = []
    if asked.state.is_terminal and not _is_here(asked.record.run_id, store):
        pipeline.attach(session, asked.record.run_id, store, tell)
    ended = [one for one in asked.attempts if one.phase in TERMINAL_PHASES and not _is_here(one.run_id, store)]
    _begin_all(asked.record.run_id, session, store)
    for number, one in enumerate(ended):
        try:
            pipeline.attach(session, one.run_id, store, _only_trouble(tell))
        except (NotFoundError, ProtocolError, ClaimedError) as error:
            problems.append(f"{one.run_id}: {error.message}")
            continue
        tell(Note(name="collected", text=f"{one.run_id} ({number + 1} of {len(ended)})"))
    for one in asked.attempts:
        if store.run_dir(one.run_id).path.is_dir():
            _label(one, asked, store)
    return tuple(problems)


def _is_here(run_id: str, store: Store) -> bool:
    return store.run_dir(run_id).path.is_dir() and pipeline.is_home(store.load_exact(run_id), store)


def _begin_all(sweep_id: str, session: HostSession, store: Store) -> None:
    """Make the units known here at once: one question for all of them."""
    answer = pipeline.status(session, None, store, prefix=f"{sweep_id}.")
    host = RunHost(name=session.name, destination=session.destination, root=session.host.root)
    for spec in answer.specs:
        if not store.run_dir(spec.run_id).path.is_dir():
            store.begin(RunRecord(host=host, spec=spec))


def _label(one: SweepAttempt, asked: Asked, store: Store) -> None:
    tag = asked.record.run_id
    if tag in store.labels(one.run_id).tags:
        return
    unit = next((unit for unit in asked.job.units if unit.unit_id == one.unit_id), None)
    points = {point.point_id: point for point in asked.job.points}
    mine = [points[outcome.point_id] for outcome in one.points if outcome.point_id in points]
    told = "; ".join(in_words(json.loads(point.changes_json)) for point in mine)
    block = "" if unit is None else f", block {unit.block}"
    store.label(one.run_id, tags=(f"+{tag}",), note=f"{told}{block}"[:4000])


def _only_trouble(tell: Tell) -> Tell:
    """Of a unit that is over nobody wants its life told again, but a broken link."""

    def quiet(update: Update) -> None:
        if isinstance(update, Reconnecting):
            tell(update)

    return quiet
