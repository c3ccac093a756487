"""Sweeps as arrays under a real Slurm: every point is accounted for, wherever and whenever its element ran."""

import dataclasses
import json
import os
import shutil
import time
from pathlib import Path

import pytest

from remote_payload.schema import SweepAttempt, SweepRequest, to_json
from remote_payload.schema.slurm import SlurmSettings
from remote_payload.schema.waiting import Waiting
from remote_payload.slurm.submit import script_of
from tests.payload.rig import NONCE, Rig, of_kind, wait_for
from tests.payload.slurm.test_runs import cancel, state_of
from tests.payload.sweep.test_sweep import ends, launch, sweep_of
from tests.support.slurm import PROVES, Slurm, until

pytestmark = pytest.mark.infra

SETTINGS = SlurmSettings(poll_s=1.0, array_limit=12)


def asked(rig: Rig, run_id: str = "s1") -> tuple[tuple[SweepAttempt, ...], str]:
    frames = of_kind(rig.call("sweep", SweepRequest(nonce=NONCE, root=str(rig.root), run_id=run_id)), "sweep")
    return tuple(one for frame in frames for one in frame.attempts), frames[-1].state.phase


def test_forty_units_of_which_four_fail_are_all_accounted_for(rig: Rig, slurm: Slurm) -> None:
    units = [{"duration_s": 0.01 + 0.0001 * at, **({"fail": True} if at % 10 == 3 else {})} for at in range(40)]
    launch(rig, sweep_of(*units, retries=1), slurm=SETTINGS)
    job = rig.state("s1").slurm
    assert job is not None
    assert job.elements == 40
    assert "ArrayTaskThrottle=12" in slurm.run("scontrol", "-o", "show", "job", job.job_id)
    until(lambda: "RUNNING" in (state_of(rig, "s1").note or ""), "running elements")
    assert state_of(rig, "s1").phase == "running"
    until(lambda: rig.state("s1").is_terminal, "the sweep's end, which nobody asked for", 90)
    attempts, phase = asked(rig)
    assert phase == "succeeded"
    assert len(attempts) == 44
    failing = {f"p{at}" for at in range(40) if at % 10 == 3}
    assert sorted(point for point, end in ends(attempts) if end == "failed") == sorted([*failing, *failing])
    assert {point for point, end in ends(attempts) if end == "measured"} == {f"p{at}" for at in range(40)} - failing
    assert {one.run_id for one in attempts if one.unit_id == "u3"} == {"s1.u3.0", "s1.u3.1"}
    # Each is a run like any other, on one of the nodes; nothing they share was written by two of them.
    nodes = {state.slurm.node for one in attempts if (state := rig.state(one.run_id)).slurm is not None}
    assert nodes <= {"node1", "node2", "node3"}
    assert len(nodes) > 1
    assert not (rig.run("s1").result / "units.jsonl").exists()
    assert len(json.loads(rig.run("s1").manifest.read_text())["files"]) == 40


def test_cancelling_the_sweep_ends_elements_that_run_and_those_that_wait(rig: Rig, slurm: Slurm) -> None:
    launch(rig, sweep_of(*[{"duration_s": 60 + at} for at in range(4)]), slurm=SlurmSettings(poll_s=1.0, array_limit=2))
    wait_for(lambda: all(rig.run(f"s1.u{at}.0").state.exists() for at in (0, 1)))
    wait_for(lambda: all(rig.state(f"s1.u{at}.0").phase == "running" for at in (0, 1)))
    job = rig.state("s1").slurm
    assert job is not None
    slurm.run("scancel", f"{job.job_id}_3")  # by hand, while the others go on
    until(lambda: any(one.unit_id == "u3" for one in asked(rig)[0]), "Slurm's word of the element that never began")
    (gone,) = [one for one in asked(rig)[0] if one.unit_id == "u3"]
    assert (gone.phase, ends((gone,))) == ("cancelled", [("p3", "cancelled")])
    assert gone.failure is not None
    assert f"its element {job.job_id}_3 was cancelled while it waited" in gone.failure.message
    assert asked(rig)[1] == "running"
    answer = cancel(rig, "s1", grace_s=2)
    assert (answer.state.phase, answer.unproved is None) == ("cancelled", PROVES)
    assert [rig.state(f"s1.u{at}.0").phase for at in (0, 1)] == ["cancelled", "cancelled"]
    assert not rig.run("s1.u2.0").path.exists()
    attempts, phase = asked(rig)
    # The one that waited was not run because of this; the one that Slurm had ended before is still told as that.
    assert (phase, sorted(ends(attempts))) == ("cancelled", [(point, "cancelled") for point in ("p0", "p1", "p3")])
    assert slurm.run("squeue", "-h", "-n", "e3r.s1", "-o", "%j") == ""  # another test's job may still be on its way out


@pytest.mark.slow
def test_a_sweep_of_which_too_many_units_measured_nothing_leaves_out_the_rest(rig: Rig, slurm: Slurm) -> None:
    one = SlurmSettings(poll_s=1.0, array_limit=1)
    units = [{"fail": True, "duration_s": 0.001 * at} for at in range(2)] + [{}, {"duration_s": 0.01}]
    launch(rig, sweep_of(*units, stop_after_failures=2), slurm=one)
    until(lambda: rig.state("s1").is_terminal, "the sweep's end, which nobody asked for")
    attempts, phase = asked(rig)
    assert (phase, ends(attempts)) == (
        "succeeded",
        [("p0", "failed"), ("p1", "failed"), ("p2", "not_reached"), ("p3", "not_reached")],
    )
    assert attempts[3].failure is not None
    assert attempts[3].failure.message == "not run: 2 units in a row measured nothing (`stop_after_failures`)"
    assert not rig.run("s1.u2.0").path.exists()
    adopting = dataclasses.replace(sweep_of({}).units[0], adopt="s1.u0.0")
    job = dataclasses.replace(sweep_of({}), units=(adopting,))
    spec = rig.spec("s2", job_kind="sweep", job_json=to_json(job), slurm=one)
    (error,) = of_kind(rig.launch(spec, exit_code=1), "error")
    assert (error.code, error.message) == (
        "sweep_goes_on",
        "a start of the earlier sweep may still go on: s1.u0.0",
    )
    assert not rig.run("s2").path.exists()


def test_an_element_that_slurm_starts_again_goes_on_where_it_was(rig: Rig, slurm: Slurm) -> None:
    launch(rig, sweep_of({"duration_s": 6}, {"duration_s": 0.01}), slurm=SETTINGS)
    wait_for(lambda: rig.run("s1.u0.0").state.exists() and rig.state("s1.u0.0").phase == "running")
    job = rig.state("s1").slurm
    assert job is not None
    slurm.run("scontrol", "requeue", f"{job.job_id}_0")
    wait_for(lambda: rig.state("s1.u0.0").phase == "queued")
    until(lambda: "PENDING" in slurm.run("squeue", "-h", "-o", "%T"), "the requeue")
    assert state_of(rig, "s1").phase == "running"
    until(lambda: slurm.idle_nodes() == 3, "the end of its first start")
    time.sleep(1)  # as Slurm itself would for two minutes: else that end is taken for the next start's
    slurm.run("scontrol", "update", f"jobid={job.job_id}_0", "StartTime=now")
    until(lambda: state_of(rig, "s1").is_terminal, "the sweep's end")
    attempts, phase = asked(rig)
    assert (phase, sorted(ends(attempts))) == ("succeeded", [("p0", "measured"), ("p1", "measured")])
    again = rig.state("s1.u0.0").slurm
    assert again is not None
    assert again.restarts == 1


def test_a_submission_whose_answer_came_late_is_not_run_beside_the_next(
    rig: Rig, slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, sbatch = shutil.which("sbatch"), tmp_path / "bin" / "sbatch"
    sbatch.parent.mkdir()
    monkeypatch.setenv("PATH", f"{sbatch.parent}:{os.environ['PATH']}")
    job = sweep_of({}, {"duration_s": 0.01})
    spec = rig.spec("s1", job_kind="sweep", job_json=to_json(job), slurm=SlurmSettings(poll_s=1.0, answer_s=2.0))
    # Taken at once, and taken back at once; an array in the queue all the same ends without a run of its own.
    for held in ("", "--begin=now+3"):
        sbatch.write_text(f'#!/bin/sh\nid=$({real} {held} "$@") || exit 1\necho $id >> {tmp_path}/ids\nexec sleep 8\n')
        sbatch.chmod(0o755)
        (error,) = of_kind(rig.launch(spec, exit_code=1), "error")
        assert "Slurm did not answer within 2 s" in error.message
        until(lambda: slurm.run("squeue", "-h", "-n", "e3r.s1", "-o", "%j") == "", "the end of what was taken")
        assert not rig.run("s1.u0.0").path.exists()
    (tmp_path / "late.sh").write_text(script_of(rig.run("s1"), rig.pyz))
    sbatch.unlink()
    launch(rig, job, slurm=SETTINGS)
    orphan = slurm.run("sbatch", "--parsable", "--array=0-1", "--output=/dev/null", str(tmp_path / "late.sh")).strip()
    until(lambda: state_of(rig, "s1").is_terminal, "the sweep's end")
    until(lambda: slurm.run("squeue", "-h", "-o", "%A") == "", "the end of the other array")
    array = rig.state("s1").slurm
    assert array is not None
    told = [state.slurm.job_id for at in (0, 1) if (state := rig.state(f"s1.u{at}.0")).slurm is not None]
    assert told == [f"{array.job_id}_0", f"{array.job_id}_1"]
    assert "JobState=FAILED" in slurm.run("scontrol", "-o", "show", "job", f"{orphan}_0")


def test_the_end_of_a_sweep_and_of_a_run_that_slurm_ended_is_told_once(rig: Rig, slurm: Slurm, tmp_path: Path) -> None:
    tell = tmp_path / "tell"
    tell.write_text(f"#!/bin/sh\ncat >> {tmp_path}/told\n")
    tell.chmod(0o755)
    one = SlurmSettings(poll_s=1.0)
    rig.launch(rig.spec("waits", slurm=one, notify_command=(str(tell),), waiting=Waiting(start_unix_s=4e9)))
    launch(rig, sweep_of({}, {"duration_s": 0.01}), slurm=SETTINGS, notify_command=(str(tell),))
    job = rig.state("waits").slurm
    assert job is not None
    slurm.run("scancel", job.job_id)
    until(lambda: state_of(rig, "waits").is_terminal and state_of(rig, "s1").is_terminal, "both ends")
    told = tmp_path / "told"
    wait_for(lambda: told.exists() and len(told.read_text().splitlines()) == 2)
    rig.status()
    endings = [json.loads(line) for line in told.read_text().splitlines()]
    assert sorted((one["run_id"], one["phase"], one.get("points_measured")) for one in endings) == [
        ("s1", "succeeded", 2),
        ("waits", "cancelled", None),
    ]
