"""What is believed of a state whose supervisor is gone, elsewhere, or from before a reboot."""

import dataclasses
import json
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from remote_payload import heartbeat, processes, runstate
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.schema import Failure, RunState, SelftestJob, from_json
from tests.payload.rig import NONCE, Rig, kill, of_kind


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "r1")
    run.path.mkdir()
    return run


def running(run: RunDir, **changes: Any) -> RunState:
    """A state that says `running`, under a supervisor that no longer exists."""
    state = RunState(
        run_id="r1",
        sequence=4,
        phase="running",
        supervisor_pid=2**22 - 1,
        supervisor_start_ticks=1,
        boot_id=processes.boot_id(),
    )
    return runstate.advance(run, dataclasses.replace(state, **changes))


def beat(run: RunDir, count: int, host: str) -> None:
    run.heartbeat.write_text(f"{count} {time.clock_gettime(time.CLOCK_BOOTTIME)} {host}\n")


def test_a_dead_supervisor_means_lost_for_everybody(run: RunDir) -> None:
    running(run)
    lost = runstate.current_state(run)
    assert lost is not None
    assert (lost.phase, lost.sequence) == ("lost", 6)
    assert from_json(RunState, run.state.read_text()) == lost
    assert runstate.current_state(run) == lost


def test_a_reboot_is_named_as_the_cause(run: RunDir) -> None:
    running(run, boot_id="another-boot")
    lost = runstate.current_state(run)
    assert lost is not None
    assert lost.failure is not None
    assert lost.failure.message.endswith("the host rebooted")


def test_a_held_lock_is_life_whatever_the_state_says(run: RunDir) -> None:
    state = running(run, boot_id="another-boot")
    holder = heartbeat.Heartbeat(run.heartbeat)
    assert runstate.current_state(run) == state
    del holder


def test_a_supervisor_on_another_host_is_believed_while_it_beats(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.4)
    state = running(run, boot_id="the-boot-of-that-host")
    beat(run, 7, "another-host")
    assert heartbeat.beat_age_s(run.heartbeat) is None
    later = threading.Timer(0.3, beat, (run, 8, "another-host"))
    later.start()
    assert runstate.current_state(run) == state
    later.join()
    lost = runstate.current_state(run)
    assert lost is not None
    assert lost.phase == "lost"


DAMAGED = {
    "empty": "",
    "cut": "{",
    "list": "[]",
    "keys": '{"run_id": "r1"}',
    "binary": "\xff",
    "phase": '{"phase": "asleep"}',
    "deep": "[" * 300_000,
    "deep value": '{"run_id": "r1", "sequence": 1, "phase": ' + "[" * 900 + "]" * 900 + "}",
    "digits": '{"run_id": "r1", "sequence": ' + "9" * 5000 + "}",
    "float": '{"run_id": "r1", "sequence": 1, "phase": "running", "started_unix_s": ' + "9" * 401 + "}",
    "infinite": '{"run_id": "r1", "sequence": 1, "phase": "running", "started_unix_s": 1e999}',
    "pid": '{"run_id": "r1", "sequence": 1, "phase": "running", "supervisor_pid": 99999999999}',
    "no pid": '{"run_id": "r1", "sequence": 1, "phase": "running", "supervisor_pid": -1}',
    "another": '{"run_id": "r2", "sequence": 1, "phase": "running"}',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=list(DAMAGED))
def test_a_damaged_state_is_named_not_believed(run: RunDir, content: str) -> None:
    run.state.write_text(content, encoding="latin-1")
    with pytest.raises(Refusal, match="state is damaged") as refused:
        runstate.current_state(run)
    assert str(run.state) in refused.value.frame.message


def test_damaged_runs_are_listed_beside_good_ones(rig: Rig) -> None:
    rig.launch(rig.spec("good"), follow=True)
    for name, content in DAMAGED.items():
        run = rig.run(f"r1-{name.replace(' ', '-')}")
        shutil.copytree(rig.run("good").path, run.path)
        run.state.write_text(content, encoding="latin-1")
    folder = rig.run("r2")
    shutil.copytree(rig.run("good").path, folder.path)
    folder.state.unlink()
    folder.state.mkdir()
    rig.run("s1").path.mkdir()
    answer = rig.status()
    assert [state.run_id for state in answer.states] == ["good"] == [spec.run_id for spec in answer.specs]
    damaged = sorted(f"r1-{name.replace(' ', '-')}" for name in DAMAGED)
    assert [line.partition(":")[0] for line in answer.unreadable] == [*damaged, "r2", "s1"]
    for run_id in ("r1-deep", "r1-pid", "r2"):
        request = f'{{"nonce": "{NONCE}", "root": "{rig.root}", "run_id": "{run_id}"}}'.encode()
        (frame,) = rig.call("follow", request, exit_code=1)
        assert frame.code == "no_such_run"  # type: ignore[union-attr]


def test_a_run_removed_under_a_follower_ends_it(rig: Rig) -> None:
    request = rig.launch_request(rig.spec("r1", SelftestJob(duration_s=60)), follow=True)
    with rig.start("launch", request) as child:
        state = rig.running("r1")
        assert child.stdout
        assert child.stderr
        while b'"kind":"state"' not in child.stdout.readline():  # until it follows
            assert child.poll() is None
        rig.run("r1").state.unlink()
        stdout, stderr = child.stdout.read(), child.stderr.read()
    kill(state.supervisor_pid or 0)
    assert (child.returncode, stderr) == (1, b"")
    assert b"removed meanwhile" in stdout


def test_a_full_disk_takes_the_final_state_in_place_of_the_old(run: RunDir) -> None:
    state = running(run)
    failure = Failure(kind="job", message="why", details=("long " * 200,))
    runstate.overwrite(run, state, phase="failed", failure=failure)
    written = runstate.read_state(run)
    assert written is not None
    assert (written.phase, written.sequence) == ("failed", state.sequence + 1)
    assert written.failure is not None
    assert (written.failure.message, written.failure.details) == ("why", ())
    json.loads(run.state.read_text())


def test_orphans_of_a_lost_run_are_only_its_own(rig: Rig) -> None:
    rig.launch(rig.spec("r1", SelftestJob(duration_s=60)))
    rig.launch(rig.spec("r10", SelftestJob(duration_s=60)))
    ours, other = rig.running("r1"), rig.running("r10")
    kill(ours.supervisor_pid or 0)
    lost = of_kind(rig.follow("r1"), "state")[-1].state
    assert str(ours.worker_pid) in lost.note
    assert str(other.worker_pid) not in lost.note
    assert rig.cancel("r1").survivors == ()
    assert rig.status("r10").states[0].phase == "running"
