"""The GPUs of a diagnosis: leased once, for all of its stages, so that nobody else gets them in between.

The lease is a run of its own on the host, `<diagnosis>.hold`, which waits for the GPUs and starts the stages on them.
It ends with the diagnosis, with its last stage where the diagnosis was broken off, and by itself when nobody comes.
"""

import dataclasses
from collections.abc import Callable
from types import TracebackType

from orchestrator import pipeline
from orchestrator.diagnosing.attempts import attempt_id, attempts
from orchestrator.diagnosing.budget import Budget
from orchestrator.errors import DetachedError, Eagle3Error, HostError, JobCancelledError, LeaseOverError, NotFoundError
from orchestrator.following import ANSWER_S, Going, Tell, finish
from orchestrator.jobfile import PlannedJob
from orchestrator.order import Order
from orchestrator.outcome import error_of
from orchestrator.records import RunRecord
from orchestrator.remote.follow import Receiver
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import new_nonce
from orchestrator.store import Store
from orchestrator.updates import Note
from remote_payload.schema import RunSpec, RunState
from remote_payload.schema.frames import HoldFrame
from remote_payload.schema.hold import HoldJob, HoldRequest
from remote_payload.schema.waiting import Waiting

STAGE = "hold"
CANCEL_S = 5.0
MOST_TRIES = 3
"""Leases that may be over under our hands before a stage is given up."""


def waited_before(diagnosis_id: str, store: Store) -> Waiting | None:
    """What the last lease of a diagnosis waited for; None = it had none. Raises StoreError."""
    holds = attempts(store, f"{diagnosis_id}.{STAGE}")
    return holds[-1].spec.waiting if holds else None


class Lease:
    """Where the stages of one diagnosis run. As a context it gives back, at the end, what was leased."""

    def __init__(
        self,
        diagnosis_id: str,
        waiting: Waiting | None,
        budget: Budget,
        session: HostSession,
        store: Store,
        tell: Tell,
    ) -> None:
        """`waiting` with `gpus` is waited for once; anything else, and all on a host with Slurm, by every stage."""
        self.budget, self.session, self.store, self.tell = budget, session, store, tell
        self.problem: Eagle3Error | None = None
        """Why no GPUs were to be had."""
        self._diagnosis_id, self._waiting = diagnosis_id, waiting
        self._hold: str | None = None
        wants = waiting is not None and waiting.gpus > 0
        self._is_one = wants and session.host.scheduler is None
        if wants and not self._is_one:
            words = f"on {session.name} Slurm hands out the GPUs: every stage is a job of its own and waits by itself"
            tell(Note(name="lease", text=words))

    def __enter__(self) -> "Lease":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        hold = self._hold
        try:
            if not isinstance(error, HostError):  # a host that is away cannot be told
                self.end()
        except Eagle3Error:
            if error is None:
                self.tell(Note(name="lease", text=f"{hold} could not be told to end; it ends when it idles"))

    def run(self, order: Order) -> RunRecord:
        """Launch a stage on the leased GPUs, which are leased now where they are not. Raises as `pipeline.run`.

        JobError and HostNotReadyError also where there are no GPUs to be had.
        """
        if not self._is_one:
            return pipeline.run(dataclasses.replace(order, waiting=self._waiting), self.session, self.store, self.tell)
        tries = 0
        while True:
            hold = self._held()
            try:
                return pipeline.run(dataclasses.replace(order, within=hold), self.session, self.store, self.tell)
            except LeaseOverError:
                tries += 1
                self._is_over(hold)
                if tries >= MOST_TRIES:
                    raise

    def go_on(self, order: Order, known: RunSpec) -> RunRecord:
        """Follow a stage that was launched before, as it was launched. Raises as `pipeline.run`.

        LeaseOverError where it never began and its lease is over.
        """
        if known.within is not None and self._hold is None and self._fits_by_id(known.within):
            state = self._told(known.within, goes_on=True)
            self._hold = known.within if state is not None and state.phase == "running" else None
        asked = dataclasses.replace(
            order, run_id=known.run_id, deadline_s=known.deadline_s, within=known.within, waiting=known.waiting
        )
        return pipeline.run(asked, self.session, self.store, self.tell)

    def end(self) -> None:
        """No more stages come: it ends now, or with the stage that goes on. Raises as `HostSession.ask`."""
        hold, self._hold = self._hold, None
        if hold is not None:
            self._let_go(hold)

    def _held(self) -> str:
        """The id of a hold that has its GPUs."""
        if self.problem is not None:
            raise self.problem
        if self._hold is None:
            earlier = attempts(self.store, f"{self._diagnosis_id}.{STAGE}")
            with self.budget.unspent():
                record = self._taken_over(earlier[-1]) if earlier else None
                record = record or self._made(len(earlier) + 1)
            self._hold = record.run_id
        return self._hold

    def _taken_over(self, earlier: RunRecord) -> RunRecord | None:
        """The lease of an earlier command, where it goes on and is of as many GPUs."""
        spec = earlier.spec
        if not self._fits(spec):
            self._let_go(spec.run_id)
            return None
        state = self._told(spec.run_id, goes_on=True)
        if state is None or state.is_terminal:
            self._bring_home(spec.run_id, state)
            return None
        self.tell(Note(name="lease", text=f"{spec.run_id} is taken over"))
        self._hold = spec.run_id
        receiver = Receiver(self.store.begin(earlier))
        run = Going(
            record=earlier,
            session=self.session,
            store=self.store,
            receiver=receiver,
            tell=self.tell,
            until_running=True,
        )
        record = self._waited_for(lambda: finish(run, launch=None, wait=True))
        return record if record.phase == "running" else None

    def _fits(self, spec: RunSpec) -> bool:
        """Whether a hold is of as many GPUs, and of this version of the tool."""
        is_same = spec.waiting is not None and self._waiting is not None and spec.waiting.gpus == self._waiting.gpus
        return is_same and spec.payload_sha256 == self.session.payload_sha256

    def _fits_by_id(self, hold: str) -> bool:
        """The same of one that is known by its id; where this command leases nothing it is only there to be ended."""
        known = (one for one in attempts(self.store, f"{self._diagnosis_id}.{STAGE}") if one.run_id == hold)
        return any(not self._is_one or self._fits(one.spec) for one in known)

    def _made(self, number: int) -> RunRecord:
        self._hold = attempt_id(f"{self._diagnosis_id}.{STAGE}", number)
        planned = PlannedJob(job=HoldJob(), settings=())
        order = Order(planned=planned, run_id=self._hold, waiting=self._waiting, until_running=True)
        record = self._waited_for(lambda: pipeline.run(order, self.session, self.store, self.tell))
        self.store.label(record.run_id, tags=(f"+{self._diagnosis_id}",))
        error = None if record.state is None else error_of(record.state, job_kind="hold", host=self.session.name)
        if error is not None:
            self.problem = error
            raise error
        return record

    def _waited_for(self, wait: Callable[[], RunRecord]) -> RunRecord:
        """Who does not wait any longer gives up the place in the queue, at the end of this context."""
        try:
            return wait()
        except DetachedError:
            raise DetachedError(
                "stopped waiting for GPUs: the place in the queue is given up", hint="the same command again waits anew"
            ) from None

    def _is_over(self, hold: str) -> None:
        """A lease that ended under our hands. Raises JobCancelledError where somebody cancelled it."""
        self._hold = None
        state = self._told(hold, goes_on=True)
        if state is not None and state.phase == "cancelled":
            self.problem = JobCancelledError(f"run {hold}: somebody cancelled the lease of this diagnosis")
            raise self.problem
        ended = "gone" if state is None else state.phase
        self.tell(Note(name="lease", text=f"{hold} is over ({ended}); the GPUs are asked for again"))

    def _let_go(self, hold: str) -> None:
        """No stage comes to it any more; one that still waits for its GPUs leaves the queue."""
        state = self._told(hold, goes_on=False)
        if state is not None and state.phase in ("queued", "starting"):
            pipeline.cancel(self.session, hold, CANCEL_S, self.store)
        else:
            self._bring_home(hold, state)

    def _bring_home(self, hold: str, state: RunState | None) -> None:
        """So that this laptop knows its end, and its host may clean it up."""
        is_over = state is not None and state.is_terminal
        if is_over and not pipeline.is_home(self.store.load_exact(hold), self.store):
            pipeline.attach(self.session, hold, self.store, lambda _: None)

    def _told(self, hold: str, *, goes_on: bool) -> RunState | None:
        """Tell a hold whether stages will come; its state, None = the host knows none."""
        request = HoldRequest(nonce=new_nonce(), root=self.session.host.root, run_id=hold, goes_on=goes_on)
        try:
            return self.session.ask("hold", request, HoldFrame, ANSWER_S).facts.state
        except NotFoundError:
            return None
