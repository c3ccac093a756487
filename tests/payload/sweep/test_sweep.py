"""A sweep's whole life on the host, by real processes: every point is accounted for, whatever its unit did."""

import json
import shutil
import sys

from remote_payload.rundir import RunDir
from remote_payload.schedule.fire import still_going
from remote_payload.schedule.folder import ScheduleDir
from remote_payload.schema import (
    FollowRequest,
    SelftestJob,
    StateFrame,
    StatusRequest,
    SweepAttempt,
    SweepDone,
    SweepJob,
    SweepPoint,
    SweepRequest,
    SweepUnit,
    to_json,
)
from remote_payload.schema.waiting import Waiting
from remote_payload.sweep.ledger import read_ledger
from tests.payload.rig import NONCE, Rig, is_alive, kill, wait_for


def sweep_of(*changes: dict[str, object], **settings: object) -> SweepJob:
    points = tuple(SweepPoint(point_id=f"p{at}", changes_json=json.dumps(one)) for at, one in enumerate(changes))
    units = tuple(
        SweepUnit(unit_id=f"u{at}", block=0, changes_json=point.changes_json, points=(point.point_id,))
        for at, point in enumerate(points)
    )
    return SweepJob(base_json=to_json(SelftestJob(result_bytes=10)), units=units, points=points, **settings)


def launch(rig: Rig, job: SweepJob, *, follow: bool = False, run_id: str = "s1", **changes: object) -> None:
    rig.launch(rig.spec(run_id, job_kind="sweep", job_json=to_json(job), **changes), follow=follow)


def asked(rig: Rig, run_id: str = "s1") -> tuple[tuple[SweepAttempt, ...], str]:
    frames = rig.call("sweep", SweepRequest(nonce=NONCE, root=str(rig.root), run_id=run_id))[:-1]
    return tuple(one for frame in frames for one in frame.attempts), frames[-1].state.phase


def ends(attempts: tuple[SweepAttempt, ...]) -> list[tuple[str, str]]:
    return [(outcome.point_id, outcome.end) for one in attempts for outcome in one.points]


def test_a_failed_unit_is_kept_and_the_next_goes_on(rig: Rig) -> None:
    job = sweep_of({}, {"fail": True}, {"duration_s": 0.01}, retries=1)
    launch(rig, job, follow=True, waiting=Waiting(start_unix_s=1.0))
    attempts, phase = asked(rig)
    assert phase == "succeeded"
    assert ends(attempts) == [("p0", "measured"), ("p1", "failed"), ("p1", "failed"), ("p2", "measured")]
    assert [one.run_id for one in attempts] == ["s1.u0.0", "s1.u1.0", "s1.u1.1", "s1.u2.0"]
    assert attempts[1].failure is not None
    assert attempts[1].failure.message == "selftest was asked to fail"
    assert {one.installed["python"] for one in attempts} == {"{}.{}.{}".format(*sys.version_info[:3])}
    # Each unit is a run like any other, with its own settings.
    assert rig.state("s1.u2.0").phase == "succeeded"
    spec = json.loads(rig.run("s1.u2.0").spec.read_text())
    assert json.loads(spec["job_json"]) == json.loads(to_json(SelftestJob(result_bytes=10, duration_s=0.01)))
    assert spec["waiting"] is None  # the sweep has waited, and holds what it leased
    assert {"key": "duration_s", "value": "0.01", "source": "sweep s1, unit u2"} in spec["settings"]
    assert json.loads((rig.run("s1").manifest).read_text())["files"][0]["name"] == "units.jsonl"


def test_cancelling_the_sweep_ends_its_unit_as_cancelled_and_leaves_nothing(rig: Rig) -> None:
    launch(rig, sweep_of({"duration_s": 60}, {}))
    wait_for(lambda: (rig.run("s1.u0.0").path / "state.json").exists() and rig.state("s1.u0.0").phase == "running")
    answer = rig.cancel("s1", grace_s=2)
    assert (answer.state.phase, answer.survivors) == ("cancelled", ())
    assert rig.state("s1.u0.0").phase == "cancelled"
    assert ends(asked(rig)[0]) == [("p0", "cancelled")]
    assert rig.alive("s1") == rig.alive("s1.u0.0") == ()


def test_the_deadline_of_a_sweep_ends_its_unit_in_order(rig: Rig) -> None:
    job = sweep_of({"duration_s": 60}, {})
    launch(rig, job, follow=True, deadline_s=1.5)
    assert (rig.state("s1").phase, rig.state("s1.u0.0").phase) == ("timed_out", "cancelled")
    assert ends(asked(rig)[0]) == [("p0", "cancelled")]


def test_cancelling_a_unit_leaves_the_rest_of_the_sweep(rig: Rig) -> None:
    launch(rig, sweep_of({"duration_s": 60}, {}))
    wait_for(lambda: rig.run("s1.u0.0").state.exists() and rig.state("s1.u0.0").phase == "running")
    assert rig.cancel("s1.u0.0", grace_s=2).state.phase == "cancelled"
    wait_for(lambda: rig.state("s1").is_terminal)
    attempts, phase = asked(rig)
    assert (phase, ends(attempts)) == ("succeeded", [("p0", "cancelled"), ("p1", "measured")])


def test_what_a_unit_leaves_whose_supervisor_was_killed_is_ended_before_the_next(rig: Rig) -> None:
    launch(rig, sweep_of({"duration_s": 60}, {}))
    wait_for(lambda: rig.run("s1.u0.0").state.exists() and rig.state("s1.u0.0").phase == "running")
    unit = rig.state("s1.u0.0")
    assert unit.supervisor_pid is not None
    assert unit.worker_pid is not None
    kill(unit.supervisor_pid)
    wait_for(rig.run("s1.u1.0").path.exists)
    assert not is_alive(unit.worker_pid)
    wait_for(lambda: rig.state("s1").is_terminal)
    attempts, phase = asked(rig)
    assert (phase, [one.phase for one in attempts]) == ("succeeded", ["lost", "succeeded"])
    assert ends(attempts) == [("p0", "failed"), ("p1", "measured")]


def test_a_unit_that_outlives_its_killed_sweep_is_adopted_by_the_next(rig: Rig) -> None:
    launch(rig, sweep_of({"duration_s": 2}, {}))
    wait_for(lambda: rig.run("s1.u0.0").state.exists() and rig.state("s1.u0.0").phase == "running")
    state = rig.state("s1")
    assert state.supervisor_pid is not None
    assert state.worker_pid is not None
    kill(state.supervisor_pid)
    kill(state.worker_pid)
    attempts, phase = asked(rig)
    assert (phase, attempts[0].phase) == ("lost", "running")
    job = sweep_of({"duration_s": 2})
    unit = SweepUnit(unit_id="u0", block=0, changes_json=job.units[0].changes_json, points=("p0",), adopt="s1.u0.0")
    launch(rig, SweepJob(**{**job.__dict__, "units": (unit,)}), follow=True, run_id="s2")
    (adopted,) = asked(rig, "s2")[0]
    assert (adopted.run_id, adopted.phase, adopted.points[0].end) == ("s1.u0.0", "succeeded", "measured")
    assert not rig.run("s2.u0.0").path.exists()


def test_a_run_of_ones_own_and_a_sweeps_start_never_have_one_id(rig: Rig) -> None:
    rig.launch(rig.spec("s1.u1.0"), follow=True)
    rig.launch(rig.spec("s1.u7.0"), follow=True)  # no unit of the sweep is called so
    refused = ("claimed_by_other_spec", "a run of this host has the id of a start of this sweep: s1.u1.0")
    assert refusal(rig, sweep_of({}, {}), "s1") == refused
    launch(rig, sweep_of({}), follow=True)
    (frame,) = rig.launch(rig.spec("s1.u0.1"), exit_code=1)
    assert "sweep `s1` of this host has a start of this id: s1.u0.1" in frame.message  # type: ignore[union-attr]
    assert not rig.run("s1.u0.1").path.exists()


def test_a_sweep_stops_when_units_in_a_row_measure_nothing(rig: Rig) -> None:
    launch(rig, sweep_of({"fail": True}, {"fail": True}, {}, stop_after_failures=2), follow=True)
    assert ends(asked(rig)[0]) == [("p0", "failed"), ("p1", "failed")]


def test_a_line_that_a_power_cut_left_half_written_is_passed_over(rig: Rig) -> None:
    launch(rig, sweep_of({}), follow=True)
    path = rig.run("s1").result / "units.jsonl"
    with path.open("a") as file:
        file.write(path.read_text()[:40])
    assert ends(read_ledger(RunDir(rig.run("s1").path))) == [("p0", "measured")]


def rest_of(job: SweepJob, sweep_id: str, *points: str, **changes: object) -> SweepJob:
    units = tuple(unit for unit in job.units if unit.points[0] in points)
    return SweepJob(**{**job.__dict__, "units": units, "resumes": sweep_id, **changes})


def refusal(rig: Rig, job: SweepJob, run_id: str) -> tuple[str, str]:
    (frame,) = rig.launch(rig.spec(run_id, job_kind="sweep", job_json=to_json(job)), exit_code=1)
    assert not rig.run(run_id).path.exists()
    return frame.code, frame.message  # type: ignore[union-attr]


def test_a_sweep_whose_worker_outlives_its_supervisor_is_told_of_and_not_gone_on_with(rig: Rig) -> None:
    job = sweep_of({"duration_s": 60}, {})
    launch(rig, job)
    wait_for(lambda: rig.run("s1.u0.0").state.exists() and rig.state("s1.u0.0").phase == "running")
    state = rig.state("s1")
    assert state.supervisor_pid is not None
    kill(state.supervisor_pid)
    frame = rig.call("sweep", SweepRequest(nonce=NONCE, root=str(rig.root), run_id="s1"))[-2]
    assert (frame.state.phase, frame.drivers) == ("running", (state.worker_pid,))  # type: ignore[union-attr]
    told = f"sweep `s1` still measures: alive of it: {state.worker_pid}"
    assert refusal(rig, rest_of(job, "s1", "p0", "p1"), "s2") == ("sweep_goes_on", told)
    rig.cancel("s1", grace_s=2)
    assert rig.state("s1.u0.0").phase == "cancelled"
    assert ends(asked(rig)[0]) == [("p0", "cancelled")]
    launch(rig, rest_of(job, "s1", "p1"), follow=True, run_id="s2")
    assert ends(asked(rig, "s2")[0]) == [("p1", "measured")]


def test_a_sweep_whose_worker_outlives_its_supervisor_runs_to_its_end_and_is_followed_to_it(rig: Rig) -> None:
    name, schedule = "nightly.20260102-0304", ScheduleDir(rig.root, "nightly")
    launch(rig, sweep_of({"duration_s": 3}, {}), run_id=name)
    wait_for(lambda: rig.run(f"{name}.u0.0").state.exists() and rig.state(f"{name}.u0.0").phase == "running")
    state = rig.state(name)
    assert state.supervisor_pid is not None
    kill(state.supervisor_pid)
    (frame,) = rig.call("status", StatusRequest(nonce=NONCE, root=str(rig.root), run_id=name))
    (told,) = frame.answer.states  # type: ignore[union-attr]
    assert (told.phase, told.finished_unix_s, told.failure) == ("running", None, None)
    assert told.note == f"its supervisor is gone, driven by pid {state.worker_pid}; `cancel` ends it"
    assert still_going(schedule, "nightly.20260103-0304") == name
    request = FollowRequest(nonce=NONCE, root=str(rig.root), run_id=name)
    phases = [frame.state.phase for frame in rig.call("follow", request) if isinstance(frame, StateFrame)]
    assert (phases[0], phases[-1]) == ("running", "lost")
    attempts, phase = asked(rig, name)
    assert (ends(attempts), phase) == ([("p0", "measured"), ("p1", "measured")], "lost")
    assert still_going(schedule, "nightly.20260103-0304") is None


def test_one_sweep_goes_on_with_another_until_it_is_over_and_measured_nothing(rig: Rig) -> None:
    job = sweep_of({"duration_s": 60}, {"fail": True}, {})
    launch(rig, job)
    wait_for(lambda: rig.run("s1.u0.0").state.exists() and rig.state("s1.u0.0").phase == "running")
    rig.cancel("s1", grace_s=2)
    launch(rig, rest_of(job, "s1", "p0", "p1", "p2"), run_id="s2")
    told = "sweep `s2` goes on with sweep `s1`, and has the same points"
    assert refusal(rig, rest_of(job, "s1", "p2"), "s3") == ("sweep_goes_on", told)
    wait_for(lambda: rig.run("s2.u0.0").state.exists() and rig.state("s2.u0.0").phase == "running")
    rig.cancel("s2", grace_s=2)
    launch(rig, rest_of(job, "s2", "p1"), follow=True, run_id="s4")  # measures nothing either: both are free again
    launch(rig, rest_of(job, "s1", "p1", "p2"), follow=True, run_id="s5")
    assert ends(asked(rig, "s5")[0]) == [("p1", "failed"), ("p2", "measured")]
    assert "`s5` goes on" in refusal(rig, rest_of(job, "s1", "p2"), "s6")[1]
    shutil.copytree(rig.run("s1").path, rig.root / "kept")
    shutil.rmtree(rig.run("s1").path)  # cleaned away, and not those that went on with it
    assert refusal(rig, rest_of(job, "s1", "p2"), "s6") == ("sweep_goes_on", told.replace("s2", "s5"))
    shutil.move(rig.root / "kept", rig.run("s1").path)
    rig.run("s5").state.unlink()  # as in the moment between its claim and its start
    assert "`s5` goes on" in refusal(rig, rest_of(job, "s1", "p1"), "s6")[1]


def test_a_chain_of_which_the_last_alone_is_left_on_the_host_is_known_by_what_it_has_as_done(rig: Rig) -> None:
    job = sweep_of({}, {})
    done = (SweepDone(point_id="p0", block=0, run_id="s1.u0.0"),)
    launch(rig, rest_of(job, "s2", "p1", done=done), follow=True, run_id="s3")
    told = "sweep `s3` goes on with sweep `s1`, and has the same points"
    assert refusal(rig, rest_of(job, "s1", "p1"), "s4") == ("sweep_goes_on", told)
    launch(rig, rest_of(job, "s1", "p0"), follow=True, run_id="s5")  # s3 has it not
    assert ends(asked(rig, "s5")[0]) == [("p0", "measured")]


def test_what_a_lost_unit_of_the_earlier_sweep_left_is_ended_before_the_first_unit(rig: Rig) -> None:
    job = sweep_of({"duration_s": 60}, {})
    launch(rig, job)
    wait_for(lambda: rig.run("s1.u0.0").state.exists() and rig.state("s1.u0.0").phase == "running")
    sweep, unit = rig.state("s1"), rig.state("s1.u0.0")
    for pid in (sweep.supervisor_pid, sweep.worker_pid, unit.supervisor_pid):
        assert pid is not None
        kill(pid)
    assert unit.worker_pid is not None
    assert is_alive(unit.worker_pid)
    assert [(one.phase, ends((one,))) for one in asked(rig)[0]] == [("lost", [("p0", "cancelled")])]  # it did not fail
    launch(rig, rest_of(job, "s1", "p1"), follow=True, run_id="s2")
    assert not is_alive(unit.worker_pid)
    assert ends(asked(rig, "s2")[0]) == [("p1", "measured")]


def test_a_unit_whose_result_is_lost_is_not_measured(rig: Rig) -> None:
    launch(rig, sweep_of({}, {}, {}, {}), follow=True)
    rig.run("s1.u0.0").manifest.write_bytes(b"")  # as a power cut leaves what was not synced
    rig.run("s1.u1.0").manifest.unlink()
    rig.run("s1.u2.0").state.write_bytes(b"")
    attempts = asked(rig)[0]
    assert ends(attempts) == [("p0", "cancelled"), ("p1", "cancelled"), ("p2", "cancelled"), ("p3", "measured")]
    assert attempts[0].failure is not None
    assert attempts[0].failure.message.startswith("it was measured, and its result is lost on the host")
    shutil.rmtree(rig.run("s1.u0.0").path)  # cleaned away: it has come home before
    assert ends(asked(rig)[0])[0] == ("p0", "measured")
