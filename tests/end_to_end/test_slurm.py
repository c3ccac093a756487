"""A login node of Slurm from the laptop: run, look, sweep, cancel, as on any other host."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.laptop import Laptop
from tests.support.patience import wait_for
from tests.support.slurm import PROVES, Slurm, running_slurm
from tests.support.sshd import ServerOptions, SshServer, running_sshd

pytestmark = pytest.mark.infra

HOST = 'scheduler = "slurm"\n[hosts.login.slurm]\npoll_s = 1.0\ntime = "10"\narray_limit = 6\n'
POINTS = 5
SWEEP = '[sweep]\njob = "selftest"\n' + "".join(
    f"[[sweep.points]]\nresult_bytes = {n + 1}\nfail = {str(n == 3).lower()}\n" for n in range(POINTS)
)


@pytest.fixture
def slurm() -> Iterator[Slurm]:
    with running_slurm() as running:
        yield running


@pytest.fixture
def login(tmp_path: Path, slurm: Slurm) -> Iterator[SshServer]:
    with running_sshd(tmp_path / "login", ServerOptions(environment=slurm.environment)) as running:
        yield running


def test_a_login_node_serves_as_any_host(
    new_laptop: Callable[[str], Laptop], login: SshServer, slurm: Slurm, tmp_path: Path
) -> None:
    laptop = new_laptop("laptop")
    laptop.add_host("login", login, settings=HOST)
    check = laptop.run("hosts", "check", "login")
    assert check.code == 0, check.err
    ends = "ends every process of a job" if PROVES else "may miss processes of a job that it ends"
    assert f"without accounting, {ends}, arrays below 1001; partitions:" in check.out
    assert "gpu: up, default, limit infinite, 3 nodes, gpu:h200:8" in check.out

    ran = laptop.run("run", "selftest", "--host", "login", "--run-id", "first", "--gpus", "2")
    assert ran.code == 0, ran.err
    assert "launched: Slurm job 1" in ran.err
    told = slurm.run("scontrol", "-o", "show", "job", "1")
    assert "TresPerNode=gres:gpu:2" in told
    assert "TimeLimit=00:10:00" in told

    told = laptop.run("explain", "first").out
    assert "time=10 array_limit=6 signal_s=120 gres=gpu:2" in told

    refused = laptop.run("run", "selftest", "--host", "login", "--gpus", "1", "--min-free", "1GiB")
    assert (refused.code, "Slurm hands out the GPUs" in refused.err) == (2, True), refused.err

    later = laptop.run(
        "run", "selftest", "--host", "login", "--run-id", "later", "--at", "2099-12-24 22:00", "--detach"
    )
    assert later.code == 0, later.err
    wait_for(lambda: "BeginTime" in laptop.run("hosts", "top", "login").out)
    cancelled = laptop.run("cancel", "later")
    assert cancelled.code == 0, cancelled.err
    assert cancelled.out.strip() == "later: cancelled; nothing of it is left on the cluster"

    sweep = tmp_path / "sweep.toml"
    sweep.write_text(SWEEP)
    swept = laptop.run("sweep", "run", str(sweep), "--host", "login", "--run-id", "night")
    assert swept.code == 20, swept.err
    assert "error: sweep night: 1 of 5 points are not measured" in swept.err
    assert swept.out.splitlines()[:2] == ["night on login: succeeded", "  points  4 of 5 measured, 1 failed"]
    assert laptop.run("runs", "list", "--tag", "night").out.count("night.u") == POINTS
    again = laptop.run("sweep", "resume", "night", "--run-id", "night-2")
    assert again.code == 20, again.err
    assert "night-2.u0003.0" in laptop.run("runs", "list", "--tag", "night-2").out
