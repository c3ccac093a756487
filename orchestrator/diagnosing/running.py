"""One stage of a diagnosis: taken as this laptop has it, gone on with, run anew where it was cut short, or launched."""

import dataclasses

from orchestrator import pipeline
from orchestrator.diagnosing.attempts import attempt_id, attempts, is_cut_short
from orchestrator.diagnosing.lease import Lease
from orchestrator.errors import LeaseOverError, NotFoundError
from orchestrator.order import Order, at_host
from orchestrator.outcome import cause_of
from orchestrator.records import RunRecord
from orchestrator.updates import Note
from remote_payload.schema import to_json


def run_or_take(order: Order, lease: Lease, *, again: bool) -> RunRecord:
    """The stage's last try as this laptop has it whole, or gone on with, under the deadline it was launched with.

    A try that was cut short, also while nobody looked, is followed by another one; with `again` so is one that failed.
    Raises what `pipeline.run` does.
    """
    tries = attempts(lease.store, order.run_id)
    if not tries:
        return lease.run(order)
    last = tries[-1]
    following = dataclasses.replace(order, run_id=attempt_id(order.run_id, len(tries) + 1))
    if not _asked_the_same(last, order, lease):
        if is_given_up(last, lease, again=again):  # what it was asked then, nobody asks any more
            return lease.run(following)
        return lease.go_on(order, last.spec)  # refused: the id is another job's
    if not pipeline.is_home(last, lease.store):
        was_over = _is_over(last, lease)
        try:
            last = lease.go_on(order, last.spec)
        except LeaseOverError:  # it never began
            return lease.run(following)
        if not was_over:
            return last
    if not is_given_up(last, lease, again=again):
        return last
    why = cause_of(last.state) if last.state is not None else None
    lease.tell(Note(name="again", text=f"run {last.run_id} came to nothing ({why}): run anew as {following.run_id}"))
    return lease.run(following)


def standing(order: Order, lease: Lease, *, again: bool) -> RunRecord | None:
    """The stage's last try, where this laptop has it whole and nothing would be run for it; no host is asked."""
    tries = attempts(lease.store, order.run_id)
    if not tries or not _asked_the_same(tries[-1], order, lease) or not pipeline.is_home(tries[-1], lease.store):
        return None
    return None if is_given_up(tries[-1], lease, again=again) else tries[-1]


def is_given_up(known: RunRecord, lease: Lease, *, again: bool) -> bool:
    """Whether a try that is over came to nothing and another one follows: it was cut short, or failed with `again`."""
    is_over = known.state is not None and known.state.is_terminal
    came_to_nothing = is_over and known.phase != "succeeded"
    return came_to_nothing and (again or is_cut_short(known, lease.session.host.deadline_s))


def _is_over(known: RunRecord, lease: Lease) -> bool:
    """Whether its host says that it has ended already."""
    try:
        answer = pipeline.status(lease.session, known.run_id, lease.store)
    except NotFoundError:  # it never reached the host
        return False
    return any(state.is_terminal for state in answer.states)


def _asked_the_same(known: RunRecord, order: Order, lease: Lease) -> bool:
    """Whether it was asked to do just this, on this host."""
    session = lease.session
    same = known.spec.job_json == to_json(at_host(order.planned, session.name, session.host).job)
    return same and known.host.name == session.name
