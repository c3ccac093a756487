"""A chain of sweeps that is home and gone from its host: the points of one that was gone on with are not run twice."""

import dataclasses
from pathlib import Path

import pytest

from orchestrator.errors import ClaimedError
from orchestrator.records import record_bytes
from orchestrator.store import Store
from orchestrator.store.files import write
from orchestrator.store.layout import ATTEMPTS
from orchestrator.sweeping.succession import require_none_went_on
from remote_payload.schema import SweepJob, to_json
from tests.support.made_runs import made_run
from tests.sweeping.test_asking import JOB, attempt


def keep(store: Store, run_id: str, resumes: str | None, *, is_measured: bool) -> SweepJob:
    job = dataclasses.replace(JOB, resumes=resumes)
    record = made_run(run_id)
    spec = dataclasses.replace(record.spec, job_kind="sweep", job_json=to_json(job))
    store.begin(dataclasses.replace(record, spec=spec))
    if is_measured:
        write(store.run_dir(run_id).path / ATTEMPTS, record_bytes(attempt(f"{run_id}.u0.1")))
    return job


def test_the_last_of_a_chain_has_the_points_of_the_first(tmp_path: Path) -> None:
    store = Store(tmp_path)
    job = keep(store, "ca", None, is_measured=True)
    rest = dataclasses.replace(job, resumes="ca")
    keep(store, "cb", "ca", is_measured=False)
    require_none_went_on("ca", rest, "cd", store)  # nothing came of it
    keep(store, "cc", "cb", is_measured=True)
    keep(store, "other", None, is_measured=True)
    for sweep_id in ("ca", "cb"):
        with pytest.raises(ClaimedError, match="sweep `cc` goes on with sweep `cb`, and has the") as refused:
            require_none_went_on(sweep_id, rest, "cd", store)
        assert "sweep resume cc" in str(refused.value.hint)
    require_none_went_on("cc", rest, "cd", store)
    require_none_went_on("cb", rest, "cc", store)  # asked for again by its own name
    (unit,) = job.units
    others = dataclasses.replace(rest, units=(dataclasses.replace(unit, block=1),))
    require_none_went_on("ca", others, "cd", store)
