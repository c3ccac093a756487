"""A sweep over a real sshd: launched, the laptop gone from start to end, brought home by another; every point told."""

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.store import Store
from remote_payload.schema import StandaloneJob, to_json
from remote_payload.schema.standalone.checkpoint import WeightFile
from remote_payload.weights import folder_facts
from tests.support.host_runs import kept_running, wait_for_phase
from tests.support.laptop import Laptop
from tests.support.made_results import made_declared, made_readings, made_result
from tests.support.made_runs import made_run, put_standalone
from tests.support.patience import wait_for
from tests.support.sshd import SshServer

POINTS = 40
CRASHING = 4


def write_sweep(folder: Path) -> Path:
    """40 points of the selftest, every tenth crashing."""
    lines = ['[sweep]\njob = "selftest"\n[sweep.base]\nresult_bytes = 10\n']
    lines += [f"[[sweep.points]]\nresult_bytes = {n + 1}\nfail = {str(n % 10 == 9).lower()}\n" for n in range(POINTS)]
    path = folder / "forty.toml"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def a_tested_pair(laptop: Laptop) -> tuple[Path, Path]:
    """A drafter and its target on the host; the laptop has a test of them, `tested`, on the host of its run `seen`."""
    folder, target, weights = laptop.folder / "drafter", laptop.folder / "target", b"weights"
    for one in (folder, target):
        one.mkdir()
        (one / "model.safetensors").write_bytes(weights)
    store = Store(laptop.store)
    run = made_run("tested")
    job = StandaloneJob(draft=str(folder), target=str(target), rows="/srv/rows")
    rows, hits, readings = made_readings({((0, 1, 2), 1): 0.5})
    result = made_result(readings, made_declared((0, 2, 4), (0, 1, 2)))
    file = WeightFile(name="model.safetensors", size_bytes=len(weights), used=True, role="weights")
    digest = hashlib.sha256(weights).hexdigest()
    read = dataclasses.replace(result.checkpoint, weights_sha256=digest, files=(file,))
    spec = dataclasses.replace(run.spec, job_json=to_json(job))
    run = dataclasses.replace(run, host=store.load("seen").host, spec=spec)
    result = dataclasses.replace(result, checkpoint=read, target=folder_facts(str(target)))
    put_standalone(store, run, result, rows, hits)
    return folder, target


@pytest.mark.slow
def test_forty_points_and_the_laptop_gone(
    laptop: Laptop, server: SshServer, new_laptop: Callable[[str], Laptop]
) -> None:
    file = write_sweep(laptop.folder)
    dry = laptop.run("sweep", "run", str(file), "--host", "gpu1", "--dry-run")
    assert dry.code == 0, dry.err
    assert dry.out.startswith("40 points in 1 block: 40 starts on the host, 40 measurements; time: unknown")
    assert not (server.home / ".eagle3-remote").exists()  # nobody asked the host
    launched = laptop.run("sweep", "run", str(file), "--host", "gpu1", "--detach", "--run-id", "night")
    assert (launched.code, launched.out) == (0, "night\n"), launched.err
    laptop.close()  # and nobody looks until it is over
    state = server.home / ".eagle3-remote/runs/night/state.json"
    wait_for(lambda: json.loads(state.read_text())["phase"] == "succeeded", "the sweep's end", 120)

    other = new_laptop("other")
    other.add_host("gpu1", server)
    followed = other.run("sweep", "follow", "night", "--host", "gpu1")
    assert followed.code == 20
    assert "error: sweep night: 4 of 40 points are not measured" in followed.err
    assert followed.out.splitlines()[:2] == ["night on gpu1: succeeded", "  points  36 of 40 measured, 4 failed"]
    assert followed.out.count("selftest was asked to fail") == CRASHING
    told = json.loads(other.run("sweep", "report", "night", "--json").out)
    assert (told["counts"]["measured"], told["counts"]["failed"]) == (POINTS - CRASHING, CRASHING)
    assert told["planned"] == len(told["points"]) == POINTS
    assert other.run("runs", "list", "--tag", "night").out.count("night.u") == POINTS

    nothing = other.run("sweep", "resume", "night", "--skip-failed")
    assert (nothing.code, "nothing is left" in nothing.err) == (5, True)
    again = other.run("sweep", "resume", "night", "--run-id", "night-2")
    assert again.code == 20, again.err
    second = json.loads(other.run("sweep", "report", "night-2", "--json").out)
    assert second["counts"] == told["counts"]
    tried = [one["run_id"] for one in second["points"] if one["word"] == "failed"]
    assert sorted(tried) == [f"night-2.u00{n}9.0" for n in range(CRASHING)]
    assert other.run("runs", "list", "--tag", "night-2").out.count(".u00") == POINTS  # the earlier ones among them


def failing_and_not(folder: Path) -> Path:
    """A sweep whose first point fails, and is under way for a while."""
    path = folder / "failing.toml"
    points = "[[sweep.points]]\nfail = true\nduration_s = 3\n[[sweep.points]]\nresult_bytes = 1\n"
    path.write_text(f'[sweep]\njob = "selftest"\norder = "file"\n{points}', encoding="utf-8")
    return path


def test_an_end_that_was_seen_before_it_was_fetched_comes_home(
    laptop: Laptop, server: SshServer, new_laptop: Callable[[str], Laptop]
) -> None:
    file = failing_and_not(laptop.folder)
    launched = laptop.run("sweep", "run", str(file), "--host", "gpu1", "--detach", "--run-id", "seen")
    assert launched.code == 0, launched.err
    unit = laptop.store / "runs/seen.u0000.0"
    with kept_running(server, "seen.u0000.0"):
        early = laptop.run("sweep", "collect", "seen")  # the unit is known here now, and nothing of it has come
        assert early.code == 0, early.err
        assert unit.is_dir()
        assert not (unit / "state.json").exists()
    wait_for_phase(server, "seen", "succeeded")
    assert laptop.run("sweep", "collect", "seen").code == 0
    host_runs = server.home / ".eagle3-remote/runs"
    for name in ("events.jsonl", "stdout.log"):
        assert (unit / name).read_bytes() == (host_runs / "seen.u0000.0" / name).read_bytes()

    (host_runs / "seen.u0000.0/state.json").write_bytes(b"")  # of one damaged unit a sentence, the rest comes home
    other = new_laptop("other")
    other.add_host("gpu1", server)
    told = other.run("sweep", "collect", "seen", "--host", "gpu1")
    assert (told.code, "seen.u0000.0: " in told.err, "seen on gpu1" in told.out) == (17, True, True), told.err


def test_other_software_and_another_drafter_are_drift_and_prune_nothing(laptop: Laptop, server: SshServer) -> None:
    packages = laptop.folder / "packages"  # an SGLang is "installed" by its metadata alone
    (packages / "sglang-0.5.9.dist-info").mkdir(parents=True)
    (packages / "sglang-0.5.9.dist-info" / "METADATA").write_text("Name: sglang\nVersion: 0.5.9\n")
    laptop.add_host("lab", server, settings=f'environment = {{ PYTHONPATH = "{packages}" }}')
    file = laptop.folder / "one.toml"
    points = "[[sweep.points]]\nfail = true\n[[sweep.points]]\nresult_bytes = 1\n"
    file.write_text(f'[sweep]\njob = "selftest"\n{points}', encoding="utf-8")
    assert laptop.run("sweep", "run", str(file), "--host", "lab", "--run-id", "seen").code == 20
    (packages / "sglang-0.5.9.dist-info" / "METADATA").write_text("Name: sglang\nVersion: 0.5.10\n")
    (packages / "sglang-0.5.9.dist-info").rename(packages / "sglang-0.5.10.dist-info")
    drifted = laptop.run("sweep", "resume", "seen", "--detach")
    assert (drifted.code, "sglang is another: 0.5.9 then, 0.5.10 now" in drifted.err) == (5, True), drifted.err

    pruned = laptop.run("sweep", "run", str(file), "--host", "lab", "--detach", "--prune", "seen")
    assert (pruned.code, "measured with other software: sglang is another: 0.5.9 then" in pruned.err) == (5, True)

    drafter, target = a_tested_pair(laptop)
    served = laptop.folder / "served.toml"
    shared = f'draft = "{drafter}"\nmodel = "{target}"\neagle_topk = 1\nnum_steps = 2\nnum_draft_tokens = 3'
    served.write_text(f'[sweep]\njob = "bench"\n[sweep.base]\n{shared}\n[sweep.grid]\nconcurrency = [1, 2]\n')
    (target / "model.safetensors").write_bytes(b"trained")
    (drafter / "config.json").write_text("{ }")  # of its weights every byte is as it was tested
    asked = ("--host", "lab", "--detach", "--prune", "tested", "--step-cost", "1.9")
    replaced = laptop.run("sweep", "run", str(served), *asked)
    told = f"what lies under {drafter} is another than `tested` tested, by its config.json"
    assert (replaced.code, told in replaced.err) == (5, True), replaced.err
    (drafter / "config.json").write_text("{}")
    replaced = laptop.run("sweep", "run", str(served), *asked)
    told = f"what lies under {target} is another than `tested` tested, by its weights"
    assert (replaced.code, told in replaced.err) == (5, True), replaced.err


@pytest.mark.slow
def test_a_cancelled_sweep_comes_home_and_is_gone_on_with_once(laptop: Laptop, server: SshServer) -> None:
    file = failing_and_not(laptop.folder)
    assert laptop.run("sweep", "run", str(file), "--host", "gpu1", "--detach", "--run-id", "ended").code == 0
    assert laptop.run("sweep", "cancel", "ended").code == 0
    assert laptop.run("sweep", "collect", "ended").code == 0
    host_runs = server.home / ".eagle3-remote/runs"
    for name in ("events.jsonl", "result/units.jsonl"):
        assert (laptop.store / "runs/ended" / name).read_bytes() == (host_runs / "ended" / name).read_bytes()

    assert laptop.run("sweep", "resume", "ended", "--run-id", "ended-2", "--detach").code == 0
    second = laptop.run("sweep", "resume", "ended", "--run-id", "ended-3")
    assert (second.code, "sweep `ended-2` goes on with sweep `ended`" in second.err) == (15, True), second.err
    assert "`eagle3-remote sweep resume ended-2` measures what that one leaves" in second.err


def test_a_unit_that_left_no_run_is_told_by_its_sweep_and_by_no_warning(laptop: Laptop, server: SshServer) -> None:
    file = laptop.folder / "failing.toml"
    file.write_text('[sweep]\njob = "selftest"\n[[sweep.points]]\nfail = true\n', encoding="utf-8")
    assert laptop.run("sweep", "run", str(file), "--host", "gpu1", "--detach", "--run-id", "none").code == 0
    anew = "gpu1 was not asked since the launch; `eagle3-remote sweep collect none` asks it anew"
    assert anew in laptop.run("sweep", "report", "none").err
    host_runs = server.home / ".eagle3-remote/runs"
    wait_for(lambda: json.loads((host_runs / "none/state.json").read_text())["phase"] == "succeeded", "the end")
    shutil.rmtree(host_runs / "none.u0000.0")  # as if there had been no room for it
    collected = laptop.run("sweep", "collect", "none")
    assert collected.code == 0, collected.err
    assert "no run of this id" not in collected.err
    assert "selftest was asked to fail" in laptop.run("sweep", "status", "none").out


@pytest.mark.slow
def test_what_went_on_is_known_here_when_the_host_has_neither_any_more(laptop: Laptop, server: SshServer) -> None:
    file = laptop.folder / "two.toml"
    file.write_text('[sweep]\njob = "selftest"\n[sweep.grid]\nduration_s = [2, 3]\n', encoding="utf-8")
    laptop.add_host("lab", server)
    assert laptop.run("sweep", "run", str(file), "--host", "lab", "--detach", "--run-id", "ca").code == 0
    assert laptop.run("sweep", "cancel", "ca").code == 0
    assert laptop.run("sweep", "collect", "ca").code == 0
    assert laptop.run("sweep", "resume", "ca", "--run-id", "cb").code == 0
    shutil.rmtree(server.home / ".eagle3-remote/runs")  # as gc leaves it when both are home and old
    again = laptop.run("sweep", "resume", "ca", "--run-id", "cd")
    assert (again.code, "sweep `cb` goes on with sweep `ca`" in again.err) == (15, True), again.err
    assert not (server.home / ".eagle3-remote/runs/cd").exists()
