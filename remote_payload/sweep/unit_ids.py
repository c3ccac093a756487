"""Ids of a sweep's starts, `SWEEP.uNNNN.N`; a run of another's making must not have one, or that point would fail."""

import re
from pathlib import Path

from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.runstate import read_spec
from remote_payload.schema import Job, SchemaError, SweepJob, job_from_json

_START = re.compile(r"(?P<sweep>.+)\.(?P<unit>u\d+)\.\d+")


def unit_run_id(sweep_id: str, unit_id: str, attempt: int) -> str:
    """e.g. `sweep-20261130-0830-1a2b3c.u0007.0`."""
    return f"{sweep_id}.{unit_id}.{attempt}"


def require_own_ids(job: Job, run_id: str, runs: Path) -> None:
    """For a run that is no sweep's start. Raises Refusal where it takes the id of one, or a sweep's is taken."""
    if isinstance(job, SweepJob):
        units = {unit.unit_id for unit in job.units}
        for path in sorted(runs.glob(f"{run_id}.*")):
            found = _START.fullmatch(path.name)
            if found is not None and found["sweep"] == run_id and found["unit"] in units:
                raise Refusal(
                    "claimed_by_other_spec",
                    f"a run of this host has the id of a start of this sweep: {path.name}",
                    "choose another run id for the sweep",
                )
        return
    found = _START.fullmatch(run_id)
    if found is not None and found["unit"] in _units(RunDir(runs / found["sweep"])):
        raise Refusal(
            "claimed_by_other_spec",
            f"sweep `{found['sweep']}` of this host has a start of this id: {run_id}",
            "choose another run id",
        )


def _units(sweep: RunDir) -> frozenset[str]:
    """Of a run that is no sweep, or not there, none."""
    try:
        job = job_from_json(read_spec(sweep).job_json)
    except (OSError, Refusal, SchemaError):
        return frozenset()
    return frozenset(unit.unit_id for unit in job.units) if isinstance(job, SweepJob) else frozenset()
