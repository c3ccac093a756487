"""What is believed of a state whose supervisor is gone, elsewhere, or from before a reboot."""

import dataclasses
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from remote_payload import heartbeat, processes
from remote_payload.liveness import current_state
from remote_payload.rundir import RunDir
from remote_payload.runstate import advance
from remote_payload.schema import RunState, SelftestJob, from_json
from tests.payload.rig import Rig, kill, of_kind


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
    return advance(run, dataclasses.replace(state, **changes))


def beat(run: RunDir, count: int, host: str) -> None:
    run.heartbeat.write_text(f"{count} {time.clock_gettime(time.CLOCK_BOOTTIME)} {host}\n")


def test_a_dead_supervisor_means_lost_for_everybody(run: RunDir) -> None:
    running(run)
    lost = current_state(run)
    assert lost is not None
    assert (lost.phase, lost.sequence) == ("lost", 6)
    assert from_json(RunState, run.state.read_text()) == lost
    assert current_state(run) == lost


def test_a_reboot_is_named_as_the_cause(run: RunDir) -> None:
    running(run, boot_id="another-boot")
    lost = current_state(run)
    assert lost is not None
    assert lost.failure is not None
    assert lost.failure.message.endswith("the host rebooted")


def test_a_held_lock_is_life_whatever_the_state_says(run: RunDir) -> None:
    state = running(run, boot_id="another-boot")
    holder = heartbeat.Heartbeat(run.heartbeat)
    assert current_state(run) == state
    del holder


def test_a_supervisor_on_another_host_is_believed_while_it_beats(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.4)
    state = running(run, boot_id="the-boot-of-that-host")
    beat(run, 7, "another-host")
    assert heartbeat.beat_age_s(run.heartbeat) is None
    later = threading.Timer(0.3, beat, (run, 8, "another-host"))
    later.start()
    assert current_state(run) == state
    later.join()
    lost = current_state(run)
    assert lost is not None
    assert lost.phase == "lost"


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
