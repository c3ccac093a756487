"""A Slurm with a data base of ended jobs, and what is left to say where even that does not know a job."""

import dataclasses
from collections.abc import Iterator

import pytest

from remote_payload.runstate import advance
from remote_payload.schema import ProbeRequest, RunState, SelftestJob
from tests.payload.rig import NONCE, Rig, of_kind
from tests.payload.slurm.test_runs import ended, job_of, launch, started
from tests.support.slurm import NODES, Slurm, running_slurm, until
from tests.support.slurm_accounting import start_accounting

pytestmark = pytest.mark.infra


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    with running_slurm(start_accounting) as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


def test_what_slurm_has_forgotten_the_data_base_knows_or_nobody(rig: Rig, slurm: Slurm) -> None:
    (frame,) = of_kind(rig.call("probe", ProbeRequest(nonce=NONCE, root=str(rig.root))), "probe")
    told = frame.facts.slurm
    assert (told.problem, told.accounting, told.largest_array) == (None, True, 1001)
    assert [(one.name, one.is_default, one.nodes, one.gres) for one in told.partitions] == [
        ("gpu", True, 3, "gpu:h200:8"),
        ("cheap", False, 3, "gpu:h200:8"),
        ("urgent", False, 3, "gpu:h200:8"),
    ]
    launch(rig, "r1", SelftestJob(duration_s=60))
    started(rig, "r1")
    job = rig.state("r1").slurm
    assert job is not None
    slurm.run("scancel", "--batch", "--signal=KILL", job_of(rig, "r1"))
    sacct = ("sacct", "-X", "-n", "-P", "-o", "State", "-j", job_of(rig, "r1"))
    until(lambda: "FAILED" in slurm.run(*sacct), "the data base's line")
    slurm.stop_controller()
    slurm.start_controller(forgetting=True)
    until(lambda: slurm.idle_nodes() == NODES, "the controller")
    state = ended(rig, "r1")
    assert state.failure is not None
    assert state.phase == "lost"
    assert "FAILED" in state.failure.message
    assert "signal 9" in state.failure.message
    # Without its answer there is nobody left who knows.
    first = RunState(run_id="r2", sequence=0, phase="queued", slurm=dataclasses.replace(job, job_id="4711"))
    launch(rig, "r2")
    ended(rig, "r2")
    advance(rig.run("r2"), first)
    gone = ended(rig, "r2")
    assert gone.failure is not None
    assert (gone.phase, "Slurm does not know the job any more" in gone.failure.message) == ("lost", True)
