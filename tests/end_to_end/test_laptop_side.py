"""The laptop's way of a run when something is in the way: what it says, what it keeps, what it never claims."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.fault_proxy import FaultProxy
from tests.support.host_runs import kept_running, wait_for_phase
from tests.support.laptop import Laptop
from tests.support.patience import PATIENCE_S
from tests.support.sshd import SshServer, closed_port, running_sshd

SELFTEST = ("run", "selftest", "--host", "gpu1", "--run-id", "r")


def listed(laptop: Laptop) -> list[dict[str, Any]]:
    """What `runs list` knows."""
    (answer,) = laptop.run("runs", "list", "--json").objects
    runs = answer["runs"]
    assert isinstance(runs, list)
    return runs


def test_several_viewers_on_one_laptop(laptop: Laptop, server: SshServer) -> None:
    watchers = [laptop.start(*SELFTEST, "--duration-s", "2", "--json")]
    wait_for_phase(server, "r", "running")
    watchers += [laptop.start(*command) for command in (("attach", "r", "--json"), ("logs", "-f", "r"))]
    done = [laptop.finish(process) for process in watchers]
    assert [one.code for one in done] == [0, 0, 0], done
    here, there = laptop.store / "runs" / "r", server.home / ".eagle3-remote" / "runs" / "r"
    for name in ("events.jsonl", "stdout.log"):
        assert (here / name).read_bytes() == (there / name).read_bytes()
    assert done[2].out == (there / "stdout.log").read_text()
    assert laptop.run("logs", "r").out == done[2].out


def test_a_host_that_is_gone(laptop: Laptop, tmp_path: Path) -> None:
    """It was used before; nothing hangs, nothing is kept of what was not launched, what came home is still shown."""
    with running_sshd(tmp_path / "soon gone") as server:
        laptop.add_host("gone", server)
        first = laptop.run("run", "selftest", "--host", "gone", "--run-id", "first")
        assert first.code == 0, first.err
        assert laptop.run("run", "selftest", "--host", "gone", "--run-id", "going", "--detach").code == 0
    refused = laptop.run("run", "selftest", "--host", "gone", "--run-id", "second")
    assert refused.code == 10, refused.err
    assert "reconnecting" not in refused.err
    assert sorted(run["run_id"] for run in listed(laptop)) == ["first", "going"]
    assert laptop.run("logs", "going").code == 10
    assert laptop.run("attach", "going").code == 10
    logs, attached = laptop.run("logs", "first"), laptop.run("attach", "first")
    assert (logs.code, attached.code) == (0, 0)
    assert logs.out == (laptop.store / "runs" / "first" / "stdout.log").read_text()
    assert "offline: " in logs.err
    assert "offline: " in attached.err
    assert "selftest, succeeded" in attached.out


def test_a_launch_that_was_refused_leaves_nothing(laptop: Laptop, server: SshServer) -> None:
    assert laptop.run(*SELFTEST).code == 0
    known = laptop.ssh.known_hosts.read_text()
    laptop.ssh.known_hosts.write_text("")
    assert laptop.run("run", "selftest", "--host", "gpu1").code == 11
    laptop.ssh.known_hosts.write_text(known)
    config = laptop.ssh.ssh_config.read_text()
    with closed_port() as port:
        laptop.ssh.ssh_config.write_text(config.replace(str(server.port), str(port)))
        assert laptop.run("run", "selftest", "--host", "gpu1").code == 10
    assert [run["run_id"] for run in listed(laptop)] == ["r"]


def test_the_same_command_again_goes_on_with_its_run(laptop: Laptop, server: SshServer) -> None:
    first = laptop.run(*SELFTEST)
    again = laptop.run(*SELFTEST)
    assert (first.code, again.code) == (0, 0), again.err
    assert "already launched, adopted" in again.err
    assert len(list((server.home / ".eagle3-remote" / "runs").iterdir())) == 1
    other = laptop.run(*SELFTEST, "--duration-s", "1")
    assert other.code == 15
    assert "other settings" in other.err
    assert "eagle3-remote attach r --host gpu1" in other.err
    assert [run["phase"] for run in listed(laptop)] == ["succeeded"]


def test_a_link_cut_while_the_result_comes_home(laptop: Laptop, server: SshServer) -> None:
    assert laptop.run("run", "selftest", "--host", "gpu1").code == 0
    with FaultProxy(server.port) as proxy:
        laptop.add_host("shaky", server, port=proxy.port)
        proxy.cut_after(1_500_000)
        done = laptop.run("run", "selftest", "--host", "shaky", "--run-id", "r", "--result-bytes", "3000000")
    assert done.code == 0, done.err
    assert "reconnecting" in done.err
    assert "hashes agree" in done.err
    here, there = (base / "runs" / "r" / "result" for base in (laptop.store, server.home / ".eagle3-remote"))
    assert sorted(path.name for path in here.iterdir()) == sorted(path.name for path in there.iterdir())


def test_many_small_files_come_home_in_few_commands(laptop: Laptop, server: SshServer) -> None:
    """More than fit with the first answer: not a command on the host for each of them."""
    assert laptop.run(*SELFTEST, "--detach").code == 0
    assert laptop.run("logs", "-f", "r").code == 0
    there = server.home / ".eagle3-remote" / "runs" / "r" / "result"
    manifest = json.loads((there / "manifest.json").read_text())
    for number in range(60):
        name, data = f"part/{number}.bin", os.urandom(40_000)
        (there / name).parent.mkdir(exist_ok=True)
        (there / name).write_bytes(data)
        entry = {"name": name, "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        manifest["files"].append(entry)
    (there / "manifest.json").write_text(json.dumps(manifest))
    before = server.log.read_text().count("Starting session")
    done = laptop.run("attach", "r")
    assert done.code == 0, done.err
    assert "62 files" in done.err
    assert server.log.read_text().count("Starting session") - before <= 4  # look, payload, two follows
    here = laptop.store / "runs" / "r" / "result"
    for entry in manifest["files"]:
        assert (here / entry["name"]).read_bytes() == (there / entry["name"]).read_bytes()


def test_states_are_stored_however_the_command_ends(laptop: Laptop, server: SshServer) -> None:
    process = laptop.start(*SELFTEST, "--duration-s", "2", "--json")
    assert process.stdout is not None
    for line in process.stdout:
        if '"running"' in line:
            break
    with kept_running(server, "r"):
        process.send_signal(signal.SIGTERM)
        assert laptop.finish(process).code == 128 + signal.SIGTERM
    assert [run["phase"] for run in listed(laptop)] == ["running"]
    detached = laptop.run("run", "selftest", "--host", "gpu1", "--run-id", "d", "--detach")
    assert detached.code == 0
    assert {run["phase"] for run in listed(laptop)} <= {"queued", "starting", "running", "succeeded"}
    assert laptop.run("attach", "r").code == 0
    wait_for_phase(server, "d", "succeeded")
    assert laptop.run("status", "--host", "gpu1").code == 0
    assert {run["run_id"]: run["phase"] for run in listed(laptop)} == {"r": "succeeded", "d": "succeeded"}


def test_a_reader_that_goes_away_detaches(laptop: Laptop, server: SshServer) -> None:
    process = laptop.start(*SELFTEST, "--duration-s", "2", "--json")
    assert process.stdout is not None
    assert process.stderr is not None
    while '"launched"' not in process.stdout.readline():
        pass
    process.stdout.close()
    with process.stderr as stream:
        err = stream.read()
    assert process.wait(PATIENCE_S) == 9, err
    assert err == "detached; job goes on\nattach with: eagle3-remote attach r --host gpu1\n"
    assert laptop.run("attach", "r").code == 0


FAKE_PYTHON = """#!{python}
import json, os, subprocess, sys
arguments = sys.argv[1:]
if arguments[-1] not in ("launch", "follow"):
    os.execv({python!r}, [{python!r}, *arguments])
request = sys.stdin.buffer.read()
nonce = json.loads(request)["nonce"]
real = subprocess.run([{python!r}, *arguments], input=request, stdout=subprocess.PIPE)
for line in real.stdout.decode().splitlines():
    if not line.startswith(nonce):
        continue
    frame = json.loads(line.removeprefix(nonce))
    {lie}
    print(nonce, json.dumps(frame), flush=True)
"""
ONLY_END = "if frame['kind'] != 'end': continue"
NEVER_OVER = "if frame['kind'] == 'state': frame['state']['phase'] = 'running'"
NO_MANIFEST = "if frame['kind'] in ('manifest', 'file'): continue"
OTHER_RUN = "if frame['kind'] == 'state': frame['state']['run_id'] = 'other'"
LOST_FILE = "if frame['kind'] == 'manifest': frame['manifest']['files'][0]['name'] = 'lost'"


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (ONLY_END, "without the state of run `r`"),
        (NEVER_OVER, "before it was over, in phase: running"),
        (NO_MANIFEST, "its manifest is gone"),
        (OTHER_RUN, "the host sent that of: other"),
        (LOST_FILE, "result file `lost`"),
    ],
    ids=["only end", "never over", "no manifest", "other run", "lost file"],
)
def test_a_host_that_lies_is_no_success(laptop: Laptop, server: SshServer, lie: str, words: str) -> None:
    fake = server.home / "fake python"
    fake.write_text(FAKE_PYTHON.format(python=sys.executable, lie=lie))
    fake.chmod(0o700)
    laptop.add_host("liar", server, settings=f"python = {json.dumps(str(fake))}")
    for command in (("run", "selftest", "--host", "liar", "--run-id", "r"), ("attach", "r")):
        done = laptop.run(*command)
        assert done.code == 16, done.err
        assert words in done.err


def test_a_full_disk_of_the_laptop(laptop: Laptop, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(small)], check=True)
    try:
        done = laptop.run(*SELFTEST, "--result-bytes", "3000000", EAGLE3_REMOTE_HOME=str(small))
        assert done.code == 40, done.err
        assert "No space left on device" in done.err
        assert "attach with: eagle3-remote attach r --host gpu1" in done.err
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
