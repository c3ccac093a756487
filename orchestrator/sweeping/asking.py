"""A sweep as its host tells it, or as this laptop has it: its job, its attempts, its state."""

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator import pipeline
from orchestrator.errors import InvalidRunError, NotFoundError, ProtocolError, StoreError
from orchestrator.following import ANSWER_S
from orchestrator.records import RunRecord, read_record, record_bytes
from orchestrator.remote.host_claims import require_state
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import new_nonce
from orchestrator.store import Store
from orchestrator.store.files import read_text, write
from orchestrator.store.layout import ATTEMPTS
from orchestrator.sweep.standing import Progress, progress_of
from remote_payload.schema import RunState, SweepAttempt, SweepFrame, SweepJob, SweepRequest, job_from_json


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A sweep as its host tells it now."""

    record: RunRecord
    job: SweepJob
    attempts: tuple[SweepAttempt, ...]
    state: RunState
    drivers: tuple[int, ...] = ()
    """Processes that still drive it although its supervisor is gone and its state says that it is lost."""
    told_unix_s: float | None = None
    """When its host told this, by the laptop's clock; None = it never was asked."""

    @property
    def progress(self) -> Progress:
        """Every point accounted for; what is still driven is not over."""
        return progress_of(self.job, self.attempts, "running" if self.drivers else self.state.phase)


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
    return Asked(
        record=record, job=job, attempts=tuple(attempts), state=state, drivers=drivers, told_unix_s=time.time()
    )


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
    told_unix_s = path.stat().st_mtime if path.is_file() else None  # written at every answer
    return Asked(record=record, job=sweep_job(record), attempts=attempts, state=state, told_unix_s=told_unix_s)


def sweep_job(record: RunRecord) -> SweepJob:
    """What a sweep was asked to do. Raises InvalidRunError for a run of another kind."""
    job = job_from_json(record.spec.job_json)
    if not isinstance(job, SweepJob):
        raise InvalidRunError(f"expected a sweep, `{record.run_id}` is a run of: {record.job_kind}")
    return job
