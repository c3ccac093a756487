"""Runs under a real Slurm: from the login node's verbs to the end, whatever Slurm does to the job."""

from typing import Any

import pytest

from remote_payload import processes
from remote_payload.schema import RunState, SelftestJob
from remote_payload.schema.slurm import SlurmSettings
from tests.payload.rig import Rig, of_kind, wait_for
from tests.support.slurm import Slurm, until

pytestmark = pytest.mark.infra

SETTINGS = SlurmSettings(poll_s=1.0, answer_s=10.0)


def launch(rig: Rig, run_id: str, job: SelftestJob | None = None, **changes: Any) -> RunState:
    secrets = changes.pop("secrets", None)
    spec = rig.spec(run_id, job, **{"slurm": SETTINGS, "secret_names": tuple(secrets or ()), **changes})
    (frame,) = of_kind(rig.launch(spec, secrets=secrets), "launched")
    return frame.state


def state_of(rig: Rig, run_id: str) -> RunState:
    (state,) = rig.status(run_id).states
    return state


def ended(rig: Rig, run_id: str, patience_s: float = 60.0) -> RunState:
    until(lambda: state_of(rig, run_id).is_terminal, f"the end of {run_id}", patience_s)
    return state_of(rig, run_id)


def job_of(rig: Rig, run_id: str) -> str:
    job = rig.state(run_id).slurm
    assert job is not None
    return job.job_id


def started(rig: Rig, run_id: str) -> RunState:
    wait_for(lambda: rig.state(run_id).phase == "running")
    return rig.state(run_id)


def test_a_run_goes_through_slurm_to_its_result(rig: Rig, slurm: Slurm) -> None:
    frames = rig.launch(rig.spec("r1", SelftestJob(result_bytes=10), slurm=SETTINGS), follow=True)
    states = [frame.state for frame in of_kind(frames, "state")]
    assert of_kind(frames, "launched")[0].state.phase == "queued"
    assert [states[0].phase, states[-1].phase] == ["queued", "succeeded"]
    assert of_kind(frames, "manifest")[0].manifest.files
    final = rig.state("r1")
    assert final.slurm is not None
    assert (final.slurm.node or "").startswith("node")
    assert final.slurm.restarts == 0
    assert not processes.is_running(final.supervisor_pid or 0, final.supervisor_start_ticks or 0)
    shown = slurm.run("scontrol", "-o", "show", "job", final.slurm.job_id)
    assert "JobName=e3r.r1 " in shown


def test_a_failing_job_is_told_in_its_own_words(rig: Rig) -> None:
    launch(rig, "r1", SelftestJob(fail=True))
    state = ended(rig, "r1")
    assert state.failure is not None
    assert (state.phase, state.failure.message) == ("failed", "selftest was asked to fail")
