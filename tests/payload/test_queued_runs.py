"""Runs that wait, as real detached processes: for each other, for GPUs of a made nvidia-smi; what ends the waiting."""

import os
import time
from pathlib import Path

import pytest

from remote_payload.gpus.leases import lease_holders
from remote_payload.heartbeat import read_beat
from remote_payload.schema import RunSpec, SelftestJob, SweepJob, SweepPoint, SweepUnit, to_json
from remote_payload.schema.waiting import Waiting
from tests.payload.rig import Rig, command_lines, is_alive, kill
from tests.support.made_smi import MadeSmi
from tests.support.patience import wait_for


@pytest.fixture
def leases(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host of two free GPUs; the folder of its leases."""
    monkeypatch.setenv("PATH", f"{MadeSmi(tmp_path).tool.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path / "leases"


def asking(rig: Rig, run_id: str, leases: Path, *, gpus: int, when_free: bool, body: str = "") -> RunSpec:
    """A run that writes down which devices it sees, then does `body`."""
    seen = "(RUN / 'result' / 'seen').write_text(os.environ['CUDA_VISIBLE_DEVICES'])\n"
    waiting = Waiting(gpus=gpus, when_free=when_free, leases=str(leases))
    return rig.spec(run_id, python=rig.worker(f"worker-{run_id}", seen + body), waiting=waiting)


def phase(rig: Rig, run_id: str) -> str:
    return rig.state(run_id).phase


def test_leases_last_as_long_as_the_run_and_the_next_in_the_queue_follows(rig: Rig, leases: Path) -> None:
    rig.launch(asking(rig, "r1", leases, gpus=2, when_free=False, body="time.sleep(600)"))
    wait_for(lambda: phase(rig, "r1") == "running")
    rig.launch(asking(rig, "r2", leases, gpus=1, when_free=True))
    wait_for(lambda: phase(rig, "r2") == "queued" and "r1" in (rig.state("r2").note or ""))
    assert rig.state("r2").note == (
        "waits for 1 GPU: GPU 0 leased by root's run r1; GPU 1 leased by root's run r1".replace("root", _me())
    )
    rig.launch(asking(rig, "r3", leases, gpus=1, when_free=False))
    wait_for(lambda: rig.state("r3").is_terminal)
    refused = rig.state("r3")
    assert (refused.phase, refused.failure.kind if refused.failure else None) == ("failed", "machine")
    assert "r2" in (refused.failure.message if refused.failure else "")
    rig.cancel("r1", grace_s=0)
    wait_for(lambda: phase(rig, "r2") == "succeeded")
    assert (rig.run("r2").result / "seen").read_text() in ("0", "1")  # whichever r1 gave back first
    assert rig.state("r2").note is None
    assert lease_holders(leases, ["GPU-aaaa", "GPU-bbbb"]) == {}


def test_a_sweeps_units_share_its_lease(rig: Rig, leases: Path) -> None:
    point = SweepPoint(point_id="p0", changes_json="{}")
    unit = SweepUnit(unit_id="u0", block=0, changes_json="{}", points=("p0",))
    sweep = SweepJob(base_json=to_json(SelftestJob(duration_s=600)), units=(unit,), points=(point,))
    waiting = Waiting(gpus=1, leases=str(leases))
    rig.launch(
        rig.spec(
            "s1",
            job_kind="sweep",
            job_json=to_json(sweep),
            environment={"CUDA_VISIBLE_DEVICES": "1,0"},
            waiting=waiting,
        )
    )
    wait_for(lambda: rig.run("s1.u0.0").state.exists() and phase(rig, "s1.u0.0") == "running")
    worker = rig.state("s1.u0.0").worker_pid
    seen = Path(f"/proc/{worker}/environ").read_bytes().decode().split("\0")
    assert "CUDA_VISIBLE_DEVICES=1" in seen  # the first of the host's own order, and not all that it names
    assert "EAGLE3_LEASED_GPUS=GPU-bbbb" in seen
    assert list(lease_holders(leases, ["GPU-aaaa", "GPU-bbbb"])) == ["GPU-bbbb"]
    rig.cancel("s1", grace_s=0)
    assert lease_holders(leases, ["GPU-aaaa", "GPU-bbbb"]) == {}


def test_a_killed_supervisor_leaves_its_devices_to_the_worker_and_both_leave_nothing(rig: Rig, leases: Path) -> None:
    rig.launch(asking(rig, "r1", leases, gpus=2, when_free=False, body="time.sleep(600)"))
    wait_for(lambda: phase(rig, "r1") == "running")
    state = rig.state("r1")
    assert state.supervisor_pid is not None
    assert state.worker_pid is not None
    kill(state.supervisor_pid)
    wait_for(lambda: not is_alive(state.supervisor_pid or 0))
    assert set(lease_holders(leases, ["GPU-aaaa", "GPU-bbbb"])) == {"GPU-aaaa", "GPU-bbbb"}
    kill(state.worker_pid)
    wait_for(lambda: lease_holders(leases, ["GPU-aaaa", "GPU-bbbb"]) == {})


def test_waiting_does_not_wake_for_every_look(rig: Rig, leases: Path, tmp_path: Path) -> None:
    """The end of nvidia-smi is a signal to whoever started it; it is not the end of a pause."""
    counted = tmp_path / "looks"
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.write_text(tool.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\necho x >>{counted}\n"))
    (tmp_path / "apps").write_text("GPU-aaaa, 99999999, 100\nGPU-bbbb, 99999998, 100\n")
    rig.launch(asking(rig, "r1", leases, gpus=1, when_free=True))
    wait_for(lambda: phase(rig, "r1") == "queued")
    time.sleep(3)
    # A look asks three times, and there is one every two seconds: no busy machine makes them more.
    assert len(counted.read_text().splitlines()) <= 15


def test_a_slow_tool_stops_neither_beat_nor_cancel_and_dies_with_the_supervisor(
    rig: Rig, leases: Path, tmp_path: Path
) -> None:
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.write_text("#!/bin/sh\nexec sleep 4.97\n")
    rig.launch(asking(rig, "r1", leases, gpus=1, when_free=True))
    count = read_beat(rig.run("r1").heartbeat)
    wait_for(lambda: read_beat(rig.run("r1").heartbeat) != count)
    began_s = time.monotonic()
    assert rig.cancel("r1").state.phase == "cancelled"
    assert time.monotonic() - began_s < 4.0
    wait_for(lambda: b"sleep\x004.97\x00" not in command_lines())
    tool.write_text("#!/bin/sh\nexec sleep 597.5\n")
    rig.launch(asking(rig, "r2", leases, gpus=1, when_free=True))
    wait_for(lambda: b"sleep\x00597.5\x00" in command_lines())
    kill(rig.state("r2").supervisor_pid or 0)
    wait_for(lambda: b"sleep\x00597.5\x00" not in command_lines())


def test_a_waiting_run_is_cancelled_at_once_and_never_starts(rig: Rig) -> None:
    rig.launch(rig.spec("r1", waiting=Waiting(start_local="2099-01-01T00:00")))
    wait_for(lambda: phase(rig, "r1") == "queued")
    assert (rig.state("r1").note or "").startswith("starts at 2099-01-01 00:00:00")
    assert rig.status("r1").states[0].phase == "queued"
    answer = rig.cancel("r1")
    assert (answer.state.phase, answer.state.note) == ("cancelled", "cancelled while it waited")
    assert not rig.run("r1").stdout.exists()


def test_a_run_after_another_one(rig: Rig) -> None:
    rig.launch(rig.spec("r1", SelftestJob(duration_s=600)))
    rig.launch(rig.spec("r2", waiting=Waiting(after=("r1",))))
    wait_for(lambda: phase(rig, "r2") == "queued")
    assert rig.state("r2").note == "waits for the end of r1"
    rig.cancel("r1", grace_s=0)
    wait_for(lambda: phase(rig, "r2") == "succeeded")
    rig.launch(rig.spec("r3", waiting=Waiting(after=("r9",))))
    wait_for(lambda: phase(rig, "r3") == "failed")
    assert "cannot wait for r9: no run of this id" in str(rig.state("r3").failure)


def _me() -> str:
    import pwd  # noqa: PLC0415 - not on every system that collects these tests

    return pwd.getpwuid(os.getuid()).pw_name
