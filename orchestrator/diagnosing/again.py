"""A diagnosis told again from what this laptop keeps of it: no host is asked, nothing is run."""

from orchestrator.compare.diff import compare_many
from orchestrator.config import Config
from orchestrator.diagnosing.addressing import addressed
from orchestrator.diagnosing.applying import COMPARING, FIXED, Applied
from orchestrator.diagnosing.attempts import attempts, newest_asked
from orchestrator.diagnosing.concluding import concluded
from orchestrator.diagnosing.gathering import known_of, take
from orchestrator.diagnosing.keeping import asked_of
from orchestrator.diagnosing.linting import results_of
from orchestrator.diagnosing.results import Skipped
from orchestrator.diagnosing.stages import STAGES
from orchestrator.diagnosing.walk import CERTAIN, Diagnosed
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.jobfile import PlannedJob
from orchestrator.operands import operand
from orchestrator.order import at_host
from orchestrator.records import RunRecord
from orchestrator.records.diagnosis import DiagnosisRecord
from orchestrator.store import Store
from orchestrator.store.diagnoses import load_diagnosis
from remote_payload.schema import BenchJob, job_from_json

NOT_RUN = "not run yet: the same command goes on with it"


def told_again(diagnosis_id: str, config: Config, store: Store) -> Diagnosed:
    """Judge what is home. Raises NotFoundError, StoreError, and InvalidRunError where a result is broken."""
    record = load_diagnosis(store.home, diagnosis_id)
    asked = asked_of(record)
    results = results_of(record, asked, config, store)
    missing = []
    for stage in STAGES:
        tries = attempts(store, asked.run_id(stage.name))
        run = next((known for known in tries if known.run_id in record.runs), None)
        if run is None and tries:
            results.trained = known_of(asked, config, results, store).trained
            run = _asked_so(tries, stage.plan(asked, config, results), record, config)
        if run is None:
            missing.append(stage.name)
        else:
            take(stage.name, run, store, diagnosis_id, results)
    known = known_of(asked, config, results, store)
    decision = decide(known)
    reason = CERTAIN if decision.certain else NOT_RUN
    results.skipped += [Skipped(stage=name, reason=reason) for name in missing]
    decision = addressed(concluded(decision, results), asked, config, record.host)
    return Diagnosed(asked=asked, known=known, decision=decision, results=results)


def applied_again(found: Diagnosed, store: Store) -> Applied | None:
    """Before and after the fix, where both were served; None where they were not."""
    tries = attempts(store, f"{found.asked.diagnosis_id}.{FIXED}.serve")
    before, after = found.results.records.get("serve"), tries[-1] if tries else None
    if before is None or after is None or found.decision.fix is None:
        return None
    job = job_from_json(after.spec.job_json)
    if not isinstance(job, BenchJob) or job.draft is None:
        return None
    sides = [operand(store, record.run_id) for record in (before, after) if record.phase == "succeeded"]
    compared = compare_many(sides, COMPARING) if len(sides) > 1 else ()
    return Applied(
        fix=found.decision.fix, folder=job.draft, existed=True, before=before, after=after, compared=compared
    )


def _asked_so(
    tries: list[RunRecord], planned: PlannedJob | str, record: DiagnosisRecord, config: Config
) -> RunRecord | None:
    """The try that was asked as the diagnosis was last; of a record that knows none of its runs, the last one."""
    found = None
    if not isinstance(planned, str):
        job = at_host(planned, record.host, config.host(record.host)).job
        found = newest_asked(tries, job, record.host)
    return found if found is not None or record.runs else tries[-1]
