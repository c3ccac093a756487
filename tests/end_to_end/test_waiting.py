"""Runs that wait on their host, from the command line: what is said, what is refused, who uses a host."""

import json
from pathlib import Path

import pytest

from tests.support.laptop import Laptop
from tests.support.patience import wait_for
from tests.support.sshd import SshServer

RUN = ("run", "selftest", "--host", "gpus")


@pytest.fixture
def host(laptop: Laptop, server: SshServer, tmp_path: Path) -> Path:
    """A host whose leases are kept in the folder returned."""
    laptop.add_host("gpus", server, settings=f'leases = "{tmp_path}/leases"')
    return tmp_path / "leases"


def phase(server: SshServer, run_id: str) -> str:
    state = server.home / ".eagle3-remote" / "runs" / run_id / "state.json"
    return str(json.loads(state.read_text())["phase"]) if state.exists() else ""


@pytest.mark.usefixtures("host")
def test_one_after_the_other_and_at_a_time(laptop: Laptop, server: SshServer) -> None:
    late = laptop.run(*RUN, "--run-id", "late", "--at", "2099-12-24 22:00 UTC", "--detach")
    assert late.code == 0, late.err
    assert "starts at 2099-12-24 22:00 UTC" in late.err
    assert "zone" not in late.err
    wait_for(lambda: phase(server, "late") == "queued")
    told = laptop.run("status", "late")
    assert "starts at 2099-12-24 22:00:00 UTC (the host's time)" in told.out, told.out
    second = laptop.start(*RUN, "--run-id", "second", "--after", "late")
    wait_for(lambda: phase(server, "second") == "queued")
    top = laptop.run("hosts", "top", "gpus")
    assert top.code == 0, top.err
    assert "waits for the end of late" in top.out
    assert laptop.run("cancel", "late").code == 0
    done = laptop.finish(second)
    assert done.code == 0, done.err
    assert "state: queued - waits for the end of late" in done.err
    for more in ((), ("--detach",), ("--detach", "--when-free")):
        lacking = laptop.run(*RUN, "--gpus", "1", *more)
        assert (lacking.code, lacking.out) == (14, ""), lacking.out + lacking.err
        assert "this host has no nvidia-smi, so nobody knows which GPUs are free" in lacking.err
        assert "job goes on" not in lacking.err
    orphan = laptop.run(*RUN, "--after", "nobody", "--detach")
    assert (orphan.code, "cannot wait for nobody" in orphan.err) == (20, True), orphan.err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--when-free",), "say how many with --gpus N"),
        (("--at", "tomorrow"), "--at: expected a time, found: 'tomorrow'"),
        (("--gpus", "1", "--when-free", "--wait", "6"), "--wait: expected a duration with its unit"),
        (("--gpus", "0"), "--gpus"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_is_launched(
    laptop: Laptop, host: Path, flags: tuple[str, ...], words: str
) -> None:
    refused = laptop.run(*RUN, *flags)
    assert (refused.code, words in refused.err) == (2, True), refused.err
    assert not host.exists()
