"""Under a real sshd: the run outlives its session, the session does not wait for it, the follower leaves with it."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from remote_payload import bytecode
from remote_payload.schema import SelftestJob, to_json
from tests.payload.rig import Rig, command_lines, frames_in, is_alive, of_kind, wait_for
from tests.support.patience import PATIENCE_S, Within
from tests.support.sshd import SshClientFiles, SshServer, running_sshd, session_pids


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    with running_sshd(tmp_path / "server") as server:
        yield server


def ssh(tmp_path: Path, server: SshServer, rig: Rig, verb: str, request: object) -> "subprocess.Popen[bytes]":
    laptop = SshClientFiles(tmp_path / "laptop")
    laptop.add_host("gpu1", server)
    command = shlex.join([rig.python, "-I", "-S", str(rig.pyz), verb])
    child = subprocess.Popen(
        ["ssh", "-F", str(laptop.ssh_config), "gpu1", command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdin
    child.stdin.write(to_json(request).encode())
    child.stdin.close()
    child.stdin = None
    return child


def test_a_session_does_not_wait_for_the_run_it_launched(rig: Rig, server: SshServer, tmp_path: Path) -> None:
    request = rig.launch_request(rig.spec("r1", SelftestJob(duration_s=60)))
    with Within(), ssh(tmp_path, server, rig, "launch", request) as child:
        stdout, _ = child.communicate(timeout=PATIENCE_S)
    assert [frame.kind for frame in frames_in(stdout)] == ["launched"]
    assert is_alive(rig.running("r1").worker_pid or 0)


def test_a_run_outlives_its_session_and_the_follower_does_not(rig: Rig, server: SshServer, tmp_path: Path) -> None:
    bytecode.make_bytecode(rig.pyz, bytecode.bytecode_folder(rig.pyz))  # or a third process would make it now
    body = "while not (RUN / 'on').exists(): time.sleep(0.01)\n(RUN / 'result/ok').write_text('x')"
    request = rig.launch_request(rig.spec("r1", python=rig.worker("w", body)), follow=True)
    with ssh(tmp_path, server, rig, "launch", request) as child:
        state = rig.running("r1")
        for pid in session_pids(server):
            os.kill(pid, signal.SIGKILL)
        child.communicate(timeout=PATIENCE_S)
    assert is_alive(state.supervisor_pid or 0)
    assert is_alive(state.worker_pid or 0)
    mine = [
        line for line in command_lines() if str(rig.pyz).encode() in line and line.rstrip(b"\0").endswith(b"launch")
    ]
    assert len(mine) <= 2  # the supervisor, and the follower until it writes its next frame
    wait_for(lambda: len([line for line in command_lines() if line in mine]) == 1)
    (rig.run("r1").path / "on").touch()
    assert of_kind(rig.follow("r1"), "state")[-1].state.phase == "succeeded"
