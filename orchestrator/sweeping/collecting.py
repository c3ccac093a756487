"""What a sweep has measured, brought home: each of its starts as an ordinary run, with the sweep's id as its tag."""

import dataclasses
import time
from collections.abc import Mapping
from contextlib import suppress

from orchestrator import pipeline
from orchestrator.errors import ClaimedError, HostNotReadyError, LinkLostError, NotFoundError, ProtocolError
from orchestrator.following import SILENCE_S, Tell
from orchestrator.records import RunHost, RunLabels, RunRecord
from orchestrator.records.labels import MAX_NOTE
from orchestrator.remote.collect import collect as fetch
from orchestrator.remote.follow import Receiver
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import new_nonce
from orchestrator.store import Store
from orchestrator.store.homecoming import note_no_result
from orchestrator.sweep.points import point_words
from orchestrator.sweeping.asking import Asked
from orchestrator.updates import Note, Reconnecting, Update
from remote_payload.schema import TERMINAL_PHASES, GatherRequest, NextFrame

NEVER_BEGAN = "claimed, not started yet"
"""How a host tells of a run that has a spec and no state, with nothing alive."""
BATCH = 50
"""Runs that come home in one answer of the host."""


def collect(
    asked: Asked, session: HostSession, store: Store, tell: Tell, *, tags: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Bring every unit home that has ended and is not here, as a run with the sweep's tag; the sweep itself when over.

    So are the runs of earlier sweeps that it goes on with. Returns what could not be brought, a sentence each. Safe to
    repeat; what is here already costs nothing. `tags`: more of them, as of the group that it is a share of.
    """
    sweep_id = asked.record.run_id
    problems: list[str] = []
    if asked.state.is_terminal and not _is_here(sweep_id, store):
        problems += _attached(sweep_id, session, store, tell)
    notes, tags = _notes(asked), (sweep_id, *tags)
    _begin_all(sweep_id, session, store, {run_id: _labels(tags, note) for run_id, note in notes.items()})
    left = [run_id for run_id in notes if not _is_here(run_id, store)]
    for first in range(0, len(left), BATCH):
        batch = tuple(left[first : first + BATCH])
        problems += _bring(batch, session, store, tell, _unstarted(asked))
        tell(Note(name="collected", text=f"{min(first + BATCH, len(left))} of {len(left)} runs"))
    for run_id, note in notes.items():
        if store.run_dir(run_id).path.is_dir() and sweep_id not in store.labels(run_id).tags:
            store.label(run_id, tags=tuple(f"+{tag}" for tag in tags), note=note[:MAX_NOTE])
    return tuple(problems)


def _unstarted(asked: Asked) -> frozenset[str]:
    """Attempts that may have left no run at all, as on a full disk: their sweep tells why nothing was measured.

    So may those that a power cut ended before they began.
    """
    return frozenset(
        one.run_id
        for one in asked.attempts
        if (one.failure is not None or one.phase == "lost")
        and not any(outcome.end == "measured" for outcome in one.points)
    )


def _bring(
    batch: tuple[str, ...], session: HostSession, store: Store, tell: Tell, unstarted: frozenset[str]
) -> list[str]:
    """Many runs in one answer of the host; what did not come whole that way comes as every run does, one by one."""
    receivers: dict[str, Receiver] = {}
    with suppress(LinkLostError):
        here = tuple(run_id for run_id in batch if store.run_dir(run_id).path.is_dir())
        receivers = _gathered(here, session, store)
    problems: list[str] = []
    for run_id in batch:
        try:
            if run_id in receivers and _settled(receivers[run_id], session, store):
                continue
        except (NotFoundError, ProtocolError, ClaimedError, HostNotReadyError) as error:
            problems.append(f"{run_id}: {error.message}")
            continue
        problems += _attached(run_id, session, store, only_trouble(tell), may_lack=run_id in unstarted)
    return problems


def _attached(run_id: str, session: HostSession, store: Store, tell: Tell, *, may_lack: bool = False) -> list[str]:
    """Bring one run home as every run comes; why it did not, a sentence. With `may_lack` there may be none."""
    try:
        pipeline.attach(session, run_id, store, tell)
    except (NotFoundError, ProtocolError, ClaimedError, HostNotReadyError) as error:
        is_known = store.run_dir(run_id).path.is_dir()
        is_none = isinstance(error, NotFoundError) or NEVER_BEGAN in error.message
        if is_none and may_lack and not is_known:
            return []
        if isinstance(error, NotFoundError) and is_known and store.load_exact(run_id).phase in TERMINAL_PHASES:
            note_no_result(store.run_dir(run_id))  # taken away there: said once, there is nothing to come
        return [f"{run_id}: {error.message}"]
    return []


def _gathered(run_ids: tuple[str, ...], session: HostSession, store: Store) -> dict[str, Receiver]:
    """What the host tells of each, stored as it comes. Raises LinkLostError, ProtocolError."""
    receivers: dict[str, Receiver] = {}
    now: Receiver | None = None
    request = GatherRequest(nonce=new_nonce(), root=session.host.root, run_ids=run_ids)
    for frame in session.frames("gather", request, SILENCE_S) if run_ids else ():
        if isinstance(frame, NextFrame):
            if frame.run_id not in run_ids:
                raise ProtocolError(f"the host told of a run that nobody asked about: {frame.run_id}")
            now = None if frame.problem else receivers.setdefault(frame.run_id, Receiver(store.run_dir(frame.run_id)))
        elif now is not None:
            for _ in now.take((frame,)):
                pass  # what a unit told while it ran is old news
    return receivers


def _settled(receiver: Receiver, session: HostSession, store: Store) -> bool:
    """Whether the run is home whole now: its state kept, every file of its manifest here and checked."""
    state, manifest = receiver.state, receiver.manifest
    if state is None or (manifest is None and state.phase == "succeeded"):
        return False
    if manifest is not None:
        fetch(session.link(), session.host.root, manifest, receiver.run_dir, lambda: None)
    elif receiver.has_none:
        note_no_result(receiver.run_dir)
    record = store.load_exact(receiver.run_dir.path.name)
    store.update(dataclasses.replace(record, state=state, state_seen_unix_s=time.time()))
    return True


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


def _labels(tags: tuple[str, ...], note: str) -> RunLabels:
    return RunLabels(tags=tuple(dict.fromkeys(tags)), note=note[:MAX_NOTE])


def _begin_all(sweep_id: str, session: HostSession, store: Store, labels: Mapping[str, RunLabels]) -> None:
    """Make the units known here at once: one question for all of them; those that are over with state and labels."""
    answer = pipeline.status(session, None, store, prefix=f"{sweep_id}.")
    host = RunHost(name=session.name, destination=session.destination, root=session.host.root)
    for spec, state in zip(answer.specs, answer.states, strict=True):
        if not store.run_dir(spec.run_id).path.is_dir():
            record = RunRecord(host=host, spec=spec)
            if state.is_terminal:
                record = dataclasses.replace(record, state=state, state_seen_unix_s=time.time())
            store.begin(record, labels.get(spec.run_id))


def only_trouble(tell: Tell) -> Tell:
    """Of a unit that is over nobody wants its life told again, but a broken link."""

    def quiet(update: Update) -> None:
        if isinstance(update, Reconnecting):
            tell(update)

    return quiet
