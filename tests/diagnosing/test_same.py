"""A diagnosis is one question: what stands under its id is taken, never overwritten, and asked anew where it failed."""

import dataclasses
from pathlib import Path

import pytest

from orchestrator.config import Config, HostConfig
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.budget import Budget
from orchestrator.diagnosing.lease import Lease
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosing.running import standing
from orchestrator.diagnosing.same import require_same
from orchestrator.diagnosing.stages import STAGES
from orchestrator.diagnosing.walk import diagnose
from orchestrator.errors import ClaimedError, JobFileError
from orchestrator.order import Order
from orchestrator.remote.session import HostSession
from orchestrator.store import Store
from orchestrator.store.diagnoses import diagnosis_ids
from remote_payload.schema import to_json
from remote_payload.schema.run import RunPhase
from tests.diagnosing.test_stages import asked
from tests.support.made_runs import made_run, put_files

CONFIG = Config()


@pytest.fixture
def lease(tmp_path: Path) -> Lease:
    """Of a host that nobody ever reaches."""
    session = HostSession("gpu1", HostConfig(ssh="gpu1.invalid"), lambda _: None)
    return Lease("d", None, Budget(), session, Store(tmp_path), lambda _: None)


def put(lease: Lease, stage: str, about: Asked, phase: RunPhase = "succeeded", number: int = 1) -> None:
    """A stage's run as this diagnosis would ask for it, whole on this laptop."""
    run_id = about.run_id(stage) + (f".{number}" if number > 1 else "")
    record = made_run(run_id, phase=phase)
    planned = next(item for item in STAGES if item.name == stage).plan(about, CONFIG, Results())
    assert not isinstance(planned, str)
    spec = dataclasses.replace(record.spec, job_kind=planned.job.kind, job_json=to_json(planned.job))
    put_files(lease.store.begin(dataclasses.replace(record, spec=spec)), {})


def refused(lease: Lease, about: Asked) -> str:
    with pytest.raises(ClaimedError) as error:
        require_same(about, CONFIG, lease)
    assert error.value.hint is not None
    assert "`--run-id d` alone" in error.value.hint
    return error.value.message


def test_the_same_question_goes_on_and_another_is_named(lease: Lease) -> None:
    require_same(asked(), CONFIG, lease)
    put(lease, "offline", asked())
    put(lease, "serve", asked())
    require_same(asked(), CONFIG, lease)
    require_same(dataclasses.replace(asked(), deep=True, again=True, budget_s=3.0), CONFIG, lease)
    other = dataclasses.replace(asked(draft="/e"), draft="/e")
    assert "its stage offline has other settings (--draft)" in refused(lease, other)
    assert "its stage serve has other settings (--num-steps, --repeats)" in refused(
        lease, asked(num_steps=4, repeats=3)
    )
    assert "no captured training rows" in refused(lease, dataclasses.replace(asked(), samples={}))


def test_what_failed_is_asked_as_it_is_meant_now(lease: Lease) -> None:
    put(lease, "offline", asked(), "failed")
    other = dataclasses.replace(asked(draft="/e"), draft="/e")
    refused(lease, other)
    require_same(dataclasses.replace(other, again=True), CONFIG, lease)
    put(lease, "offline", asked(), "cancelled", number=2)
    require_same(other, CONFIG, lease)


def test_what_is_home_is_taken_without_the_host_and_what_comes_to_nothing_is_not(lease: Lease) -> None:
    order = Order(planned=asked().offline(CONFIG), run_id="d.offline")
    assert standing(order, lease, again=False) is None
    put(lease, "offline", asked(), "failed")
    found = standing(order, lease, again=False)
    assert found is not None
    assert found.phase == "failed"
    assert standing(order, lease, again=True) is None
    put(lease, "offline", asked(), number=2)
    found = standing(order, lease, again=True)
    assert found is not None
    assert found.run_id == "d.offline.2"
    assert standing(dataclasses.replace(order, planned=asked().serve(CONFIG)), lease, again=False) is None


def test_what_is_refused_is_not_kept(lease: Lease) -> None:
    nothing = Asked(diagnosis_id="d", model=None, draft=None)
    with pytest.raises(JobFileError, match="--model"):
        diagnose(nothing, CONFIG, lease)
    put(lease, "offline", asked())
    with pytest.raises(ClaimedError):
        diagnose(dataclasses.replace(asked(draft="/e"), draft="/e"), CONFIG, lease)
    assert diagnosis_ids(lease.store.home) == ()
