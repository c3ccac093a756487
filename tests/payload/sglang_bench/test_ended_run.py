"""Whatever ends a run's supervised worker ends the server as well, with all below it."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from remote_payload import processes
from remote_payload.schema import to_json
from remote_payload.schema.bench_job import BenchJob
from tests.payload.rig import Rig, is_alive, wait_for
from tests.payload.sglang_bench.conftest import RECORDED, STAND_IN
from tests.payload.sglang_bench.test_launch import NAMESPACES, can


def launched(rig: Rig, prefix: tuple[str, ...] = (), **changes: Any) -> dict[str, int]:
    """A run whose server listens and never becomes healthy, ignores TERM, and has a child that does, too."""
    told = {
        "log": str(RECORDED / "start.log"),
        "info": str(RECORDED / "server_info.json"),
        "child": True,
        "ignores_term": True,
        "starting_s": 600.0,
    }
    job = BenchJob(
        model="models/target",
        server_python=sys.executable,
        server_environment=(f"PYTHONPATH={STAND_IN}", f"STAND_IN={json.dumps(told)}"),
        exec_prefix=prefix,
    )
    rig.launch(rig.spec("r1", job_kind="bench", job_json=to_json(job), **changes))
    state = rig.running("r1")
    log = rig.run("r1").path / "server-0.log"
    wait_for(lambda: log.exists() and "fired up" in log.read_text())
    tree = {f"{name(pid)} {pid}": pid for pid in processes.descendants(state.supervisor_pid or 0)}
    assert any("launch_server" in word for word in tree)
    assert any("sglang::scheduler" in word for word in tree)
    return tree


def name(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return "gone"
    return next((word for word in words if "sglang" in word and "\n" not in word), words[0])


def still_alive(tree: dict[str, int]) -> list[str]:
    return [word for word, pid in tree.items() if is_alive(pid)]


@pytest.mark.parametrize("prefix", [(), NAMESPACES])
def test_cancel_ends_the_server(rig: Rig, prefix: tuple[str, ...]) -> None:
    if prefix and not can(prefix):
        pytest.skip("cannot enter another namespace here")
    tree = launched(rig, prefix)
    answer = rig.cancel("r1", grace_s=1.0)
    assert (answer.state.phase, answer.survivors) == ("cancelled", ())
    assert still_alive(tree) == []


def test_a_killed_worker_leaves_no_server(rig: Rig) -> None:
    tree = launched(rig)
    os.kill(rig.state("r1").worker_pid or 0, signal.SIGKILL)
    wait_for(lambda: rig.state("r1").is_terminal, 30.0)
    assert rig.state("r1").phase == "killed"
    assert still_alive(tree) == []


def test_when_worker_and_supervisor_are_killed_the_guard_ends_the_server(rig: Rig) -> None:
    tree = launched(rig)
    state = rig.state("r1")
    os.kill(state.supervisor_pid or 0, signal.SIGKILL)
    os.kill(state.worker_pid or 0, signal.SIGKILL)
    wait_for(lambda: still_alive(tree) == [], 30.0)
