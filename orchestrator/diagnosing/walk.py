"""From stage to stage: launch or take over, judge, and stop where the cause is certain.

Every stage is an ordinary run with the diagnosis's id in its own: the same command again goes on where it was broken
off, and what is home costs nothing.
"""

from dataclasses import dataclass

from orchestrator.config import Config
from orchestrator.diagnosing.addressing import addressed
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.attempts import attempts, is_cut_short
from orchestrator.diagnosing.budget import LEAST_S
from orchestrator.diagnosing.concluding import concluded
from orchestrator.diagnosing.gathering import known_of, take
from orchestrator.diagnosing.lease import Lease
from orchestrator.diagnosing.linting import look
from orchestrator.diagnosing.possible import require_possible
from orchestrator.diagnosing.results import Results, Skipped, failure_of
from orchestrator.diagnosing.running import run_or_take, standing
from orchestrator.diagnosing.same import require_same
from orchestrator.diagnosing.served_names import with_served_names
from orchestrator.diagnosing.stages import STAGES, Stage, is_attached
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.decision import Decision
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.errors import HostNotReadyError, JobError
from orchestrator.following import Tell
from orchestrator.order import Order
from orchestrator.records import RunRecord
from orchestrator.report.words import seconds
from orchestrator.store.diagnoses import keep_run
from orchestrator.updates import Note

OUTSIDE = ("killed", "cancelled", "lost")
"""Ends that say nothing of the pair, nor of a budget."""
USED_UP = "the budget of "
"""How a reason begins to say that there was no time for a stage."""
CERTAIN = "the cause is certain without it (--deep runs it all the same)"
"""Why a stage was spared."""


@dataclass(frozen=True, kw_only=True)
class Diagnosed:
    """A diagnosis, as far as it came."""

    asked: Asked
    known: Known
    decision: Decision
    results: Results


def diagnose(asked: Asked, config: Config, lease: Lease) -> Diagnosed:
    """Run the stages, on the GPUs of one lease and within its budget. Raises what `pipeline.run` does.

    A stage that fails, or that this host cannot run, is told, and the next one goes on. Raises ClaimedError before
    anything is written where a stage that stands was asked something else, UsageError before any stage where states are
    named that these models cannot have.
    """
    session, store, tell = lease.session, lease.store, lease.tell
    asked = with_served_names(asked, config, lease)
    require_same(asked, config, lease)
    looked = look(asked, config, session, store, tell)
    results = looked.results
    require_possible(asked, results.facts)
    known = known_of(asked, config, results, store)
    decision = decide(known)
    looked.keep(store)  # not before: what is refused leaves the diagnosis as it was
    for stage in STAGES:
        results.trained = known.trained
        record = _record(stage, asked, config, decision, results, lease)
        if isinstance(record, str):
            _leave_out(stage.name, record, results, tell)
            continue
        take(stage.name, record, store, asked.diagnosis_id, results)
        keep_run(store.home, asked.diagnosis_id, record.run_id)
        error = failure_of(record)
        if error is not None:
            tell(Note(name=stage.name, text=f"{record.phase}, and the next stage goes on: {error.message}"))
        known = known_of(asked, config, results, store)
        decision = decide(known)
        tell(Note(name=stage.name, text=decision.headline))
    decision = addressed(concluded(decision, results), asked, config, session.name)
    return Diagnosed(asked=asked, known=known, decision=decision, results=results)


def _record(
    stage: Stage, asked: Asked, config: Config, decision: Decision, results: Results, lease: Lease
) -> RunRecord | str:
    """The stage's run, or why there is none. What is home costs nothing: it is taken also where none would be run."""
    left_s = lease.budget.left_s
    reason = cut_short(results, lease.session.host.deadline_s)
    reason = reason or reason_to_skip(stage, asked, decision, results, left_s)
    if reason is not None and not attempts(lease.store, asked.run_id(stage.name)):
        return reason
    planned = stage.plan(asked, config, results)
    if isinstance(planned, str):
        return planned
    order = Order(planned=planned, run_id=asked.run_id(stage.name), deadline_s=left_s)
    if reason is not None:
        return standing(order, lease, again=asked.again) or reason
    cost = stage.cost_attached if is_attached(asked, config) else stage.cost
    lease.tell(Note(name=stage.name, text=f"{stage.tells} ({cost})"))
    try:
        return run_or_take(order, lease, again=asked.again)
    except (HostNotReadyError, JobError) as lacking:  # e.g. no SGLang where the drafter was tested, no free GPUs
        return lacking.message


def cut_short(results: Results, deadline_s: float | None) -> str | None:
    """Why no dearer stage is run: a cheaper one was ended from outside, and may tell all. None = none was."""
    ended = [name for name, run in results.records.items() if run.phase in OUTSIDE and is_cut_short(run, deadline_s)]
    return f"{ended[0]} was cut short, and is cheaper: the same command runs that anew first" if ended else None


def _leave_out(stage: str, reason: str, results: Results, tell: Tell) -> None:
    results.skipped.append(Skipped(stage=stage, reason=reason))
    tell(Note(name=stage, text=f"left out: {reason}"))


def reason_to_skip(
    stage: Stage, asked: Asked, decision: Decision, results: Results, left_s: float | None
) -> str | None:
    """Why a stage need not, or cannot, be run now; None = run it. `left_s`: of the budget."""
    # Rows may show that it is mis-fed and not tell which layers are right: the trainer's word beside a capture does.
    fix = decision.fix
    mends = fix is not None and bool(fix.config or fix.by_hand)
    lacks_fix = "wiring" in decision.causes and not mends and asked.trained is not None
    is_wanted = asked.deep or (lacks_fix and stage.name == "capture")
    if results.records and decision.certain and not is_wanted:
        return CERTAIN
    if left_s is not None and left_s < LEAST_S:
        return f"{USED_UP}{seconds(asked.budget_s)} is used up: the same command with a longer --budget goes on"
    return None
