"""The main job: load -> connect -> preflight -> ship -> launch -> follow -> collect -> store, about a line each."""

import contextlib
import dataclasses
import time

from orchestrator.config import Config
from orchestrator.errors import (
    AuthenticationError,
    ClaimedError,
    HostError,
    HostKeyError,
    HostNotReadyError,
    StoreError,
    SweepGoesOnError,
)
from orchestrator.following import ANSWER_S, Going, Tell, finish, until_admitted
from orchestrator.order import Order, again, at_host, new_run_id, record_of, secret_values
from orchestrator.records import RunHost, RunRecord
from orchestrator.remote.follow import Receiver
from orchestrator.remote.host_claims import require_state, require_status
from orchestrator.remote.preflight import DRAFTER_PACKAGES, SERVER_PACKAGES
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import NotRunError, PythonMissingError, new_nonce
from orchestrator.store import Store, homecoming
from orchestrator.updates import Note
from remote_payload.schema import (
    BenchJob,
    CancelAnswer,
    CancelFrame,
    CancelRequest,
    Cursor,
    Job,
    LaunchRequest,
    RunSpec,
    RunState,
    StandaloneJob,
    StatusAnswer,
    StatusFrame,
    StatusRequest,
    SweepJob,
    job_from_json,
)
from remote_payload.schema.capture_job import CaptureJob

__all__ = [
    "HostSession",
    "Order",
    "asked_of_host",
    "attach",
    "cancel",
    "is_home",
    "logs",
    "new_run_id",
    "python_for",
    "run",
    "session",
    "status",
]


def session(host_name: str, settings: Config, tell: Tell, *, accept_new: bool) -> HostSession:
    """A session on a host of eagle3.toml, an ssh alias or `user@address[:port]`; connects on first use."""
    return HostSession(
        host_name,
        settings.host(host_name),
        tell,
        accept_new=accept_new,
        unknown_hint=None if host_name in settings.hosts else settings.known_hosts_hint(host_name),
    )


def run(order: Order, session: HostSession, store: Store, tell: Tell) -> RunRecord:
    """Run a job on a host and bring its result home. Returns the stored record, whatever the job's outcome was.

    Raises HostError and its subclasses before the launch, HostNotReadyError, ClaimedError; after the launch
    LinkLostError when the host stayed unreachable, DetachedError at Ctrl-C: the job goes on in both cases.
    """
    values = secret_values(session.host)
    for trust in (not order.fresh_python, False):
        python = python_for(order, session, store, tell, trust=trust)
        try:
            done = _launch_and_follow(order, record_of(order, session, python), session, store, tell, values)
            _remember(done, session, store)
            return done
        except PythonMissingError:
            store.note_host(_host_key(session), {})
    raise HostNotReadyError(
        f"host `{session.name}`: the interpreter that was found a moment ago is gone: {python}",
        hint="`eagle3-remote hosts check` shows what is there now",
    )


def attach(session: HostSession, run_id: str, store: Store, tell: Tell) -> RunRecord:
    """Follow a run that was launched before, by any laptop, and bring its result home.

    A run that is over and home needs no host: where that is unreachable, a note says so. Raises NotFoundError when the
    host knows no such run.
    """
    return _follow(session, run_id, store, tell, wait=True)


def logs(session: HostSession, run_id: str, store: Store, tell: Tell, *, shown: Cursor, wait: bool) -> RunRecord:
    """Tell what the job printed beyond what was `shown`; until the run is over with `wait`. Leaves the result there.

    Works without the host as `attach` does.
    """
    return _follow(session, run_id, store, tell, wait=wait, shown=shown)


def _follow(
    session: HostSession, run_id: str, store: Store, tell: Tell, *, wait: bool, shown: Cursor | None = None
) -> RunRecord:
    is_known = store.run_dir(run_id).path.is_dir()
    record = store.load(run_id) if is_known else asked_of_host(session, run_id, store)
    receiver = Receiver(store.begin(record), shown)
    run = Going(record=record, session=session, store=store, receiver=receiver, tell=tell)
    try:
        return finish(run, launch=None, wait=wait, bring_home=shown is None)
    except HostError as error:
        is_refused = isinstance(error, HostKeyError | AuthenticationError)
        if is_refused or session.has_connected or not is_home(record, store):
            raise
        tell(Note(name="offline", text=f"{error.message}; the run is over, this is what came home of it"))
        return record


def is_home(record: RunRecord, store: Store) -> bool:
    """Whether the run is over and this laptop has what it left."""
    return homecoming.is_home(store.run_dir(record.run_id), record)


def status(session: HostSession, run_id: str | None, store: Store, prefix: str = "") -> StatusAnswer:
    """The state of one run on the host, or of all whose id begins with `prefix`.

    What this laptop knows of these runs is brought up to date.
    """
    request = StatusRequest(nonce=new_nonce(), root=session.host.root, run_id=run_id, prefix=prefix)
    answer = require_status(session.ask("status", request, StatusFrame, ANSWER_S).answer, run_id)
    for state, spec in zip(answer.states, answer.specs, strict=True):
        _keep_state(state, session, store, spec)
    return answer


def cancel(session: HostSession, run_id: str, grace_s: float, store: Store) -> CancelAnswer:
    """End a run and everything it started: TERM, grace, KILL. The answer names what could not be killed."""
    answer = session.ask(
        "cancel",
        CancelRequest(nonce=new_nonce(), root=session.host.root, run_id=run_id, grace_s=grace_s),
        CancelFrame,
        ANSWER_S + grace_s,
    ).answer
    _keep_state(require_state(answer.state, run_id), session, store)
    return answer


def _keep_state(state: RunState, session: HostSession, store: Store, spec: RunSpec | None = None) -> None:
    """Bring what this laptop knows of a run up to date, if it is this host's run (and of this spec)."""
    if not store.run_dir(state.run_id).path.is_dir():
        return
    with contextlib.suppress(StoreError):  # a broken record here is no reason not to say what the host says
        known = store.load(state.run_id)
        is_here = session.name == known.host.name or session.destination == known.host.destination
        is_same = spec is None or spec == known.spec
        if is_here and is_same and known.state != state:
            store.update(dataclasses.replace(known, state=state, state_seen_unix_s=time.time()))


def _launch_and_follow(
    order: Order, asked: RunRecord, session: HostSession, store: Store, tell: Tell, values: dict[str, str]
) -> RunRecord:
    """Begin the run here, launch it there, follow it. What certainly was not launched leaves nothing behind."""
    is_known = store.run_dir(asked.run_id).path.is_dir()
    record = again(store.load(asked.run_id), asked) if is_known else asked
    receiver, early = Receiver(store.begin(record)), order.until_running
    run = Going(record=record, session=session, store=store, receiver=receiver, tell=tell, until_running=early)
    launch = LaunchRequest(
        nonce=new_nonce(),
        root=session.host.root,
        spec=record.spec,
        secrets={name: values[name] for name in record.spec.secret_names},
        follow=not order.detach,
        until_running=early,
    )
    try:
        record = finish(run, launch=launch, wait=not order.detach, bring_home=not order.detach)
        return until_admitted(run, record) if order.detach and order.waiting is not None else record
    except BaseException as error:
        is_refusal = isinstance(error, HostNotReadyError | ClaimedError | NotRunError | PythonMissingError)
        if not is_known and not run.receiver.launched and (is_refusal or not run.receiver.asked):
            store.remove(record.run_id)
        if isinstance(error, ClaimedError) and not isinstance(error, SweepGoesOnError):
            error.hint = f"take another --run-id, or {run.how_to_attach}"
        raise


def python_for(order: Order, session: HostSession, store: Store, tell: Tell, *, trust: bool) -> str:
    """The interpreter for the job: remembered from the last run on this host, or looked for now."""
    job = at_host(order.planned, session.name, session.host).job
    remembered = (store.host_note(_host_key(session)) or {}).get(_note_key(job)) if trust else None
    if isinstance(remembered, str):
        session.use(remembered)
        tell(Note(name="python", text=f"{remembered} (as on the last run here; --find-python looks again)"))
        return remembered
    packages = _needed(job)
    return session.choose_python(packages) if packages else session.installed().python


def _needed(job: Job) -> tuple[str, ...]:
    """What the worker's Python must have; nothing where SGLang runs elsewhere or is up already.

    A sweep's units run in the Python of the sweep.
    """
    if isinstance(job, SweepJob):
        return _needed(job_from_json(job.base_json))
    if isinstance(job, StandaloneJob):
        return DRAFTER_PACKAGES
    if isinstance(job, CaptureJob):  # the worker compares tensors, and runs the server where no other Python is named
        elsewhere = job.exec_prefix or job.server_python or job.attach_url
        return DRAFTER_PACKAGES if elsewhere else (*DRAFTER_PACKAGES, *SERVER_PACKAGES)
    here = isinstance(job, BenchJob) and not (job.exec_prefix or job.server_python or job.attach_url)
    return SERVER_PACKAGES if here else ()


def _note_key(job: Job) -> str:
    """Under which an interpreter is remembered: one that only loads a server need not be able to run it."""
    if isinstance(job, SweepJob):
        return _note_key(job_from_json(job.base_json))
    return job.kind if _needed(job) or not isinstance(job, BenchJob) else f"{job.kind} elsewhere"


def _remember(record: RunRecord, session: HostSession, store: Store) -> None:
    """Which interpreter ran which kind of job; forgotten when the machine turned out to lack something."""
    note = dict(store.host_note(_host_key(session)) or {})
    failure, key = record.state.failure if record.state else None, _note_key(job_from_json(record.spec.job_json))
    note[key] = None if failure is not None and failure.kind == "machine" else record.spec.python
    store.note_host(_host_key(session), note)


def _host_key(session: HostSession) -> str:
    return f"{session.destination} {session.host.root} {session.host.python or ''}"


def asked_of_host(session: HostSession, run_id: str, store: Store) -> RunRecord:
    """The record of a run that another laptop launched, or that was forgotten here. Raises NotFoundError."""
    answer = status(session, run_id, store)
    if not answer.specs:
        raise HostNotReadyError(f"the host cannot read its run: {'; '.join(answer.unreadable)}")
    host = RunHost(name=session.name, destination=session.destination, root=session.host.root)
    return RunRecord(host=host, spec=answer.specs[0])
