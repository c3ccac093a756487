"""One stage of a diagnosis: taken as this laptop has it, gone on with, run anew where it was cut short, or launched."""

import dataclasses
import json

from orchestrator import pipeline
from orchestrator.diagnosing.attempts import attempt_id, attempts, is_cut_short, newest_asked
from orchestrator.diagnosing.lease import Lease
from orchestrator.errors import ClaimedError, LeaseOverError, NotFoundError
from orchestrator.jobfile import PlannedJob
from orchestrator.order import Order, at_host
from orchestrator.outcome import cause_of
from orchestrator.records import RunRecord
from orchestrator.updates import Note
from remote_payload.schema import Setting, StandaloneJob, job_from_json


def run_or_take(order: Order, lease: Lease, *, again: bool) -> RunRecord:
    """The stage's newest try that was asked just this, as this laptop has it whole, or gone on with.

    A try that was cut short, also while nobody looked, is followed by another one, which takes over what it finished
    where its job can; with `again` so is one that failed. So is one that was asked otherwise. Raises what
    `pipeline.run` does, ClaimedError where one that was asked otherwise still goes on.
    """
    tries = attempts(lease.store, order.run_id)
    if not tries:
        return lease.run(order)
    last = _asked_so(tries, order, lease)
    following = dataclasses.replace(order, run_id=attempt_id(order.run_id, len(tries) + 1))
    if last is None:
        _require_over(tries[-1], lease)
        return lease.run(following)
    following = dataclasses.replace(following, planned=taking_over(following.planned, last))
    if not pipeline.is_home(last, lease.store):
        was_over = _is_over(last, lease)
        try:
            last = lease.go_on(dataclasses.replace(order, planned=as_launched(last)), last.spec)
        except LeaseOverError:  # it never began
            return lease.run(following)
        if not was_over:
            return last
    if not is_given_up(last, lease, again=again):
        return last
    why = cause_of(last.state) if last.state is not None else None
    text = f"run {last.run_id} came to nothing ({why}): run anew as {following.run_id}, {_kept(last, following)}"
    lease.tell(Note(name="again", text=text))
    return lease.run(following)


def standing(order: Order, lease: Lease, *, again: bool) -> RunRecord | None:
    """The stage's newest try that was asked just this, where this laptop has it whole and nothing would be run for it.

    No host is asked.
    """
    found = _asked_so(attempts(lease.store, order.run_id), order, lease)
    if found is None or not pipeline.is_home(found, lease.store):
        return None
    return None if is_given_up(found, lease, again=again) else found


def is_given_up(known: RunRecord, lease: Lease, *, again: bool) -> bool:
    """Whether a try that is over came to nothing and another one follows: it was cut short, or failed with `again`."""
    is_over = known.state is not None and known.state.is_terminal
    came_to_nothing = is_over and known.phase != "succeeded"
    return came_to_nothing and (again or is_cut_short(known, lease.session.host.deadline_s))


def taking_over(planned: PlannedJob, last: RunRecord) -> PlannedJob:
    """The same with what an earlier try of it finished, where its job keeps that; the plan itself where it does not.

    A try that never began has nothing, but may itself have been told of one that has.
    """
    if not isinstance(planned.job, StandaloneJob):
        return planned
    began = last.state is None or last.state.started_unix_s is not None
    before = job_from_json(last.spec.job_json)
    resume = last.run_id if began or not isinstance(before, StandaloneJob) else before.resume
    if resume is None:
        return planned
    told = {"resume": json.dumps(resume), "or_anew": "true"}
    kept = tuple(setting for setting in planned.settings if setting.key not in told)
    added = tuple(Setting(key=key, value=value, source=f"run {last.run_id}") for key, value in told.items())
    job = dataclasses.replace(planned.job, resume=resume, or_anew=True)
    return PlannedJob(job=job, settings=(*kept, *added))


def _kept(last: RunRecord, following: Order) -> str:
    """What of a try's work the next one need not do, in words."""
    if last.state is not None and last.state.started_unix_s is None:
        return "as it never began"
    if isinstance(following.planned.job, StandaloneJob):
        return "with every row that it finished"
    return "from its beginning: a server's start and half of its requests are no measurement"


def as_launched(known: RunRecord) -> PlannedJob:
    """What it was asked to do, word for word."""
    return PlannedJob(job=job_from_json(known.spec.job_json), settings=known.spec.settings)


def _asked_so(tries: list[RunRecord], order: Order, lease: Lease) -> RunRecord | None:
    session = lease.session
    return newest_asked(tries, at_host(order.planned, session.name, session.host).job, session.name)


def _require_over(known: RunRecord, lease: Lease) -> None:
    """Raise ClaimedError where a try that was asked otherwise still goes on: two would share its GPUs."""
    if (known.state is not None and known.state.is_terminal) or _is_over(known, lease):
        return
    host = lease.session.name
    raise ClaimedError(
        f"run {known.run_id} still goes on, as it was asked before",
        hint=f"`eagle3-remote attach {known.run_id} --host {host}` waits for it, `eagle3-remote cancel {known.run_id} "
        f"--host {host}` ends it; then the same command asks it as it is meant now",
    )


def _is_over(known: RunRecord, lease: Lease) -> bool:
    """Whether its host says that it has ended already."""
    try:
        answer = pipeline.status(lease.session, known.run_id, lease.store)
    except NotFoundError:  # it never reached the host
        return False
    return any(state.is_terminal for state in answer.states)
