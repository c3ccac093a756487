"""What a run waits for, against a small nvidia-smi on PATH (none, hung, failing, busy), real locks and real states."""

import calendar
import dataclasses
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remote_payload import processes
from remote_payload.failure import JobFailure
from remote_payload.gpus.leases import Leases, lease_holders
from remote_payload.schema import Event, RunSpec, RunState, SelftestJob, to_json
from remote_payload.schema.waiting import Holder, Waiting
from remote_payload.waiting import Gate, Stopped, start_of
from tests.payload.rig import command_lines
from tests.support.made_smi import TWO_GPUS, MadeSmi
from tests.support.patience import wait_for


class Host:
    """A host whose nvidia-smi says what the test writes."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.events: list[Event] = []
        self.told: list[str] = []
        self.tool = MadeSmi(folder)
        monkeypatch.setenv("PATH", self.tool.path)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)

    def gate(self, run_id: str = "ours", environment: dict[str, str] | None = None, **wish: Any) -> Gate:
        return Gate(self.folder, self.spec(run_id, environment, **wish), self.events.append, self.told.append)

    def spec(self, run_id: str, environment: dict[str, str] | None = None, **wish: Any) -> RunSpec:
        return RunSpec(
            run_id=run_id,
            job_kind="selftest",
            job_json=to_json(SelftestJob()),
            python="python3",
            payload_sha256="0" * 64,
            environment=environment or {},
            launched_by="ann@laptop",
            created_unix_s=1.0,
            waiting=Waiting(leases=str(self.folder / "leases"), **wish),
        )

    def ended(self, run_id: str, phase: Any) -> None:
        run = self.folder / "runs" / run_id
        run.mkdir(parents=True, exist_ok=True)
        (run / "state.json").write_text(to_json(RunState(run_id=run_id, sequence=1, phase=phase)))


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


def at_once(_: float) -> None:
    raise AssertionError("it waits")


def doing(*steps: Callable[[], object]) -> Callable[[float], None]:
    """A pause in which the next step happens instead of time passing."""
    left = list(steps)

    def pause(_: float) -> None:
        left.pop(0)()

    return pause


def test_free_gpus_are_leased_and_given_by_index(host: Host) -> None:
    gate = host.gate(gpus=2)
    gate.wait(at_once)
    assert gate.environment["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert gate.environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert set(lease_holders(host.folder / "leases", ["GPU-aaaa", "GPU-bbbb"])) == {"GPU-aaaa", "GPU-bbbb"}
    with pytest.raises(JobFailure, match=r"1 GPU not free: GPU 0 leased by \S+ run ours; GPU 1 leased by"):
        host.gate("other", gpus=1).wait(at_once)
    gate.close()
    host.gate("other", gpus=1).wait(at_once)


def test_a_planted_lease_is_a_reason_and_no_end_while_another_device_may_become_free(host: Host) -> None:
    leases = host.folder / "leases"
    leases.mkdir(mode=0o1777)
    (leases / "GPU-aaaa.lease").symlink_to(host.folder)
    host.tool.say(TWO_GPUS, apps="GPU-bbbb, 99999998, 100\n")
    with pytest.raises(JobFailure, match=r"GPU 0 cannot be leased: .*GPU-aaaa\.lease'; GPU 1 used by"):
        host.gate(gpus=1).wait(at_once)
    host.tool.say(TWO_GPUS)
    both = host.gate(gpus=2, when_free=True)
    with pytest.raises(JobFailure, match=r"the GPU leases cannot be used: .*GPU-aaaa\.lease"):
        both.wait(at_once)
    both.close()
    host.tool.say(TWO_GPUS, apps="GPU-bbbb, 99999998, 100\n")
    gate = host.gate(gpus=1, when_free=True)
    gate.wait(doing(lambda: host.tool.say(TWO_GPUS)))
    assert gate.environment["CUDA_VISIBLE_DEVICES"] == "1"
    gate.close()


def test_the_mask_of_the_host_is_kept(host: Host) -> None:
    gate = host.gate(gpus=1, environment={"CUDA_VISIBLE_DEVICES": "1"})
    gate.wait(at_once)
    assert gate.environment["CUDA_VISIBLE_DEVICES"] == "1"
    with pytest.raises(JobFailure, match=r"2 GPUs asked for, this host shows 1 through CUDA_VISIBLE_DEVICES=1"):
        host.gate(gpus=2, environment={"CUDA_VISIBLE_DEVICES": "1"}).wait(at_once)


def test_used_gpus_are_waited_for(host: Host) -> None:
    host.tool.say(TWO_GPUS, apps="GPU-aaaa, 99999999, 100\nGPU-bbbb, 99999998, 100\n")
    with pytest.raises(JobFailure, match=r"not free: GPU 0 used by somebody's pid 99999999; GPU 1 used by") as caught:
        host.gate(gpus=1).wait(at_once)
    assert "--when-free" in (caught.value.failure.hint or "")
    gate = host.gate(gpus=1, when_free=True)
    gate.wait(doing(lambda: None, lambda: host.tool.say(TWO_GPUS, apps="GPU-aaaa, 99999999, 100\n")))
    assert gate.environment["CUDA_VISIBLE_DEVICES"] == "1"
    assert host.told == [
        "waits for 1 GPU: GPU 0 used by somebody's pid 99999999; GPU 1 used by somebody's pid 99999998"
    ]
    assert [event.name for event in host.events] == ["gpus_leased"]


def test_who_came_first_is_served_first_though_fewer_would_do(host: Host) -> None:
    bob = Holder(run_id="first", user="bob", uid=os.getuid(), pid=1, since_unix_s=1.0, gpus=8)
    before = Leases(host.folder / "leases", bob)
    before.queue.draw()
    with pytest.raises(JobFailure, match="1 run stands in the queue before this one, the first: bob's run first"):
        host.gate(gpus=1).wait(at_once)
    gate = host.gate(gpus=1, when_free=True)
    gate.wait(doing(before.close))
    assert gate.environment["CUDA_VISIBLE_DEVICES"] == "0"


def test_waiting_has_an_end(host: Host) -> None:
    host.tool.say(TWO_GPUS, apps="GPU-aaaa, 99999999, 100\nGPU-bbbb, 99999998, 100\n")
    with pytest.raises(JobFailure, match=r"1 GPU not free within 0 s: GPU 0 used"):
        host.gate(gpus=1, when_free=True, longest_s=0.0).wait(at_once)


def test_no_tool_a_failing_and_a_hung_one_are_three_answers(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.tool.run("echo 'NVRM: version mismatch'; exit 18")
    with pytest.raises(JobFailure, match=r"not free: nvidia-smi: .* ended with exit code 18: NVRM"):
        host.gate(gpus=1).wait(at_once)
    monkeypatch.setattr("remote_payload.gpus.queue.LOOK_S", 0.3)
    host.tool.run("trap '' TERM; sleep 60 & wait")
    with pytest.raises(JobFailure, match=r"not free: nvidia-smi: .* gave no answer within 0.3 s"):
        host.gate(gpus=1).wait(at_once)
    host.tool.tool.unlink()
    with pytest.raises(JobFailure, match="this host has no nvidia-smi"):
        host.gate(gpus=1, when_free=True).wait(at_once)


def test_a_hung_tool_that_comes_back_is_waited_for(host: Host) -> None:
    host.tool.run("exit 9")
    gate = host.gate(gpus=1, when_free=True)
    gate.wait(doing(host.tool.answer))
    assert gate.environment["CUDA_VISIBLE_DEVICES"] == "0"


@pytest.mark.parametrize("gpus", ["", TWO_GPUS.splitlines()[0] + "\n"])
def test_a_wrong_answer_in_the_middle_of_a_night_is_waited_for(host: Host, gpus: str) -> None:
    host.tool.say(TWO_GPUS, apps="GPU-aaaa, 99999999, 100\nGPU-bbbb, 99999998, 100\n")
    gate = host.gate(gpus=2, when_free=True)
    gate.wait(doing(lambda: host.tool.say(gpus), host.tool.tool.unlink, host.tool.answer))
    assert gate.environment["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_what_can_never_be_is_said_before_anything_is_waited_for(host: Host) -> None:
    later = time.time() + 1000
    with pytest.raises(JobFailure, match="3 GPUs asked for, this host shows 2"):
        host.gate(gpus=3, when_free=True, start_unix_s=later).wait(at_once)
    with pytest.raises(JobFailure, match="cannot wait for nosuch: no run of this id"):
        host.gate(after=("nosuch",), start_unix_s=later).wait(at_once)
    host.ended("ours", "running")
    with pytest.raises(JobFailure, match="a run cannot wait for its own end"):
        host.gate(after=("ours",)).wait(at_once)


def test_more_memory_than_any_gpu_has_is_said_at_once(host: Host) -> None:
    with pytest.raises(JobFailure, match=r"1 GPU asked for, of 200\.0 GiB, this host has 0"):
        host.gate(gpus=1, min_free_bytes=200 << 30, when_free=True).wait(at_once)


def test_mig_devices_do_not_count_for_more_than_one(host: Host) -> None:
    listing = "".join(
        f"GPU {index}: NVIDIA H200 (UUID: GPU-{name * 4})\n  MIG 1g.18gb     Device  0: (UUID: MIG-{name})\n"
        for index, name in enumerate("ab")
    )
    host.tool.say(TWO_GPUS, listing=listing)
    with pytest.raises(JobFailure, match=r"2 GPUs asked for, this host shows 0, and 2 MIG devices, of which a process"):
        host.gate(gpus=2, when_free=True).wait(at_once)


def test_a_cancel_beside_a_slow_tool_is_heard_at_once(host: Host) -> None:
    host.tool.run("sleep 60")
    beats: list[float] = []

    def meanwhile() -> None:
        beats.append(time.monotonic())
        if len(beats) == 4:
            raise Stopped

    began_s = time.monotonic()
    with pytest.raises(Stopped):
        host.gate(gpus=1, when_free=True).wait(at_once, meanwhile)
    assert time.monotonic() - began_s < 4.0
    wait_for(lambda: str(host.tool.tool) not in str(command_lines()))


def test_a_lease_is_seen_to_be_in_use_while_its_run_goes_on(host: Host) -> None:
    gate = host.gate(gpus=1)
    gate.wait(at_once)
    lease = host.folder / "leases" / "GPU-aaaa.lease"
    for is_due in (True, False):  # at the first round, then once an hour
        os.utime(lease, (1.0, 1.0))
        gate.keep()
        assert (lease.stat().st_mtime > 1e9) == is_due
    gate.close()


def test_a_lost_gpu_is_passed_over(host: Host) -> None:
    first, second = TWO_GPUS.splitlines()
    host.tool.say(f"{first.replace('GPU-aaaa', '[Unknown Error]')}\n{second}\n")
    gate = host.gate(gpus=1)
    gate.wait(at_once)
    assert gate.environment["CUDA_VISIBLE_DEVICES"] == "1"
    with pytest.raises(JobFailure, match=r"GPU 0 does not tell its UUID"):
        host.gate("other", gpus=2).wait(at_once)


def test_a_stop_while_waiting(host: Host) -> None:
    def stop() -> None:
        raise Stopped

    host.tool.say(TWO_GPUS, apps="GPU-aaaa, 99999999, 100\nGPU-bbbb, 99999998, 100\n")
    gate = host.gate(gpus=1, when_free=True)
    with pytest.raises(Stopped):
        gate.wait(doing(stop))
    gate.close()
    assert list((host.folder / "leases" / "queue").iterdir()) == []


def test_a_lease_folder_that_cannot_be_used(host: Host) -> None:
    (host.folder / "leases").write_text("a file")
    with pytest.raises(JobFailure, match="the GPU leases cannot be used") as caught:
        host.gate(gpus=1).wait(at_once)
    assert "`leases`" in (caught.value.failure.hint or "")


def test_after_other_runs_however_they_ended(host: Host) -> None:
    host.ended("one", "failed")
    host.gate(after=("one",)).wait(at_once)
    with pytest.raises(JobFailure, match="cannot wait for two: no run of this id"):
        host.gate(after=("one", "two")).wait(at_once)


def test_a_lost_run_is_over_when_nothing_of_it_lives(host: Host) -> None:
    """As a sweep whose supervisor was killed: its worker drives on."""
    host.ended("one", "lost")
    run = host.folder / "runs" / "one"
    with subprocess.Popen(["sleep", "60"], env={processes.MARK: str(run)}) as worker:

        def end() -> None:
            worker.kill()
            worker.wait()

        host.gate(after=("one",)).wait(doing(end))
    assert host.told == [f"waits for the end of one, lost and yet alive: pid {worker.pid}; `cancel` ends it"]
    host.gate(after=("one",)).wait(at_once)


@pytest.mark.parametrize(
    ("told", "due"),
    [
        ("22:00", "2026-11-29 22:00"),
        ("08:30", "2026-11-30 08:30"),
        ("2026-12-24T18:05", "2026-12-24 18:05"),
    ],
)
def test_a_time_of_the_hosts_own_zone(monkeypatch: pytest.MonkeyPatch, told: str, due: str) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        now_s = time.mktime(time.strptime("2026-11-29 12:00", "%Y-%m-%d %H:%M"))
        due_s = start_of(Waiting(start_local=told), now_s)
        assert due_s is not None
        assert time.strftime("%Y-%m-%d %H:%M", time.localtime(due_s)) == due
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


@pytest.mark.parametrize(
    ("told", "now_utc", "due_utc"),
    [
        ("02:30", "2026-03-28 12:00", "2026-03-30 00:30"),  # skipped on the 29th
        ("02:30", "2026-10-24 12:00", "2026-10-25 00:30"),  # twice on the 25th: the first
        ("02:30", "2026-10-25 00:45", "2026-10-25 01:30"),  # between the two: the second
        ("02:30", "2026-10-25 01:45", "2026-10-26 01:30"),
        ("2026-10-25T02:30", "2026-10-24 12:00", "2026-10-25 00:30"),
        ("2026-10-25T02:30", "2026-10-25 00:45", "2026-10-25 01:30"),
        ("00:10", "2026-10-24 22:05", "2026-10-24 22:10"),
    ],
)
def test_a_time_around_a_change_of_the_hosts_clock(
    monkeypatch: pytest.MonkeyPatch, told: str, now_utc: str, due_utc: str
) -> None:
    now_s, due_s = (calendar.timegm(time.strptime(text, "%Y-%m-%d %H:%M")) for text in (now_utc, due_utc))
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert start_of(Waiting(start_local=told), now_s) == due_s
        with pytest.raises(JobFailure, match="the clocks of this host skip the time of the start: 2026-03-29T02:30"):
            start_of(Waiting(start_local="2026-03-29T02:30"), now_s)
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


def waiting_run(host: Host, run_id: str, *after: str) -> None:
    """A run of the host that waits for others, its supervisor this very process."""
    run = host.folder / "runs" / run_id
    run.mkdir(parents=True)
    me = processes.read_stat(os.getpid())
    assert me is not None
    state = RunState(
        run_id=run_id,
        sequence=1,
        phase="queued",
        boot_id=processes.boot_id(),
        supervisor_pid=me.pid,
        supervisor_start_ticks=me.start_ticks,
    )
    (run / "state.json").write_text(to_json(state))
    (run / "spec.json").write_text(to_json(host.spec(run_id, after=after)))


def test_runs_that_wait_for_each_other(host: Host) -> None:
    waiting_run(host, "one", "two")
    waiting_run(host, "two", "other", "ours")
    waiting_run(host, "other")
    with pytest.raises(JobFailure, match="these runs wait for each other: ours -> one -> two -> ours"):
        host.gate(after=("one",)).wait(at_once)
    with pytest.raises(AssertionError, match="it waits"):
        host.gate("outside", after=("one",)).wait(at_once)
    with pytest.raises(JobFailure, match="a run cannot wait for its own end: one"):
        host.gate("one", after=("one",)).wait(at_once)


def test_a_time_that_is_none() -> None:
    with pytest.raises(JobFailure, match="`HH:MM`"):
        start_of(Waiting(start_local="25:00"), 0.0)


def test_a_start_in_the_past_is_told_and_not_waited_for(host: Host) -> None:
    host.gate(start_unix_s=time.time() - 3600).wait(at_once)
    assert [event.name for event in host.events] == ["start_in_the_past"]


def test_a_start_is_waited_for(host: Host) -> None:
    began_s = time.time()
    host.gate(start_unix_s=began_s + 0.2).wait(time.sleep)
    assert time.time() >= began_s + 0.2
    assert host.told[0].startswith("starts at ")


def test_a_clock_that_is_set_while_waiting_is_told(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    real, ahead_s = time.time, [0.0]
    monkeypatch.setattr("remote_payload.waiting.time.time", lambda: real() + ahead_s[0])
    host.gate(start_unix_s=real() + 1000).wait(lambda _: ahead_s.__setitem__(0, 2000.0))
    names = [event.name for event in host.events]
    assert names == ["clock_step", "late_start"]
    assert "+2000 s" in host.events[0].message
    assert host.events[1].message.endswith("1000 s late, the host's clock was set by +2000 s")


def test_a_late_start_of_a_host_that_slept(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it sleeps both clocks go on."""
    real, boot, asleep_s = time.time, time.clock_gettime, [0.0]
    monkeypatch.setattr("remote_payload.waiting.time.time", lambda: real() + asleep_s[0])
    monkeypatch.setattr("remote_payload.waiting.time.clock_gettime", lambda clock: boot(clock) + asleep_s[0])
    host.gate(start_unix_s=real() + 1000).wait(lambda _: asleep_s.__setitem__(0, 2000.0))
    assert [event.name for event in host.events] == ["late_start"]
    assert host.events[0].message.endswith("1000 s late, the host was asleep")


@pytest.mark.parametrize(
    "wish",
    [
        {"when_free": True},
        {"gpus": -1},
        {"gpus": 1, "longest_s": 5.0},
        {"gpus": 1, "min_free_bytes": 0},
        {"leases": "here"},
        {"after": ("../x",)},
        {"start_unix_s": 1.0, "start_local": "22:00"},
    ],
)
def test_wishes_that_make_no_sense(wish: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"`|once"):
        dataclasses.replace(Waiting(), **wish)
