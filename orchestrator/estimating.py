"""How long a sweep may take, from runs that this laptop has of the same host.

A run's time is taken as a share a start and a share a unit of work, both unknown. A start of the sweep then lies
between the run's time by starts alone and its time by work alone; where both work as much a start, these are one.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.errors import Eagle3Error
from orchestrator.store import Store
from orchestrator.sweep.standing import in_time
from remote_payload.schema import BenchJob, SchemaError, SweepJob, UnitJob, job_from_json, job_of_unit

MOST_RUNS = 40
"""Of the newest: what is older was measured on another state of the host."""
ALIKE = 1.25
"""Runs whose work a start is within so much of the unit's tell of it alone, where there are any."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Seconds, and how many runs stood behind them; None = there is no such run here."""

    seconds: float | None
    """The most that those runs suggest."""
    least_s: float | None = None
    """The least."""
    runs: int

    @property
    def in_words(self) -> str:
        """e.g. `about 3.5 h, from 4 earlier runs`, `12 s to 73 s, from ... of other settings`, or `unknown`."""
        if self.seconds is None:
            return "unknown (no earlier run of this kind on this host)"
        told = f"from {self.runs} earlier run{'' if self.runs == 1 else 's'}"
        if self.least_s is None or self.seconds <= ALIKE * self.least_s:
            return f"about {in_time(self.seconds)}, {told}"
        return f"{in_time(self.least_s)} to {in_time(self.seconds)}, {told} of other settings"


@dataclass(frozen=True, kw_only=True)
class Size:
    """What a job is made of."""

    starts: int
    work: float | None
    """Tokens that one user waits for, seconds of a selftest, rows; None = not known beforehand."""
    wall_s: float = 0.0
    """What it took, of a run."""


def estimate(job: SweepJob, host: str, store: Store) -> Estimate:
    """From the newest runs of this kind, host and model, each unit by those most like it."""
    wanted = job_from_json(job.base_json)
    runs = [run for run_id in _candidates(wanted, host, store) if (run := _size_of_run(run_id, store)) is not None]
    if not runs:
        return Estimate(seconds=None, runs=0)
    bounds = [unit_bounds(size_of(job_of_unit(job, one)), runs) for one in job.units]
    return Estimate(seconds=sum(most for _, most in bounds), least_s=sum(least for least, _ in bounds), runs=len(runs))


def unit_bounds(unit: Size, runs: Sequence[Size]) -> tuple[float, float]:
    """The least and the most seconds of a unit: medians over the runs, of which there is at least one."""
    alike = [run for run in runs if _ratio(unit, run) is not None and 1 / ALIKE <= (_ratio(unit, run) or 0) <= ALIKE]
    least, most = [], []
    for run in alike or runs:
        by_starts = run.wall_s * unit.starts / run.starts
        ratio = _ratio(unit, run)
        by_work = by_starts if ratio is None else by_starts * ratio
        least.append(min(by_starts, by_work))
        most.append(max(by_starts, by_work))
    return statistics.median(least), statistics.median(most)


def size_of(job: UnitJob, wall_s: float = 0.0) -> Size:
    """Of a served benchmark the loads add up; a rate of r requests a second counts as r users."""
    if not isinstance(job, BenchJob):
        work = job.__dict__.get("duration_s") or job.__dict__.get("max_rows")
        return Size(starts=1, work=None if work is None else float(work), wall_s=wall_s)
    sides = 2 if job.with_baseline else 1
    work = 0.0
    for users in (*job.concurrency, *job.request_rate):
        at_once = max(1.0, users)
        requests = job.requests or max(5 * at_once, job.max_prompts or 0)
        work += requests * job.max_new_tokens / at_once * job.repeats_in_all * sides
    return Size(starts=2 * job.repeats if job.with_baseline else job.starts, work=work, wall_s=wall_s)


def _ratio(unit: Size, run: Size) -> float | None:
    """The unit's work a start in the run's; None = not known."""
    return None if not unit.work or not run.work else unit.work / unit.starts / (run.work / run.starts)


def _candidates(wanted: object, host: str, store: Store) -> list[str]:
    model = getattr(wanted, "model", None) or getattr(wanted, "target", None)
    kind = getattr(wanted, "kind", "")
    found = [
        run.run_id
        for run in store.list()
        if run.job_kind == kind and run.host == host and run.phase == "succeeded" and run.model == model
    ]
    return found[:MOST_RUNS]


def _size_of_run(run_id: str, store: Store) -> Size | None:
    try:
        record = store.load_exact(run_id)
        job = job_from_json(record.spec.job_json)
    except (Eagle3Error, SchemaError):
        return None
    use = None if record.state is None else record.state.resource_use
    return size_of(job, use.wall_s) if use is not None and isinstance(job, UnitJob) else None
