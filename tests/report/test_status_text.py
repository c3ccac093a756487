"""What `status` says beside a state: its failure, not what it waited for; units only where the host told of them."""

from orchestrator.report.runs_text import status_text
from remote_payload.schema import Failure, RunSpec, RunState, SelftestJob, StatusAnswer, SweepJob, to_json
from tests.sweep.test_remaining import planned


def answer(*states: RunState, job: SelftestJob | SweepJob) -> StatusAnswer:
    spec = RunSpec(
        run_id="night",
        job_kind=job.kind,
        job_json=to_json(job),
        python="/usr/bin/python3",
        payload_sha256="0" * 64,
        environment={},
        launched_by="somebody@laptop",
        created_unix_s=1.0,
    )
    return StatusAnswer(states=states, specs=(spec,) * len(states), heartbeat_ages_s=(None,) * len(states))


def test_a_run_that_failed_while_it_waited_shows_its_failure() -> None:
    failure = Failure(kind="machine", message="1 GPU not free within 5 s: GPU 0 leased by ann's run day\nmore")
    state = RunState(run_id="night", sequence=3, phase="failed", note="waits for 1 GPU: GPU 0 busy", failure=failure)
    text = status_text(answer(state, job=SelftestJob()), "gpu1")
    assert "1 GPU not free within 5 s: GPU 0 leased by ann's run day" in text
    assert "waits for" not in text


def test_units_that_nobody_asked_about_are_not_counted() -> None:
    state = RunState(run_id="night", sequence=3, phase="running", note="2 of 6")
    text = status_text(answer(state, job=planned()), "gpu1")
    assert "units" not in text
    unit = RunState(run_id="night.u0000.0", sequence=3, phase="running")
    assert "1 unit" in status_text(answer(state, unit, job=planned()), "gpu1")
