"""How long a sweep may take, from runs that this laptop has of the same host."""

import statistics
from dataclasses import dataclass

from orchestrator.errors import Eagle3Error
from orchestrator.store import Store
from orchestrator.sweep.standing import in_time
from remote_payload.schema import SchemaError, SweepJob, UnitJob, job_from_json, job_of_unit

MOST_RUNS = 40
"""Of the newest: what is older was measured on another state of the host."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Seconds, and how many runs stood behind them; None = there is no such run here."""

    seconds: float | None
    runs: int

    @property
    def in_words(self) -> str:
        """e.g. `about 3.5 h, from 4 earlier runs`, or `unknown`."""
        if self.seconds is None:
            return "unknown (no earlier run of this kind on this host)"
        return f"about {in_time(self.seconds)}, from {self.runs} earlier run{'' if self.runs == 1 else 's'}"


def estimate(job: SweepJob, host: str, store: Store) -> Estimate:
    """The median seconds a measurement took in runs of this kind, host and model, times the measurements to make."""
    wanted = job_from_json(job.base_json)
    took = [
        seconds
        for run_id in _candidates(wanted, host, store)
        if (seconds := _seconds_a_measurement(run_id, store)) is not None
    ]
    if not took:
        return Estimate(seconds=None, runs=0)
    return Estimate(
        seconds=statistics.median(took) * sum(_measurements(job_of_unit(job, one)) for one in job.units), runs=len(took)
    )


def _candidates(wanted: object, host: str, store: Store) -> list[str]:
    model = getattr(wanted, "model", None) or getattr(wanted, "target", None)
    kind = getattr(wanted, "kind", "")
    found = [
        run.run_id
        for run in store.list()
        if run.job_kind == kind and run.host == host and run.phase == "succeeded" and run.model == model
    ]
    return found[:MOST_RUNS]


def _seconds_a_measurement(run_id: str, store: Store) -> float | None:
    try:
        record = store.load_exact(run_id)
        job = job_from_json(record.spec.job_json)
    except (Eagle3Error, SchemaError):
        return None
    use = None if record.state is None else record.state.resource_use
    return None if use is None or isinstance(job, SweepJob) else use.wall_s / _measurements(job)


def _measurements(job: UnitJob) -> int:
    """How many loads a job measures, repeats and both sides counted; 1 for jobs of other kinds."""
    if job.kind != "bench":
        return 1
    return (len(job.concurrency) + len(job.request_rate)) * job.repeats_in_all * (2 if job.with_baseline else 1)
