"""Sweeps from the laptop: plan -> launch -> (the laptop may leave) -> ask -> collect -> go on with another.

The sweep is one run of its host, and so is each of its units: what holds for runs holds for them.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator import jobfile, pipeline
from orchestrator.config import Config, HostConfig
from orchestrator.errors import (
    InvalidRunError,
    JobFileError,
    NotFoundError,
    ProtocolError,
    StoreError,
    UsageError,
)
from orchestrator.following import ANSWER_S, Tell
from orchestrator.order import Order, at_host
from orchestrator.records import RunRecord, read_record, record_bytes
from orchestrator.remote.host_claims import require_state
from orchestrator.remote.session import HostSession
from orchestrator.remote.ssh_config import resolve
from orchestrator.remote.verbs import new_nonce
from orchestrator.store import Store
from orchestrator.store.files import read_text, write
from orchestrator.store.layout import ATTEMPTS
from orchestrator.sweep.depth_pruning import hopeless
from orchestrator.sweep.file import SweepFile
from orchestrator.sweep.plan import Circumstances, paths_of, plan
from orchestrator.sweep.points import Expanded, as_json, expand
from orchestrator.sweep.pruning import Chain, propose
from orchestrator.sweep.standing import Progress, progress_of
from remote_payload.schema import (
    IdentifyFrame,
    IdentifyRequest,
    PathIdentity,
    RunState,
    Setting,
    SkippedPoint,
    SweepAttempt,
    SweepFrame,
    SweepJob,
    SweepRequest,
    UnitJob,
    job_from_json,
)
from remote_payload.schema.sweep import LONGEST_SWEEP_ID

if TYPE_CHECKING:
    from orchestrator.compare.prediction import Prediction
    from orchestrator.sweep.tested import DrafterRead

MOST_TAG = 64
WHOLE_S = 600.0
"""To read some GB of weights to their last byte, also from a slow disk."""


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
    drivers: tuple[int, ...] = ()
    """Processes that still drive it although its supervisor is gone and its state says that it is lost."""

    @property
    def progress(self) -> Progress:
        """Every point accounted for; what is still driven is not over."""
        return progress_of(self.job, self.attempts, "running" if self.drivers else self.state.phase)


def wanted(file: SweepFile, flags: Mapping[str, Any], config: Config, host: str) -> Wanted:
    """Every point of the file for this host, without asking it. Raises JobFileError."""
    shared = (f"{file.source} [sweep.base]", file.base)
    planned = at_host(jobfile.plan(file.job, config, None, flags, shared=shared), host, config.host(host))
    if not isinstance(planned.job, UnitJob):
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


def launch(order: Order, session: HostSession, store: Store, tell: Tell) -> RunRecord:
    """Start it on the host and return as soon as it runs on its own. Raises what `pipeline.run` does, UsageError."""
    run_id = order.run_id
    if len(run_id) > LONGEST_SWEEP_ID or len(run_id) > MOST_TAG:
        raise UsageError(f"a sweep's id has at most {MOST_TAG} characters, found: {run_id}")
    return pipeline.run(dataclasses.replace(order, detach=True), session, store, tell)


def identify(session: HostSession, paths: tuple[str, ...], *, content: bool = False) -> tuple[PathIdentity, ...]:
    """What lies under the paths on the host, with `content` by what the files hold as well. Raises ProtocolError."""
    if not paths:
        return ()
    request = IdentifyRequest(nonce=new_nonce(), root=session.host.root, paths=paths, content=content)
    return identified(session, request).paths


def identified(session: HostSession, request: IdentifyRequest) -> IdentifyFrame:
    """The host's answer. Raises ProtocolError."""
    found = session.ask("identify", request, IdentifyFrame, ANSWER_S)
    if tuple(one.path for one in found.paths) != request.paths:
        raise ProtocolError("the host must tell of the paths it was asked about, in their order")
    return found


def whole_sha256(session: HostSession, texts: tuple[tuple[str, ...], ...]) -> tuple[str | None, ...]:
    """Of each text, one or several files of the host, the sha256; None = cannot be read. Raises ProtocolError."""
    request = IdentifyRequest(nonce=new_nonce(), root=session.host.root, whole=texts)
    found = session.ask("identify", request, IdentifyFrame, WHOLE_S).whole
    if len(found) != len(texts):
        raise ProtocolError("the host must tell of each text it was asked about, in their order")
    return found


def ask(session: HostSession, run_id: str, store: Store, silence_s: float = ANSWER_S) -> Asked:
    """The sweep as it is now, whoever launched it. Raises NotFoundError, InvalidRunError where it is no sweep.

    `silence_s`: how long the host may think.
    """
    is_known = store.run_dir(run_id).path.is_dir()
    record = store.load_exact(run_id) if is_known else pipeline.asked_of_host(session, run_id, store)
    job = sweep_job(record)
    request = SweepRequest(nonce=new_nonce(), root=session.host.root, run_id=run_id)
    attempts: list[SweepAttempt] = []
    state: RunState | None = None
    drivers: tuple[int, ...] = ()
    try:
        for frame in session.frames("sweep", request, silence_s):
            if isinstance(frame, SweepFrame):
                attempts += frame.attempts
                state, drivers = frame.state or state, frame.drivers
    except NotFoundError:
        if is_known and record.state is not None and record.state.is_terminal:
            return known(run_id, store)  # `gc` took it away there: all that comes of it is here
        raise
    if state is None:
        raise ProtocolError(f"the host ended its answer without the state of the sweep: {run_id}")
    require_own(run_id, job, attempts)
    record = dataclasses.replace(record, state=require_state(state, run_id))
    if not is_known:
        store.begin(dataclasses.replace(record, state=None))
    store.update(record)
    lines = b"".join(record_bytes(one) for one in attempts)
    write(store.run_dir(run_id).path / ATTEMPTS, lines)
    return Asked(record=record, job=job, attempts=tuple(attempts), state=state, drivers=drivers)


def require_own(sweep_id: str, job: SweepJob, attempts: Sequence[SweepAttempt]) -> None:
    """A host tells of its sweep's runs alone: what it says of others would be kept as theirs. Raises ProtocolError."""
    units = {unit.unit_id: unit for unit in job.units}
    for one in attempts:
        unit = units.get(one.unit_id)
        own = unit is not None and one.run_id in (unit.adopt, f"{sweep_id}.{one.unit_id}.{one.attempt}")
        if unit is None or not own or not {outcome.point_id for outcome in one.points} <= {*unit.points}:
            raise ProtocolError(f"the host tells of a run that is none of sweep `{sweep_id}`: {one.run_id}")


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


def require_same_machine(record: RunRecord, name: str, host: HostConfig) -> None:
    """Whether a run was measured where `name` leads, not how it is called. Raises InvalidRunError."""
    there = resolve(host.ssh).destination
    if record.host.destination != there:
        raise InvalidRunError(
            f"--prune: `{record.run_id}` was measured on {record.host.name} ({record.host.destination}), and speeds "
            f"and models of one machine say nothing about {name} ({there})",
            hint=f"a run of {name} prunes there; else go without --prune",
        )


def without(asked: Wanted, chains: Sequence[Chain]) -> Wanted:
    """The same without the points that cannot win, by what an earlier sweep measured; these are skipped, with why."""
    return _skipping(asked, {one.point_id: one.reason for one in propose(chains, _jobs(asked))})


def without_foretold(asked: Wanted, told: "Prediction", of: "DrafterRead") -> Wanted:
    """The same without the points that cannot win, by a test of the drafter outside the server.

    Raises InvalidRunError where it has no step cost or no target, UsageError where no point has that drafter or target.
    """
    return _skipping(asked, hopeless(told, of, _jobs(asked)))


def _jobs(asked: Wanted) -> dict[str, dict[str, Any]]:
    """The whole job of every point that may be skipped, by its place."""
    return {str(at): as_json(point.job) for at, point in enumerate(asked.expanded.points) if not point.is_baseline}


def _skipping(asked: Wanted, reasons: Mapping[str, str]) -> Wanted:
    points = asked.expanded.points
    skipped = tuple(
        SkippedPoint(changes_json=json.dumps(points[int(at)].changes), reason=reason) for at, reason in reasons.items()
    )
    kept = tuple(point for at, point in enumerate(points) if str(at) not in reasons)
    return dataclasses.replace(asked, expanded=Expanded(points=kept, skipped=(*asked.expanded.skipped, *skipped)))
