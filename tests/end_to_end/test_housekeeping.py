"""Making room on a host over a real sshd: what is at home goes, what is not stays, and the store keeps what it has."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.support.host_runs import wait_for_phase
from tests.support.laptop import Laptop
from tests.support.sshd import SshServer

SWEEP = '[sweep]\njob = "selftest"\n[sweep.base]\nresult_bytes = 10\n[[sweep.points]]\nresult_bytes = 1\n'


def test_what_is_at_home_goes_and_the_rest_stays(laptop: Laptop, server: SshServer, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(SWEEP, encoding="utf-8")
    root = server.home / ".eagle3-remote"
    for run_id, more in (("home", ()), ("away", ("--detach",)), ("going", ("--detach", "--duration-s", "600"))):
        assert laptop.run("run", "selftest", "--host", "gpu1", "--run-id", run_id, *more).code == 0
    assert laptop.run("sweep", "run", str(tmp_path / "one.toml"), "--host", "gpu1", "--run-id", "night").code == 0
    wait_for_phase(server, "away", "succeeded")
    idle = laptop.run("gc", "--host", "gpu1")
    assert (idle.code, "nothing would go" in idle.out, "no limit was given" in idle.out) == (0, True, True), idle.err
    laptop.add_host("alias", server)  # the same host: what is at home is so by whatever name
    dry = laptop.run("gc", "--host", "alias", "--older-than", "0s", "--json")
    (told,) = dry.objects
    assert {one["name"] for one in told["items"] if one["goes"]} == {"home", "night"}
    assert (root / "runs" / "home").is_dir()
    done = laptop.run("gc", "--host", "gpu1", "--older-than", "0s", "--apply")
    assert done.code == 0, done.err
    assert "gone, " in done.out
    assert {path.name for path in (root / "runs").iterdir()} == {"away", "going"}
    assert laptop.run("runs", "show", "home").code == laptop.run("sweep", "report", "night").code == 0
    assert laptop.run("cancel", "going").code == 0
    everything = laptop.run("gc", "--host", "gpu1", "--keep-newest", "0", "--uncollected", "--apply", "--json")
    assert everything.code == 0, everything.err
    assert list((root / "runs").iterdir()) == list((root / "trash").iterdir()) == []


@pytest.mark.infra
def test_a_sweep_on_a_disk_that_fills_up_is_gone_on_with_once_there_is_room(
    laptop: Laptop, server: SshServer, tmp_path: Path
) -> None:
    mount = tmp_path / "disk"
    mount.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(mount)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("a small disk needs the right to mount")
    try:
        laptop.add_host("small", server, settings=f'root = "{mount}/root"')
        points = "".join(f"[[sweep.points]]\nresult_bytes = {1_000_000 + number}\n" for number in range(6))
        (tmp_path / "six.toml").write_text(f'[sweep]\njob = "selftest"\n{points}', encoding="utf-8")
        (mount / "filler").write_bytes(b"\0" * 2_000_000)
        done = laptop.run("sweep", "run", str(tmp_path / "six.toml"), "--host", "small", "--run-id", "night")
        assert done.code == 14, done.out + done.err
        assert "eagle3-remote gc" in done.out + done.err
        counts = standing(laptop, "night")
        assert 1 <= counts["measured"] < 6
        assert sum(counts.values()) == 6
        assert laptop.run("sweep", "report", "night").code == 0
        (mount / "filler").unlink()
        assert laptop.run("gc", "--host", "small", "--sweeps", "--keep-newest", "0", "--apply").code == 0
        assert standing(laptop, "night") == counts  # the laptop has all of it
        done = laptop.run("sweep", "resume", "night", "--run-id", "again")
        assert done.code == 0, done.err
        assert standing(laptop, "again")["measured"] == 6
    finally:
        subprocess.run(["umount", "--lazy", str(mount)], check=True)


def standing(laptop: Laptop, sweep: str) -> "Counter[str]":
    done = laptop.run("sweep", "status", sweep, "--json")
    assert done.code == 0, done.err
    return Counter(point["word"] for point in done.objects[0]["points"])
