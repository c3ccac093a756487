"""What a speculative step of this very pair cost before: the newest benchmark of this laptop beside plain decoding."""

from orchestrator.config import Config
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.attempts import is_attempt
from orchestrator.diagnosis.decision.economics import NO_SPEED
from orchestrator.diagnosis.decision.planned import EarlierCost
from orchestrator.errors import InvalidRunError, StoreError
from orchestrator.report.bench_content import BenchReport
from orchestrator.review import review
from orchestrator.store import Store
from remote_payload.schema import BenchJob, job_from_json

SAME = ("model", "draft", "algorithm", "num_steps", "eagle_topk", "tp", "dp", "ep", "dtype", "quantization",
        "draft_quantization", "server_args", "concurrency", "request_rate")  # fmt: skip
"""Settings that r depends on."""
MOST_READ = 3
"""Benchmarks whose requests are read for it, the newest first."""


def earlier_cost(asked: Asked, config: Config, store: Store, host: str) -> EarlierCost | None:
    """None where no such benchmark has an interval of r. Raises JobFileError, StoreError."""
    job = asked.serve(config).job
    if not isinstance(job, BenchJob):
        return None
    runs = [
        run
        for run in store.list()
        if (run.job_kind, run.host, run.model, run.draft) == ("bench", host, job.model, job.draft)
        and run.has_result
        and not is_attempt(run.run_id, asked.run_id("serve"))
    ]
    runs.sort(key=lambda run: -(run.created_unix_s or 0.0))
    for run in runs[:MOST_READ]:
        record = store.load_exact(run.run_id)
        past = job_from_json(record.spec.job_json)
        if not isinstance(past, BenchJob) or any(getattr(past, name) != getattr(job, name) for name in SAME):
            continue
        try:
            report = review(store, record).bench
        except (InvalidRunError, StoreError):  # a broken run of another day keeps nobody from this diagnosis
            continue
        found = None if report is None else cost_in(run.run_id, report)
        if found is not None:
            return found
    return None


def cost_in(run_id: str, report: BenchReport) -> EarlierCost | None:
    """The step cost of its lowest load; None where its speed is not to be used, or r has no interval."""
    pairs, draft = report.figures.pairs, report.figures.draft
    if report.diagnosis.verdict in NO_SPEED or not pairs or draft.num_steps is None:
        return None
    pairing = min(pairs, key=lambda item: (item.spec.concurrency is None, item.spec.concurrency or 0)).pairing
    if pairing.refused is not None or pairing.suspicious or pairing.step_cost is None:
        return None
    if pairing.step_cost_low is None or pairing.step_cost_high is None:
        return None
    return EarlierCost(
        run_id=run_id,
        steps=draft.num_steps,
        ratio=pairing.step_cost,
        low=pairing.step_cost_low,
        high=pairing.step_cost_high,
    )
