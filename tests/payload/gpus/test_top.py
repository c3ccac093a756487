"""What `top` tells: devices, leases, who waits, and who uses a leased device all the same."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orchestrator.report.top_text import top_text
from remote_payload.gpus.leases import Leases
from remote_payload.schema import RunState
from remote_payload.schema.top import TopFacts, TopRequest
from remote_payload.schema.waiting import Holder
from tests.payload.rig import NONCE, Rig
from tests.support.made_smi import MadeSmi

NOBODY = 2**22 + 7
"""No kernel gives this pid."""


def holder(run_id: str, pid: int) -> Holder:
    return Holder(run_id=run_id, user="ann", uid=os.getuid(), pid=pid, since_unix_s=1.0, gpus=1)


def asked(rig: Rig, leases: Path, path: str) -> Any:
    request = TopRequest(nonce=NONCE, root=str(rig.root), leases=str(leases))
    (frame,) = rig.call("top", request, env={**os.environ, "PATH": path})
    return frame.facts  # type: ignore[union-attr]


@pytest.fixture
def tool(tmp_path: Path) -> str:
    return MadeSmi(tmp_path).path


def test_who_holds_who_waits_and_who_strays(rig: Rig, tmp_path: Path, tool: str) -> None:
    folder = tmp_path / "leases"
    ours, waiting = Leases(folder, holder("r1", os.getpid())), Leases(folder, holder("r2", os.getpid()))
    ours.take(["GPU-aaaa"], 1)
    waiting.queue.draw()
    child = subprocess.Popen(["sleep", "600"])
    try:
        (tmp_path / "apps").write_text(f"GPU-aaaa, {child.pid}, 100\nGPU-aaaa, 1, 200\nGPU-bbbb, 1, 300\n")
        facts = asked(rig, folder, tool)
    finally:
        child.kill()
        child.wait()
    first, second = facts.gpus
    assert (first.leased, first.holder.run_id, [item.pid for item in first.strays]) == (True, "r1", [1])
    assert (second.leased, second.holder, second.strays) == (False, None, ())
    assert "pid 1" in second.why_not_free
    assert [item.run_id for item in facts.queue] == ["r2"]
    assert (facts.gpu_answer, facts.lease_problem) == ("ok", None)
    ours.close()
    waiting.close()


def test_a_killed_supervisors_worker_is_no_stray(rig: Rig, tmp_path: Path, tool: str) -> None:
    ours = Leases(tmp_path / "leases", holder("r1", NOBODY))
    ours.take(["GPU-aaaa"], 1)
    worker = subprocess.Popen(["sleep", "600"], env={"EAGLE3_RUN_ID": "r1"})
    try:
        (tmp_path / "apps").write_text(f"GPU-aaaa, {worker.pid}, 100\nGPU-aaaa, {os.getpid()}, 100\n")
        first = asked(rig, tmp_path / "leases", tool).gpus[0]
    finally:
        worker.kill()
        worker.wait()
    assert ([item.pid for item in first.strays], first.hidden) == ([os.getpid()], False)
    ours.close()


def test_where_processes_are_hidden_nobody_is_called_a_stray(rig: Rig, tmp_path: Path, tool: str) -> None:
    """With `hidepid` another user's supervisor and worker look as if they were not there."""
    theirs = Leases(tmp_path / "leases", holder("r1", NOBODY))
    theirs.take(["GPU-aaaa"], 1)
    (tmp_path / "apps").write_text(f"GPU-aaaa, {NOBODY - 1}, 100\n")
    first = asked(rig, tmp_path / "leases", tool).gpus[0]
    assert (first.strays, first.hidden) == ((), True)
    theirs.close()


def test_a_host_where_nobody_ever_leased(rig: Rig, tmp_path: Path, tool: str) -> None:
    facts = asked(rig, tmp_path / "leases", tool)
    assert [(use.leased, use.why_not_free) for use in facts.gpus] == [(False, None), (False, None)]
    assert not (tmp_path / "leases").exists()


def test_a_planted_lease_makes_its_own_device_not_free_and_hides_no_other(rig: Rig, tmp_path: Path, tool: str) -> None:
    folder = tmp_path / "leases"
    folder.mkdir()
    (folder / "GPU-aaaa.lease").symlink_to(tmp_path / "gpus")
    (folder / "GPU-gone.lease").symlink_to(tmp_path / "nowhere")
    facts = asked(rig, folder, tool)
    first, second = facts.gpus
    assert (first.leased, second.why_not_free, facts.lease_problem) == (False, None, None)
    assert first.why_not_free.startswith("cannot be leased: ")
    text = top_text("gpu1", facts, [])
    lines = [line for line in text.splitlines() if ".lease" in line]
    assert [line.split()[0] for line in lines] == ["0", "!"]
    assert "! no lease: GPU-gone, not told of by nvidia-smi: " in lines[1]
    assert "cannot be read" not in text


def test_leases_that_cannot_be_read_are_told(rig: Rig, tmp_path: Path, tool: str) -> None:
    (tmp_path / "leases").write_text("")
    facts = asked(rig, tmp_path / "leases", tool)
    assert "leases" in facts.lease_problem
    assert "! leases and queue cannot be read: " in top_text("gpu1", facts, [])


def test_a_host_without_the_tool(rig: Rig, tmp_path: Path) -> None:
    ours = Leases(tmp_path / "leases", holder("r1", os.getpid()))
    ours.take(["GPU-aaaa"], 1)
    facts = asked(rig, tmp_path / "leases", "/usr/bin:/bin")
    assert (facts.gpu_answer, facts.gpus) == ("no_nvidia_smi", ())
    assert {name: who.run_id for name, who in facts.unseen.items()} == {"GPU-aaaa": "r1"}
    queued = RunState(run_id="r2", sequence=0, phase="queued")
    text = top_text("gpu1", facts, [queued])
    assert "leased, and not told of by nvidia-smi: GPU-aaaa: ann, r1, for " in text
    assert "unknown" not in text
    ours.close()


def test_of_a_login_node_of_slurm_nothing_is_said_that_its_gpus_would_tell() -> None:
    facts = TopFacts(hostname="login1", time_unix_s=100.0, gpu_answer="no_nvidia_smi")
    text = top_text("cluster", facts, [RunState(run_id="r1", sequence=1, phase="queued")], "slurm")
    assert "Slurm hands out the GPUs of this cluster" in text
    assert "r1" in text
    assert [words for words in ("nvidia-smi", "nobody") if words in text] == []


def test_what_began_after_the_look_begins_now_and_a_planted_ticket_is_told() -> None:
    """Clocks differ, and runs are asked of after the GPUs."""
    late = Holder(run_id="r1", user="ann", uid=1, pid=1, since_unix_s=100.5, gpus=1)
    facts = TopFacts(
        hostname="h",
        time_unix_s=100.0,
        gpu_answer="ok",
        queue=(late,),
        unseen={"GPU-a": late},
        passed_over=("'x' is none",),
    )
    text = top_text("gpu1", facts, [RunState(run_id="r2", sequence=1, phase="running", started_unix_s=100.08)])
    assert "GPU-a: ann, r1, from now" in text
    assert "! passed over in the queue: 'x' is none" in text
    assert [line.split()[-1] for line in text.splitlines() if line.startswith(("1 ", "r2"))] == ["now", "now"]
    assert " -0" not in text
