"""One run on its way: launched or found, followed over broken links to its end, collected, stored."""

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from orchestrator.errors import AuthenticationError, DetachedError, HostError, HostKeyError, LinkLostError
from orchestrator.records import RunRecord
from orchestrator.remote.collect import collect
from orchestrator.remote.follow import Receiver
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import new_nonce
from orchestrator.store import Store
from orchestrator.updates import Note, Reconnecting, Update
from remote_payload.schema import FollowRequest, Frame, LaunchRequest

Tell = Callable[[Update], None]

PULSE_S = 2.0
SILENCE_S = 12.0  # six pulses: a host that is busy importing torch still answers; a dead link is found in time
ANSWER_S = 60.0
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Going:
    """One run on its way: what every step needs."""

    record: RunRecord
    session: HostSession
    store: Store
    receiver: Receiver
    tell: Tell

    @property
    def how_to_attach(self) -> str:
        """The command that goes on with this run."""
        return f"attach with: eagle3-remote attach {self.record.run_id} --host {self.session.name}"


def finish(run: Going, *, launch: LaunchRequest | None, wait: bool) -> RunRecord:
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
    return record


def _watch(run: Going, *, launch: LaunchRequest | None, wait: bool) -> None:
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


def _frames(run: Going, *, launch: LaunchRequest | None, wait: bool) -> Iterator[Frame]:
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


def _detached(run: Going) -> DetachedError:
    said = "job goes on" if run.receiver.launched else "the launch may or may not have reached the host"
    return DetachedError(f"detached; {said}", hint=run.how_to_attach)


def _gave_up(error: HostError, run: Going) -> LinkLostError:
    host = run.session
    return LinkLostError(
        f"host `{host.name}` stayed unreachable for {host.host.reconnect_s:.0f} s (the job may well go on): "
        f"{error.message}",
        hint=run.how_to_attach,
    )
