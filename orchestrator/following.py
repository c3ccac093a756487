"""One run on its way: launched or found, followed over broken links to its end, collected, stored."""

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from orchestrator.errors import (
    AuthenticationError,
    DetachedError,
    HostError,
    HostKeyError,
    LinkLostError,
    OutputClosedError,
    ProtocolError,
    StoreError,
)
from orchestrator.records import RunRecord
from orchestrator.remote.collect import collect, missing
from orchestrator.remote.follow import Receiver
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import new_nonce
from orchestrator.store import Store
from orchestrator.store.homecoming import note_no_result
from orchestrator.updates import Note, Reconnecting, Update
from remote_payload.schema import FollowRequest, Frame, LaunchRequest

Tell = Callable[[Update], None]

PULSE_S = 2.0
SILENCE_S = 12.0  # six pulses: a host that is busy importing torch still answers; a dead link is found in time
ANSWER_S = 60.0
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
ADMITTED_S = 45.0
"""A host may ask its nvidia-smi five times, each for some seconds, before it knows whether there are free GPUs."""
FIRST_INLINE_BYTES = 2**20
INLINE_BYTES = 2**25
FILES_ONE_BY_ONE = 8  # a command on the host for each; more come as one stream, as far as INLINE_BYTES goes


@dataclass(frozen=True, kw_only=True)
class Going:
    """One run on its way: what every step needs."""

    record: RunRecord
    session: HostSession
    store: Store
    receiver: Receiver
    tell: Tell
    until_running: bool = False
    """Followed until its worker runs, and no further."""

    @property
    def how_to_attach(self) -> str:
        """The command that goes on with this run."""
        return f"attach with: eagle3-remote attach {self.record.run_id} --host {self.session.name}"


def finish(run: Going, *, launch: LaunchRequest | None, wait: bool, bring_home: bool = True) -> RunRecord:
    """Launch (or follow), collect, store; returns the record with the last state seen.

    `wait=False` takes what is there now; `bring_home=False` leaves the result where it is. Whatever ends this, a state
    that was seen is stored. Raises DetachedError at Ctrl-C or when nobody reads our output any more; ProtocolError when
    the host ends without saying how the run ended.
    """
    receiver, record = run.receiver, run.record
    try:
        _watch(run, launch=launch, wait=wait, bring_home=bring_home)
        _require_outcome(run, wait=wait, bring_home=bring_home)
        if receiver.has_none:
            note_no_result(receiver.run_dir)
    except (KeyboardInterrupt, OutputClosedError):
        if launch is not None and not receiver.asked:
            raise
        raise _detached(run) from None
    except StoreError as error:
        if launch is None or receiver.asked:
            error.hint = f"{error.hint or 'the job goes on'}; then {run.how_to_attach}"
        raise
    finally:
        if receiver.state is not None:
            record = dataclasses.replace(record, state=receiver.state, state_seen_unix_s=time.time())
            run.store.update(record)
    return record


def until_admitted(run: Going, record: RunRecord) -> RunRecord:
    """Of a run that waits for something: look until it waits, runs, or could not: what can never be fails at once."""
    until_s = time.monotonic() + ADMITTED_S
    while record.state is not None and record.state.phase == "starting" and time.monotonic() < until_s:
        time.sleep(FIRST_WAIT_S)
        record = finish(dataclasses.replace(run, record=record), launch=None, wait=False, bring_home=False)
    return record


class _Patience:
    """How long and how often a broken link is retried; every sign of progress starts anew."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self.restart()

    def restart(self) -> None:
        """Something arrived."""
        self._broken_since_s: float | None = None
        self._wait_s = FIRST_WAIT_S
        self.attempt = 0

    def is_over(self) -> bool:
        """Count another failure; whether it was one too many."""
        now_s = time.monotonic()
        self._broken_since_s = now_s if self._broken_since_s is None else self._broken_since_s
        self.attempt += 1
        return now_s - self._broken_since_s > self._limit_s

    def wait(self) -> None:
        """Sleep before the next try, longer each time."""
        time.sleep(self._wait_s)
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)


def _watch(run: Going, *, launch: LaunchRequest | None, wait: bool, bring_home: bool) -> None:
    """Follow until the run is over (or, without `wait`, until what is there now is here), collect; over broken links.

    A launch whose answer was lost is simply made again: the run directory is the claim, so nothing starts twice. A host
    that this command never reached is an error at once: there is nothing to come back to.
    """
    patience = _Patience(run.session.host.reconnect_s)
    while True:
        try:
            for update in run.receiver.take(_frames(run, launch=launch, wait=wait, bring_home=bring_home)):
                patience.restart()
                run.tell(update)
            if bring_home:
                _collect(run, patience)
            return
        except HostError as error:
            run.session.drop()
            if isinstance(error, HostKeyError | AuthenticationError) or not run.session.has_connected:
                raise
            if patience.is_over():
                raise _gave_up(error, run) from None
            run.tell(Reconnecting(attempt=patience.attempt, reason=error.message))
            patience.wait()


def _frames(run: Going, *, launch: LaunchRequest | None, wait: bool, bring_home: bool) -> Iterator[Frame]:
    session, receiver = run.session, run.receiver
    session.link()  # what fails up to here has launched nothing
    if launch is not None and not receiver.launched:
        receiver.asked = True
        # sbatch may keep the host waiting longer than a link may be silent.
        is_prompt = launch.follow and launch.spec.slurm is None
        return session.frames("launch", launch, SILENCE_S if is_prompt else ANSWER_S)
    request = _request(run, wait=wait, inline_limit_bytes=FIRST_INLINE_BYTES if bring_home else 0)
    return session.frames("follow", request, SILENCE_S)


def _request(run: Going, *, wait: bool, inline_limit_bytes: int) -> FollowRequest:
    """0 bytes inline: not even the manifest."""
    return FollowRequest(
        nonce=new_nonce(),
        root=run.session.host.root,
        run_id=run.record.run_id,
        cursor=run.receiver.cursor(),
        pulse_s=PULSE_S,
        wait=wait,
        until_running=run.until_running,
        collect=inline_limit_bytes > 0,
        inline_limit_bytes=inline_limit_bytes,
    )


def _collect(run: Going, patience: _Patience) -> None:
    manifest = run.receiver.manifest
    if manifest is None:
        return
    if len(missing(manifest, run.receiver.run_dir)) > FILES_ONE_BY_ONE:
        request = _request(run, wait=False, inline_limit_bytes=INLINE_BYTES)
        for update in run.receiver.take(run.session.frames("follow", request, SILENCE_S)):
            run.tell(update)
    size = collect(run.session.link(), run.session.host.root, manifest, run.receiver.run_dir, patience.restart)
    run.tell(Note(name="collected", text=f"{len(manifest.files)} files, {size} bytes, hashes agree"))


def _require_outcome(run: Going, *, wait: bool, bring_home: bool) -> None:
    """A follow that ended is only a success when the host said how the run ended, and sent its result."""
    state, name = run.receiver.state, run.record.run_id
    if state is None:
        raise ProtocolError(f"the host ended its answer without the state of run `{name}`", hint=run.how_to_attach)
    runs = run.until_running and state.phase == "running"
    if wait and not (state.is_terminal or runs):
        raise ProtocolError(
            f"the host stopped telling of run `{name}` before it was over, in phase: {state.phase}",
            hint=run.how_to_attach,
        )
    is_home = run.receiver.manifest is not None or run.receiver.run_dir.manifest.is_file()
    if bring_home and state.phase == "succeeded" and not is_home:
        raise ProtocolError(
            f"run `{name}` succeeded, and its manifest is gone from the host: there is no result to bring home",
            hint="somebody removed it there; launch the job again",
        )


def _detached(run: Going) -> DetachedError:
    is_going = run.receiver.launched or not run.receiver.asked
    said = "job goes on" if is_going else "the launch may or may not have reached the host"
    return DetachedError(f"detached; {said}", hint=run.how_to_attach)


def _gave_up(error: HostError, run: Going) -> LinkLostError:
    host = run.session
    return LinkLostError(
        f"host `{host.name}` stayed unreachable for {host.host.reconnect_s:.0f} s (the job may well go on): "
        f"{error.message}",
        hint=run.how_to_attach,
    )
