"""A sweep over hosts that are not alike: GPUs beside none, a cluster beside a machine; and one that is cancelled."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.host_runs import state_file, wait_for_phase
from tests.support.laptop import Laptop
from tests.support.made_smi import MadeSmi
from tests.support.slurm import Slurm, running_slurm
from tests.support.sshd import ServerOptions, SshServer, running_sshd

pytestmark = pytest.mark.slow
POINTS = 6


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[SshServer]:
    """A machine without GPUs, whatever this one has."""
    smi = tmp_path / "none"
    smi.mkdir()
    made = MadeSmi(smi)
    made.say("")
    with running_sshd(tmp_path / "plain", ServerOptions(environment={"PATH": made.path})) as running:
        yield running


@pytest.fixture
def gpus(tmp_path: Path) -> Iterator[SshServer]:
    smi = tmp_path / "two"
    smi.mkdir()
    with running_sshd(tmp_path / "gpus", ServerOptions(environment={"PATH": MadeSmi(smi).path})) as running:
        yield running


def sweep(folder: Path, seconds: float = 0.0) -> str:
    lines = [f'[sweep]\njob = "selftest"\n[sweep.base]\nduration_s = {seconds}\n']
    lines += [f"[[sweep.points]]\nresult_bytes = {n + 1}\n" for n in range(POINTS)]
    path = folder / "sweep.toml"
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


def test_hosts_of_two_classes_get_a_table_each_and_all_of_it_is_cancelled_at_once(
    new_laptop: Callable[[str], Laptop], plain: SshServer, gpus: SshServer, tmp_path: Path
) -> None:
    laptop = new_laptop("laptop")
    laptop.add_host("a", plain)
    laptop.add_host("b", gpus, settings=f'leases = "{tmp_path}/leases"')
    run = ("sweep", "run", sweep(tmp_path), "--host", "a,b", "--run-id", "night")
    program, notes = tmp_path / "tell", tmp_path / "notes"
    program.write_text(f"#!/bin/sh\ncat >> {notes}\n")
    program.chmod(0o755)
    with laptop.toml.open("a") as toml:
        toml.write(f'[notify]\ncommand = ["{program}"]\n')
    refused = laptop.run(*run)
    assert (refused.code, "these hosts are not alike" in refused.err) == (2, True), refused.err
    done = laptop.run(*run, "--mix-classes")
    assert done.code == 0, done.err
    assert "2 x NVIDIA H200 (143771 MiB): b" in done.out
    found = laptop.run("sweep", "report", "night", "--json").objects[-1]
    assert [[table["host"] for table in one["tables"]] for one in found["classes"]] == [["a"], ["b"]]
    measured = Counter(row["settings"]["result_bytes"] for share in found["shares"] for row in share["points"])
    assert measured == Counter(range(1, POINTS + 1))
    assert laptop.run("sweep", "collect", "night").code == 0  # and tells nobody again
    told = [json.loads(line) for line in notes.read_text().splitlines()]
    assert [one["run_id"] for one in told] == ["night.h1", "night.h2", "night"]
    assert told[-1]["text"] == f"sweep night on a, b: over, {POINTS} of {POINTS} points measured"

    told_there = plain.home / ".eagle3-remote/groups/night.jsonl"
    for is_left in (True, False):  # first the share goes, which is noted there; then what was told, nobody being in it
        assert told_there.is_file()
        cleared = laptop.run("gc", "--host", "a", "--sweeps", "--older-than", "0s", "--apply")
        assert (cleared.code, told_there.is_file()) == (0, is_left), cleared.err
    assert "group  night" in cleared.out

    long = ("sweep", "run", sweep(tmp_path, 60.0), "--host", "a,b", "--run-id", "long", "--mix-classes", "--detach")
    assert laptop.run(*long).code == 0
    wait_for_phase(plain, "long.h1.u0000.0", "running")
    wait_for_phase(gpus, "long.h2.u0000.0", "running")
    other = new_laptop("other")
    other.add_host("x", plain)
    other.add_host("b", gpus, settings=f'leases = "{tmp_path}/leases"')
    cancelled = other.run("sweep", "cancel", "long", "--host", "x,b")
    assert cancelled.code == 0, cancelled.err
    assert cancelled.out.splitlines() == [
        "long.h1: cancelled; nothing of it is left on the host",
        "long.h2: cancelled; nothing of it is left on the host",
    ]
    after = laptop.run("sweep", "status", "long", "--json").objects[-1]
    assert (after["phase"], [one["phase"] for one in after["shares"]]) == ("over", ["cancelled", "cancelled"])
    kinds = laptop.run("sweep", "resume", "long", "--host", "a", "--detach")
    assert (kinds.code, "is another class than `b`" in kinds.err) == (2, True), kinds.err
    assert not state_file(plain, "long.h3").exists()


def test_a_share_gone_on_with_by_itself_is_one_of_the_sweeps_shares(
    new_laptop: Callable[[str], Laptop], plain: SshServer, tmp_path: Path
) -> None:
    """Three roots of one machine; two of them fall silent at the end."""
    first, other = new_laptop("first"), new_laptop("other")
    for laptop in (first, other):
        for name in "abc":
            laptop.add_host(name, plain, settings=f'root = "{tmp_path}/{name}"')
    assert first.run("sweep", "run", sweep(tmp_path, 60.0), "--host", "a,b", "--run-id", "n", "--detach").code == 0
    assert first.run("sweep", "cancel", "n").code == 0
    alone = first.run("sweep", "resume", "n.h1", "--run-id", "alone", "--detach")
    assert alone.code == 0, alone.err
    refused = other.run("sweep", "resume", "n", "--host", "a", "--host-is-dead", "b", "--detach")
    assert (refused.code, "`b` answers" in refused.err) == (2, True), refused.err
    moved = other.run("sweep", "resume", "n", "--host", "c", "--detach")
    assert moved.code == 0, moved.err
    told = first.run("sweep", "status", "n", "--json").objects[-1]
    shares = {one["run_id"]: (one["host"], one["planned"]) for one in told["shares"]}
    (new,) = shares.keys() - {"n.h1", "n.h2", "alone"}
    assert (shares["alone"], shares[new]) == (("a", POINTS // 2), ("c", POINTS // 2))
    ended = first.run("sweep", "cancel", "n")
    assert (ended.code, "alone: cancelled" in ended.out, f"{new}: cancelled" in ended.out) == (0, True, True), ended.err

    stranger = new_laptop("stranger")  # it knows of the sweep, and then reaches none of its hosts
    for name in "abcd":
        stranger.add_host(name, plain, settings=f'root = "{tmp_path}/{name}"')
    assert stranger.run("sweep", "status", "n", "--host", "a,b,c").code == 0
    text = stranger.toml.read_text()
    for name in "abc":
        text = text.replace(f'ssh = "{name}"', 'ssh = "nobody@127.0.0.1:1"')
    stranger.toml.write_text(text)
    dead = [word for name in "abc" for word in ("--host-is-dead", name)]
    last = stranger.run("sweep", "resume", "n", "--host", "d", "--detach", *dead)
    assert (last.code, "no host of this sweep answers, so nobody can see" in last.err) == (0, True), last.err
    assert stranger.run("sweep", "cancel", "n", "--host", "d").code == 0


@pytest.mark.infra
def test_a_cluster_and_a_machine_share_a_sweep(
    new_laptop: Callable[[str], Laptop], plain: SshServer, slurm: Slurm, tmp_path: Path
) -> None:
    laptop = new_laptop("laptop")
    laptop.add_host("plain", plain)
    with running_sshd(tmp_path / "login", ServerOptions(environment=slurm.environment)) as login:
        laptop.add_host(
            "login", login, settings='scheduler = "slurm"\n[hosts.login.slurm]\npoll_s = 1.0\ntime = "10"\n'
        )
        done = laptop.run(
            "sweep", "run", sweep(tmp_path), "--host", "plain,login", "--run-id", "night", "--mix-classes"
        )
        assert done.code == 0, done.err
        found = laptop.run("sweep", "report", "night", "--json").objects[-1]
    assert [(one["host"], one["phase"]) for one in found["shares"]] == [("login", "succeeded"), ("plain", "succeeded")]
    measured = Counter(row["settings"]["result_bytes"] for share in found["shares"] for row in share["points"])
    assert measured == Counter(range(1, POINTS + 1))


@pytest.fixture
def slurm() -> Iterator[Slurm]:
    with running_slurm() as running:
        yield running


def test_hosts_with_other_models_under_one_path_do_not_share_a_sweep_unasked(
    new_laptop: Callable[[str], Laptop], plain: SshServer, tmp_path: Path
) -> None:
    def drafter(home: Path, weights: bytes) -> None:
        (home / "drafter").mkdir(exist_ok=True)
        (home / "drafter" / "config.json").write_text("{}")
        (home / "drafter" / "model.safetensors").write_bytes(weights)

    file = tmp_path / "depths.toml"
    base = '[sweep]\njob = "standalone"\n[sweep.base]\ndraft = "~/drafter"\nrows = "bundled"\n'
    file.write_text(f"{base}[sweep.grid]\nmax_rows = [1, 2, 3, 4]\n")
    laptop = new_laptop("laptop")
    no_gpus = {"PATH": f"{tmp_path}/none/bin:/usr/bin:/bin"}
    with running_sshd(tmp_path / "other", ServerOptions(environment=no_gpus)) as other:
        for name, server in (("a", plain), ("b", other), ("c", other)):
            laptop.add_host(name, server, settings=f'root = "{tmp_path}/root-{name}"')
        run = ("sweep", "run", str(file), "--host", "a,b", "--run-id", "night", "--detach")
        drafter(plain.home, b"v1")
        drafter(other.home, b"v2")
        refused = laptop.run(*run)
        assert (refused.code, "b is another than on a, by model.safetensors" in refused.err) == (2, True), refused.err
        drafter(other.home, b"v1")
        begun = laptop.run(*run)
        assert begun.code == 0, begun.err
        assert laptop.run("sweep", "cancel", "night").code == 0
        alone = laptop.run("sweep", "resume", "night.h1", "--run-id", "alone", "--detach")
        assert alone.code == 0, alone.err
        assert laptop.run("sweep", "cancel", "night").code == 0
        drafter(other.home, b"v3")
        onto = ("sweep", "resume", "night", "--host", "c", "--detach")
        refused = laptop.run(*onto)
        assert (refused.code, "~/drafter on c is another than on a" in refused.err) == (2, True), refused.err
        moved = laptop.run(*onto, "--mix-models")
        assert moved.code == 0, moved.err
        assert laptop.run("sweep", "cancel", "night").code == 0
        (tmp_path / "packages/sglang-0.5.10.dist-info").mkdir(parents=True)  # it is "installed" by its metadata alone
        metadata = "Name: sglang\nVersion: 0.5.10\n"
        (tmp_path / "packages/sglang-0.5.10.dist-info/METADATA").write_text(metadata)
        newer = f'root = "{tmp_path}/root-d"\nenvironment = {{ PYTHONPATH = "{tmp_path}/packages" }}'
        laptop.add_host("d", other, settings=newer)
        drafter(other.home, b"v1")
        other_software = ("sweep", "run", str(file), "--host", "a,d", "--run-id", "newer", "--detach")
        refused = laptop.run(*other_software)
        told = "sglang is 0.5.10 on d, and not installed on a"
        assert (refused.code, told in refused.err) == (2, True), refused.err
        assert laptop.run(*other_software, "--mix-classes").code == 0
        assert laptop.run("sweep", "cancel", "newer").code == 0
        assert f"OTHER SOFTWARE: {told}" in laptop.run("sweep", "report", "newer").out
    report = laptop.run("sweep", "report", "night")
    assert "OTHER MODELS: ~/drafter on c is another than on a, by model.safetensors" in report.out
