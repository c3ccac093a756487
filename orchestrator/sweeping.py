"""Sweeps from the laptop: plan -> launch -> (the laptop may leave) -> ask -> collect -> go on with another.

The sweep is one run of its host, and so is each of its units: what holds for runs holds for them.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator import jobfile, pipeline
from orchestrator.config import Config
from orchestrator.errors import (
    ClaimedError,
    InvalidRunError,
    JobFileError,
    NotFoundError,
    ProtocolError,
    StoreError,
    UsageError,
)
from orchestrator.following import ANSWER_S, Tell
from orchestrator.jobfile import PlannedJob
from orchestrator.order import Order, at_host
from orchestrator.records import RunHost, RunRecord, read_record, record_bytes
from orchestrator.remote.host_claims import require_state
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import new_nonce
from orchestrator.store import Store
from orchestrator.store.files import read_text, write
from orchestrator.sweep.file import SweepFile
from orchestrator.sweep.plan import Circumstances, paths_of, plan
from orchestrator.sweep.points import Expanded, expand, in_words
from orchestrator.sweep.remaining import drifted, remaining
from orchestrator.sweep.standing import Progress, progress_of
from orchestrator.updates import Note, Reconnecting, Update
from remote_payload.schema import (
    TERMINAL_PHASES,
    IdentifyFrame,
    IdentifyRequest,
    PathIdentity,
    RunState,
    Setting,
    SweepAttempt,
    SweepFrame,
    SweepJob,
    SweepRequest,
    UnitJob,
    job_from_json,
)
from remote_payload.schema.sweep import LONGEST_SWEEP_ID

MOST_TAG = 64
ATTEMPTS = "attempts.jsonl"
"""Beside a sweep's record: its attempts as the host told them last."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A sweep file put together with all that lies under it, before the host is asked."""

    file: SweepFile
    base: UnitJob
    settings: tuple[Setting, ...]
    expanded: Expanded


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A sweep as its host tells it now."""

    record: RunRecord
    job: SweepJob
    attempts: tuple[SweepAttempt, ...]
    state: RunState

    @property
    def progress(self) -> Progress:
        """Every point accounted for."""
        return progress_of(self.job, self.attempts, self.state.phase)


def wanted(file: SweepFile, flags: Mapping[str, Any], config: Config, host: str) -> Wanted:
    """Every point of the file for this host, without asking it. Raises JobFileError."""
    shared = (f"{file.source} [sweep.base]", file.base)
    planned = at_host(jobfile.plan(file.job, config, None, flags, shared=shared), host, config.host(host))
    if isinstance(planned.job, SweepJob):
        raise JobFileError(f"{file.source}: a sweep's points cannot be sweeps")
    expanded = expand(file, planned.job)
    if not expanded.points:
        first = expanded.skipped[0]
        raise JobFileError(f"{file.source}: every combination is skipped; the first because {first.reason}")
    return Wanted(file=file, base=planned.job, settings=planned.settings, expanded=expanded)


def job_at(asked: Wanted, session: HostSession) -> SweepJob:
    """The job for the host: its points known by what lies under their paths there."""
    identity = identify(session, paths_of(asked.base, asked.expanded.points))
    around = Circumstances(payload_sha256=session.payload_sha256, identity=identity)
    job = plan(asked.file, asked.base, asked.expanded, around)
    return dataclasses.replace(job, unit_deadline_s=session.host.deadline_s)


def launch(
    job: SweepJob, settings: tuple[Setting, ...], run_id: str, session: HostSession, store: Store, tell: Tell
) -> RunRecord:
    """Start it on the host and return as soon as it runs on its own. Raises what `pipeline.run` does, UsageError."""
    if len(run_id) > LONGEST_SWEEP_ID or len(run_id) > MOST_TAG:
        raise UsageError(f"a sweep's id has at most {MOST_TAG} characters, found: {run_id}")
    order = Order(planned=PlannedJob(job=job, settings=settings), run_id=run_id, detach=True)
    return pipeline.run(order, session, store, tell)


def identify(session: HostSession, paths: tuple[str, ...]) -> tuple[PathIdentity, ...]:
    """What lies under the paths on the host. Raises ProtocolError."""
    if not paths:
        return ()
    request = IdentifyRequest(nonce=new_nonce(), root=session.host.root, paths=paths)
    found = session.ask("identify", request, IdentifyFrame, ANSWER_S).paths
    if tuple(one.path for one in found) != paths:
        raise ProtocolError("the host must tell of the paths it was asked about, in their order")
    return found


def ask(session: HostSession, run_id: str, store: Store) -> Asked:
    """The sweep as it is now, whoever launched it. Raises NotFoundError, InvalidRunError where it is no sweep."""
    is_known = store.run_dir(run_id).path.is_dir()
    record = store.load_exact(run_id) if is_known else pipeline.asked_of_host(session, run_id, store)
    job = sweep_job(record)
    request = SweepRequest(nonce=new_nonce(), root=session.host.root, run_id=run_id)
    attempts: list[SweepAttempt] = []
    state = None
    for frame in session.frames("sweep", request, ANSWER_S):
        if isinstance(frame, SweepFrame):
            attempts += frame.attempts
            state = frame.state or state
    if state is None:
        raise ProtocolError(f"the host ended its answer without the state of the sweep: {run_id}")
    record = dataclasses.replace(record, state=require_state(state, run_id))
    if not is_known:
        store.begin(dataclasses.replace(record, state=None))
    store.update(record)
    lines = b"".join(record_bytes(one) for one in attempts)
    write(store.run_dir(run_id).path / ATTEMPTS, lines)
    return Asked(record=record, job=job, attempts=tuple(attempts), state=state)


def known(run_id: str, store: Store) -> Asked:
    """The sweep as its host told it last, without asking. Raises NotFoundError, InvalidRunError, StoreError."""
    record = store.load_exact(run_id)
    path = store.run_dir(run_id).path / ATTEMPTS
    lines = read_text(path).splitlines() if path.is_file() else []
    attempts = tuple(read_record(SweepAttempt, line, where=str(path), error=StoreError) for line in lines)
    state = record.state or RunState(run_id=run_id, sequence=0, phase="queued")
    return Asked(record=record, job=sweep_job(record), attempts=attempts, state=state)


def sweep_job(record: RunRecord) -> SweepJob:
    """What a sweep was asked to do. Raises InvalidRunError for a run of another kind."""
    job = job_from_json(record.spec.job_json)
    if not isinstance(job, SweepJob):
        raise InvalidRunError(f"expected a sweep, `{record.run_id}` is a run of: {record.job_kind}")
    return job


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


def go_on(asked: Asked, session: HostSession, *, allow_drift: bool, skip_failed: bool) -> SweepJob:
    """The job that measures what this sweep left. Raises ClaimedError while it runs, InvalidRunError on drift."""
    run_id = asked.record.run_id
    if not asked.state.is_terminal:
        raise ClaimedError(
            f"sweep `{run_id}` still runs on {session.name}",
            hint=f"`eagle3-remote sweep follow {run_id}` follows it, `sweep cancel {run_id}` ends it",
        )
    job = remaining(asked.job, run_id, asked.progress, skip_failed=skip_failed)
    if not job.units:
        raise InvalidRunError(f"nothing is left of sweep `{run_id}`: every point is measured")
    identity = identify(session, tuple(one.path for one in asked.job.identity))
    spec = asked.record.spec
    found = drifted(
        asked.job,
        identity,
        (spec.payload_sha256, session.payload_sha256),
        (spec.environment, dict(session.host.environment)),
    )
    if found and not allow_drift:
        raise InvalidRunError(
            f"what is left of sweep `{run_id}` would not be measured as the rest was: {'; '.join(found)}",
            hint="--allow-drift goes on all the same; else launch the sweep file anew",
        )
    return dataclasses.replace(job, identity=identity, unit_deadline_s=session.host.deadline_s)


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
