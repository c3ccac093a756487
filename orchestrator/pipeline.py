"""The main job: load -> connect -> preflight -> ship -> launch -> follow -> collect -> store, about a line each."""

import dataclasses
import getpass
import os
import platform
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from orchestrator.config import Config, HostConfig
from orchestrator.errors import (
    AuthenticationError,
    ClaimedError,
    ConfigError,
    DetachedError,
    HostError,
    HostKeyError,
    HostNotReadyError,
    LinkLostError,
)
from orchestrator.jobfile import PlannedJob
from orchestrator.records import RunHost, RunRecord
from orchestrator.remote.collect import collect
from orchestrator.remote.follow import Receiver
from orchestrator.remote.payload import build_payload
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import PythonMissingError, new_nonce
from orchestrator.store import Store
from orchestrator.updates import Note, Reconnecting, Update
from remote_payload.schema import (
    CancelAnswer,
    CancelFrame,
    CancelRequest,
    FollowRequest,
    Frame,
    LaunchRequest,
    RunSpec,
    StatusAnswer,
    StatusFrame,
    StatusRequest,
    to_json,
)

Tell = Callable[[Update], None]

PULSE_S = 2.0
SILENCE_S = 12.0  # six pulses: a host that is busy importing torch still answers; a dead link is found in time
ANSWER_S = 60.0
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Order:
    """What the user asked for."""

    planned: PlannedJob
    run_id: str
    deadline_s: float | None = None
    detach: bool = False
    fresh_python: bool = False
    """Look at the host's interpreters again instead of trusting the one that was found before."""


def new_run_id(kind: str, now: time.struct_time) -> str:
    """e.g. `standalone-20261129-2145-x7k2qa`: sorts by time, and two laptops never make the same one."""
    return f"{kind}-{time.strftime('%Y%m%d-%H%M', now)}-{secrets.token_hex(3)}"


def session(host_name: str, settings: Config, tell: Tell, *, accept_new: bool) -> HostSession:
    """A session on a host of eagle3.toml, an ssh alias or `user@address[:port]`; connects on first use."""
    return HostSession(
        host_name,
        settings.host(host_name),
        build_payload(),
        tell,
        accept_new=accept_new,
        unknown_hint=None if host_name in settings.hosts else settings.known_hosts_hint(host_name),
    )


def run(order: Order, session: HostSession, store: Store, tell: Tell) -> RunRecord:
    """Run a job on a host and bring its result home. Returns the stored record, whatever the job's outcome was.

    Raises HostError and its subclasses before the launch, HostNotReadyError, ClaimedError; after the launch
    LinkLostError when the host stayed unreachable, DetachedError at Ctrl-C: the job goes on in both cases.
    """
    values = _secret_values(session.host)
    for trust in (not order.fresh_python, False):
        python = _python(order, session, store, trust=trust)
        record = _record(order, session, python)
        receiver = Receiver(store.begin(record))
        going = _Run(record=record, session=session, store=store, receiver=receiver, tell=tell)
        try:
            return _launch_and_follow(order, going, values)
        except PythonMissingError:
            store.note_host(_host_key(session), {})
    raise HostNotReadyError(
        f"host `{session.name}`: the interpreter that was found a moment ago is gone: {python}",
        hint="`eagle3-remote hosts check` shows what is there now",
    )


def attach(session: HostSession, run_id: str, store: Store, tell: Tell, *, wait: bool = True) -> RunRecord:
    """Follow a run that was launched before, by any laptop, and bring its result home.

    `wait=False` takes what is there now. Raises NotFoundError when the host knows no such run.
    """
    record = _known(session, run_id, store)
    receiver = Receiver(store.begin(record))
    run = _Run(record=record, session=session, store=store, receiver=receiver, tell=tell)
    return _finish(run, launch=None, wait=wait)


def status(session: HostSession, run_id: str | None) -> StatusAnswer:
    """The state of one run on the host, or of all."""
    return session.ask(
        "status",
        StatusRequest(nonce=new_nonce(), root=session.host.root, run_id=run_id),
        StatusFrame,
        ANSWER_S,
    ).answer


def cancel(session: HostSession, run_id: str, grace_s: float, store: Store) -> CancelAnswer:
    """End a run and everything it started: TERM, grace, KILL. The answer names what could not be killed."""
    answer = session.ask(
        "cancel",
        CancelRequest(nonce=new_nonce(), root=session.host.root, run_id=run_id, grace_s=grace_s),
        CancelFrame,
        ANSWER_S + grace_s,
    ).answer
    if store.run_dir(run_id).path.is_dir():
        store.update(dataclasses.replace(store.load(run_id), state=answer.state, state_seen_unix_s=time.time()))
    return answer


@dataclass(frozen=True, kw_only=True)
class _Run:
    """One run on its way: what every step needs."""

    record: RunRecord
    session: HostSession
    store: Store
    receiver: Receiver
    tell: Tell


def _launch_and_follow(order: Order, run: _Run, values: dict[str, str]) -> RunRecord:
    launch = LaunchRequest(
        nonce=new_nonce(), root=run.session.host.root, spec=run.record.spec, secrets=values, follow=not order.detach
    )
    try:
        return _finish(run, launch=launch, wait=not order.detach)
    except (HostNotReadyError, ClaimedError, PythonMissingError):
        if not run.receiver.launched:  # the host refused: nothing runs, so nothing is kept
            run.store.remove(run.record.run_id)
        raise


def _finish(run: _Run, *, launch: LaunchRequest | None, wait: bool) -> RunRecord:
    """Launch (or follow), collect, store."""
    receiver, record = run.receiver, run.record
    try:
        _watch(run, launch=launch, wait=wait)
        if receiver.manifest is not None:
            size = collect(run.session.link(), run.session.host.root, receiver.manifest, receiver.run_dir)
            files = len(receiver.manifest.files)
            run.tell(Note(name="collected", text=f"{files} files, {size} bytes, hashes agree"))
    except KeyboardInterrupt:
        raise _detached(run) from None
    finally:
        if receiver.state is not None:
            record = dataclasses.replace(record, state=receiver.state, state_seen_unix_s=time.time())
            run.store.update(record)
    _remember(record, run.session, run.store)
    return record


def _watch(run: _Run, *, launch: LaunchRequest | None, wait: bool) -> None:
    """Follow until the run is over (or, without `wait`, until what is there now is here); reconnects and resumes.

    A launch whose answer was lost is simply made again: the run directory is the claim, so nothing starts twice.
    """
    broken_since: float | None = None
    wait_s, attempt = FIRST_WAIT_S, 0
    while True:
        try:
            for update in run.receiver.take(_frames(run, launch=launch, wait=wait)):
                broken_since, wait_s, attempt = None, FIRST_WAIT_S, 0
                run.tell(update)
            return
        except HostError as error:
            if isinstance(error, HostKeyError | AuthenticationError):
                raise
            run.session.drop()
            broken_since = broken_since if broken_since is not None else time.monotonic()
            if time.monotonic() - broken_since > run.session.host.reconnect_s:
                raise _gave_up(error, run) from None
            attempt += 1
            run.tell(Reconnecting(attempt=attempt, reason=error.message))
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)


def _frames(run: _Run, *, launch: LaunchRequest | None, wait: bool) -> Iterator[Frame]:
    session, receiver = run.session, run.receiver
    if launch is not None and not receiver.launched:
        return session.frames("launch", launch, SILENCE_S if launch.follow else ANSWER_S)
    request = FollowRequest(
        nonce=new_nonce(),
        root=session.host.root,
        run_id=run.record.run_id,
        cursor=receiver.cursor(),
        pulse_s=PULSE_S,
        wait=wait,
    )
    return session.frames("follow", request, SILENCE_S)


def _python(order: Order, session: HostSession, store: Store, *, trust: bool) -> str:
    """The interpreter for the job: remembered from the last run on this host, or looked for now."""
    kind = order.planned.job.kind
    remembered = (store.host_note(_host_key(session)) or {}).get(kind) if trust else None
    if isinstance(remembered, str):
        session.use(remembered)
        return remembered
    return session.choose_python() if kind == "standalone" else session.installed().python


def _remember(record: RunRecord, session: HostSession, store: Store) -> None:
    """Which interpreter ran which kind of job; forgotten when the machine turned out to lack something."""
    note = dict(store.host_note(_host_key(session)) or {})
    failure = record.state.failure if record.state else None
    note[record.job_kind] = None if failure is not None and failure.kind == "machine" else record.spec.python
    store.note_host(_host_key(session), note)


def _host_key(session: HostSession) -> str:
    return f"{session.destination} {session.host.root} {session.host.python or ''}"


def _record(order: Order, session: HostSession, python: str) -> RunRecord:
    spec = RunSpec(
        run_id=order.run_id,
        job_kind=order.planned.job.kind,
        job_json=to_json(order.planned.job),
        settings=order.planned.settings,
        python=python,
        payload_sha256=session.payload_sha256,
        environment=dict(session.host.environment),
        secret_names=tuple(session.host.secrets),
        deadline_s=order.deadline_s or session.host.deadline_s,
        launched_by=f"{getpass.getuser()}@{platform.node()}",
        created_unix_s=time.time(),
    )
    host = RunHost(name=session.name, destination=session.destination, root=session.host.root)
    return RunRecord(host=host, spec=spec)


def _known(session: HostSession, run_id: str, store: Store) -> RunRecord:
    if store.run_dir(run_id).path.is_dir():
        return store.load(run_id)
    (spec,) = status(session, run_id).specs
    host = RunHost(name=session.name, destination=session.destination, root=session.host.root)
    return RunRecord(host=host, spec=spec)


def _secret_values(host: HostConfig) -> dict[str, str]:
    missing = [name for name in host.secrets if name not in os.environ]
    if missing:
        raise ConfigError(
            f"the host's `secrets` name variables that are not set on this laptop: {', '.join(missing)}",
            hint="export them, or take them out of eagle3.toml",
        )
    return {name: os.environ[name] for name in host.secrets}


def _again(run: _Run) -> str:
    return f"attach with: eagle3-remote attach {run.record.run_id} --host {run.session.name}"


def _detached(run: _Run) -> DetachedError:
    said = "job goes on" if run.receiver.launched else "the launch may or may not have reached the host"
    return DetachedError(f"detached; {said}", hint=_again(run))


def _gave_up(error: HostError, run: _Run) -> LinkLostError:
    host = run.session
    return LinkLostError(
        f"host `{host.name}` stayed unreachable for {host.host.reconnect_s:.0f} s (the job may well go on): "
        f"{error.message}",
        hint=_again(run),
    )
