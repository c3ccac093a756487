"""The main job: load -> connect -> preflight -> ship -> launch -> follow -> collect -> store, about a line each."""

import dataclasses
import time

from orchestrator.config import Config
from orchestrator.errors import ClaimedError, HostNotReadyError
from orchestrator.following import ANSWER_S, Going, Tell, finish
from orchestrator.order import Order, new_run_id, record_of, secret_values
from orchestrator.records import RunHost, RunRecord
from orchestrator.remote.follow import Receiver
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import PythonMissingError, new_nonce
from orchestrator.store import Store
from remote_payload.schema import (
    CancelAnswer,
    CancelFrame,
    CancelRequest,
    LaunchRequest,
    StatusAnswer,
    StatusFrame,
    StatusRequest,
)

__all__ = ["HostSession", "Order", "attach", "cancel", "new_run_id", "run", "session", "status"]


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
        python = _python(order, session, store, trust=trust)
        record = record_of(order, session, python)
        receiver = Receiver(store.begin(record))
        going = Going(record=record, session=session, store=store, receiver=receiver, tell=tell)
        try:
            done = _launch_and_follow(order, going, values)
            _remember(done, session, store)
            return done
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
    run = Going(record=record, session=session, store=store, receiver=receiver, tell=tell)
    return finish(run, launch=None, wait=wait)


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


def _launch_and_follow(order: Order, run: Going, values: dict[str, str]) -> RunRecord:
    launch = LaunchRequest(
        nonce=new_nonce(), root=run.session.host.root, spec=run.record.spec, secrets=values, follow=not order.detach
    )
    try:
        return finish(run, launch=launch, wait=not order.detach)
    except (HostNotReadyError, ClaimedError, PythonMissingError) as error:
        if not run.receiver.launched:  # the host refused: nothing runs, so nothing is kept
            run.store.remove(run.record.run_id)
        if isinstance(error, ClaimedError):
            error.hint = f"take another --run-id, or {run.how_to_attach}"
        raise


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


def _known(session: HostSession, run_id: str, store: Store) -> RunRecord:
    if store.run_dir(run_id).path.is_dir():
        return store.load(run_id)
    (spec,) = status(session, run_id).specs
    host = RunHost(name=session.name, destination=session.destination, root=session.host.root)
    return RunRecord(host=host, spec=spec)
