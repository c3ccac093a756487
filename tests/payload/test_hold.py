"""One lease for several runs: who may use it, who ends with it, and when it ends by itself."""

import dataclasses
import os
import socket
import time
from pathlib import Path

import pytest

from remote_payload.gpus.leases import lease_holders
from remote_payload.heartbeat import is_held
from remote_payload.hold.door import ask
from remote_payload.refusal import Refusal
from remote_payload.schema import (
    ErrorFrame,
    Frame,
    LaunchedFrame,
    RunSpec,
    SchemaError,
    SelftestJob,
    from_json,
    to_json,
)
from remote_payload.schema.frames import HoldFrame
from remote_payload.schema.hold import HoldFacts, HoldJob, HoldRequest
from remote_payload.schema.top import TopRequest
from remote_payload.schema.waiting import Waiting
from tests.payload.rig import NONCE, Rig, kill
from tests.support.made_smi import TWO_GPUS, MadeSmi
from tests.support.patience import wait_for

GPUS = ["GPU-aaaa", "GPU-bbbb"]
SEEN = "(RUN / 'result' / 'seen').write_text(os.environ['CUDA_VISIBLE_DEVICES'])\n"


class Host:
    """A host of two free GPUs."""

    def __init__(self, rig: Rig, folder: Path) -> None:
        self.rig, self.smi, self.leases = rig, MadeSmi(folder), folder / "leases"

    def hold(self, run_id: str = "d.hold", idle_s: float = 600.0, gpus: int = 1) -> None:
        waiting = Waiting(gpus=gpus, leases=str(self.leases))
        job = to_json(HoldJob(idle_s=idle_s))
        self.rig.launch(self.rig.spec(run_id, job_kind="hold", job_json=job, waiting=waiting))
        wait_for(lambda: self.phase(run_id) == "running")

    def member(self, run_id: str, body: str = "", *, within: str = "d.hold") -> RunSpec:
        return self.rig.spec(run_id, python=self.rig.worker(f"worker-{run_id}", SEEN + body), within=within)

    def begin(self, spec: RunSpec, **secrets: str) -> Frame:
        (frame,) = self.rig.launch(spec, secrets=secrets)
        return frame

    def refused(self, spec: RunSpec) -> ErrorFrame:
        (frame,) = self.rig.launch(spec, exit_code=1)
        assert isinstance(frame, ErrorFrame)
        return frame

    def tell(self, run_id: str = "d.hold", *, goes_on: bool) -> HoldFacts:
        request = HoldRequest(nonce=NONCE, root=str(self.rig.root), run_id=run_id, goes_on=goes_on)
        (frame,) = self.rig.call("hold", request)
        assert isinstance(frame, HoldFrame)
        return frame.facts

    def phase(self, run_id: str) -> str:
        return self.rig.state(run_id).phase

    def leased(self) -> list[str]:
        return list(lease_holders(self.leases, GPUS)) if self.leases.exists() else []

    def ended(self, run_id: str) -> None:
        wait_for(lambda: self.rig.state(run_id).is_terminal and not is_held(self.rig.run(run_id).heartbeat))


@pytest.fixture
def host(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(rig, tmp_path)
    monkeypatch.setenv("PATH", f"{made.smi.tool.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return made


def test_members_use_one_lease_one_after_the_other_and_the_end_gives_it_back(host: Host) -> None:
    host.hold()
    seen = []
    body = "assert os.environ['TOKEN'] == 'hunter' + str(2)"
    for run_id in ("d.one", "d.two"):
        spec = dataclasses.replace(host.member(run_id, body), secret_names=("TOKEN",))
        assert isinstance(host.begin(spec, TOKEN="hunter2"), LaunchedFrame)
        host.ended(run_id)
        assert host.phase(run_id) == "succeeded"
        seen.append((host.rig.run(run_id).result / "seen").read_text())
        assert host.leased() == ["GPU-aaaa"]
    assert seen == ["0", "0"]
    told = host.tell(goes_on=False)
    assert (told.state.phase, told.members, host.leased()) == ("succeeded", (), [])
    assert not (host.rig.run("d.hold").path / "door").exists()
    written = [path.read_bytes() for path in (host.rig.root / "runs").rglob("*") if path.is_file()]
    assert not any(b"hunter2" in data for data in written)  # it went through the door
    again = host.begin(spec, TOKEN="hunter2")  # whose answer was lost: it is found, though its hold is over
    assert isinstance(again, LaunchedFrame)
    assert again.adopted
    refused = host.refused(host.member("d.three"))
    assert (refused.code, "d.hold" in refused.message) == ("lease_over", True)
    assert not host.rig.run("d.three").path.exists()


@pytest.mark.slow
def test_a_member_that_runs_keeps_a_hold_that_is_told_to_end_and_one_more_may_come(host: Host) -> None:
    host.hold()
    host.begin(host.member("d.one", "time.sleep(600)"))
    told = host.tell(goes_on=False)
    assert (told.state.phase, told.members) == ("running", ("d.one",))
    time.sleep(1.2)  # longer than it takes to look twice
    assert host.phase("d.hold") == "running"
    assert host.tell(goes_on=True).members == ("d.one",)
    host.rig.cancel("d.one", grace_s=0)
    host.begin(host.member("d.two"))
    host.ended("d.two")
    assert host.tell(goes_on=False).state.phase == "succeeded"


def test_who_cancels_the_hold_cancels_its_member(host: Host) -> None:
    host.hold()
    host.begin(host.member("d.one", "time.sleep(600)"))
    worker = host.rig.running("d.one").worker_pid
    assert host.rig.cancel("d.hold").state.phase == "cancelled"
    assert host.phase("d.one") == "cancelled"
    assert not Path(f"/proc/{worker}").exists()
    assert host.leased() == []


def test_a_members_processes_are_no_strays_on_its_holds_gpu(host: Host) -> None:
    """Also those that the member's own process cleared its environment for."""
    host.hold()
    body = "(RUN / 'pid').write_text(str(subprocess.Popen(['sleep', '600'], env={}).pid))\ntime.sleep(600)"
    host.begin(host.member("d.one", body))
    pid = host.rig.run("d.one").path / "pid"
    wait_for(lambda: pid.exists() and pid.read_text() != "")
    host.smi.say(TWO_GPUS, apps=f"GPU-aaaa, {pid.read_text()}, 100\nGPU-aaaa, {os.getpid()}, 100\n")
    request = TopRequest(nonce=NONCE, root=str(host.rig.root), leases=str(host.leases))
    (frame,) = host.rig.call("top", request)
    first = frame.facts.gpus[0]  # type: ignore[union-attr]
    assert (first.holder.run_id, [one.pid for one in first.strays]) == ("d.hold", [os.getpid()])


def test_a_hold_that_nobody_comes_to_ends_by_itself(host: Host) -> None:
    host.hold(idle_s=0.2)
    host.ended("d.hold")
    assert (host.phase("d.hold"), host.leased()) == ("succeeded", [])
    assert "no run came for 0.2 s" in host.rig.run("d.hold").events.read_text()


@pytest.mark.slow
def test_a_hold_without_its_supervisor_ends_with_its_member(host: Host) -> None:
    """The worker has the lease, too, and takes no more members."""
    host.hold()
    host.begin(host.member("d.one", "time.sleep(600)"))
    kill(host.rig.state("d.hold").supervisor_pid or 0)
    wait_for(lambda: host.rig.status("d.hold").states[0].phase == "lost")
    assert host.refused(host.member("d.two")).code == "lease_over"
    assert host.leased() == ["GPU-aaaa"]
    host.rig.cancel("d.one", grace_s=0)
    wait_for(lambda: host.leased() == [])


@pytest.mark.slow
def test_what_no_hold_answers(host: Host) -> None:
    assert host.refused(host.member("d.one", within="d.nothing")).code == "lease_over"
    host.rig.launch(host.rig.spec("r1", SelftestJob(duration_s=600)))
    assert host.refused(host.member("d.one", within="r1")).code == "lease_over"
    assert host.tell("r1", goes_on=False).state.phase == "running"


@pytest.mark.skipif(os.geteuid() != 0, reason="another user takes root")
def test_another_users_door_is_told_nothing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever listens would get the secrets of a launch."""
    run = host.rig.run("d.hold")
    run.path.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as theirs:
        with monkeypatch.context() as there:
            there.chdir(run.path)  # the whole path is longer than an address
            theirs.bind("door")
        os.seteuid(65534)  # the kernel keeps who it was that listened
        try:
            theirs.listen()
        finally:
            os.seteuid(0)
        with pytest.raises(Refusal, match="another user holds these GPUs"):
            ask(run, "launch", "secret")
        caller, _ = theirs.accept()
        with caller:
            assert caller.recv(9) == b""


def test_a_member_waits_for_nothing_of_its_own() -> None:
    with pytest.raises(ValueError, match="nothing of its own"):
        RunSpec(
            run_id="d.one",
            job_kind="selftest",
            job_json="{}",
            python="python3",
            payload_sha256="",
            environment={},
            launched_by="me@here",
            created_unix_s=1.0,
            within="d.hold",
            waiting=Waiting(gpus=1),
        )


@pytest.mark.parametrize("idle_s", [0.0, -1.0])
def test_a_hold_of_no_time(idle_s: float) -> None:
    with pytest.raises(SchemaError, match="idle_s"):
        from_json(HoldJob, f'{{"kind": "hold", "idle_s": {idle_s}}}')
