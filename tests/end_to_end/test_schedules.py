"""`--every` and `schedule`, from the command line to a host's crontab and back."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.engines import crontab_at, environment
from tests.support.host_runs import wait_for_phase
from tests.support.laptop import Laptop
from tests.support.patience import wait_for
from tests.support.sshd import ServerOptions, SshServer, running_sshd

pytestmark = pytest.mark.usefixtures("systems_zone")

EVERY = ("run", "selftest", "--host", "gpu1", "--every")


@pytest.fixture
def server(tmp_path: Path):  # type: ignore[no-untyped-def]
    """A host with a crontab of its own: a script first on PATH."""
    crontab_at(tmp_path)
    path = environment(tmp_path)["PATH"]
    with running_sshd(tmp_path / "gpu1", ServerOptions(environment={"PATH": path})) as running:
        yield running


def due_now(server: SshServer, tmp_path: Path, schedule_id: str) -> str:
    """Let this minute be the one that the schedule was made for, and do what cron does then; the run's id."""
    record = server.home / ".eagle3-remote" / "schedules" / schedule_id / "schedule.json"
    minute = int(time.time()) // 60 * 60
    due = {"created_unix_s": minute - 1.0, "cron": time.strftime("%M %H * * *", time.localtime(minute))}
    record.write_text(json.dumps({**json.loads(record.read_text()), **due}))
    (line,) = (tmp_path / "crontab").read_text().splitlines()
    command = line.split(maxsplit=5)[5].replace("\\%", "%")
    its_own = {"PATH": "/usr/bin:/bin", "HOME": str(server.home)}  # as cron sets them
    subprocess.run(["/bin/sh", "-c", command], env=its_own, check=True, timeout=60)
    return f"{schedule_id}.{time.strftime('%Y%m%d-%H%M', time.gmtime(minute))}"


def teller(tmp_path: Path, told: Path) -> Path:
    """A program that adds what it reads to the file, a line each time."""
    command = tmp_path / "tell"
    command.write_text(f'#!/bin/sh\nread -r ending\nprintf "%s\\n" "$ending" >> {told}\n')
    command.chmod(0o755)
    return command


def test_from_the_order_to_the_runs_at_home(laptop: Laptop, server: SshServer, tmp_path: Path) -> None:
    laptop.add_host("closed", server, settings='secrets = ["HF_TOKEN"]')
    every = ("run", "selftest", "--host", "closed", "--every", "0 22 * * mon-fri", "--run-id", "nightly")
    made = laptop.run(*every, HF_TOKEN="hidden")  # which a selftest does not need
    assert made.code == 0, made.err
    written = (server.home / ".eagle3-remote" / "schedules" / "nightly" / "schedule.json").read_text()
    assert ("hidden" in written, json.loads(written)["spec"]["secret_names"]) == (False, [])
    assert "nightly: `0 22 * * mon-fri` by cron of closed, whose zone is meant" in made.out
    run_id = due_now(server, tmp_path, "nightly")
    wait_for_phase(server, run_id, "succeeded")
    history = laptop.run("schedule", "history", "nightly", "--host", "gpu1")
    assert f"fired  {run_id}  succeeded" in history.out
    home = laptop.run("schedule", "collect", "nightly", "--host", "gpu1")
    assert home.code == 0, home.err
    assert f"{run_id}  succeeded" in home.out
    assert "1 came home, 0 were here" in home.err
    assert "0 came home, 1 were here" in laptop.run("schedule", "collect", "nightly", "--host", "gpu1").err
    labels = laptop.store / "runs" / run_id / "labels.json"
    assert json.loads(labels.read_text())["tags"] == ["nightly"]


def test_any_laptop_may_take_it_away(laptop: Laptop, new_laptop, server: SshServer, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert laptop.run(*EVERY, "@daily", "--run-id", "nightly").code == 0
    other = new_laptop("other")
    other.add_host("gpu1", server)
    coming = other.run("schedule", "next", "nightly", "--host", "gpu1", "--count", "2")
    assert (coming.code, coming.out.count("00:00")) == (0, 4 if time.timezone == 0 else 2), coming.out
    assert other.run("schedule", "rm", "nightly", "--host", "gpu1").out == "removed from gpu1: nightly\n"
    assert not (tmp_path / "crontab").exists()
    gone = other.run("schedule", "rm", "nightly", "--host", "gpu1")
    assert (gone.code, "no schedule of this id on this host: nightly" in gone.err) == (6, True), gone.err


@pytest.mark.slow
def test_a_sweep_again_and_again(laptop: Laptop, server: SshServer, tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = teller(tmp_path, told)
    laptop.add_host("telling", server, settings=f'notify_command = ["{command}"]')
    with laptop.toml.open("a") as toml:
        toml.write(f'[notify]\ncommand = ["{command}"]\n')
    file = laptop.project / "mine.toml"
    file.write_text('[sweep]\njob = "selftest"\n[sweep.grid]\nresult_bytes = [10, 20]\n')
    made = laptop.run("sweep", "run", "mine.toml", "--host", "telling", "--every", "@weekly", "--run-id", "weekly")
    assert made.code == 0, made.err
    run_id = due_now(server, tmp_path, "weekly")
    wait_for_phase(server, run_id, "succeeded")
    wait_for(lambda: told.exists() and told.read_text().endswith("\n"), "the host to tell")
    home = laptop.run("schedule", "collect", "weekly", "--host", "telling")
    assert home.code == 0, home.err
    assert f"{run_id}  succeeded" in home.out
    endings = [json.loads(line) for line in told.read_text().splitlines()]
    found = [(one["told_by"], one["run_id"], one["points"], one["points_measured"]) for one in endings]
    assert found == [("host", run_id, 2, 2), ("laptop", run_id, 2, 2)]
    assert {one["host"] for one in endings} == {"telling"}
    assert "succeeded after " in endings[1]["text"]
    assert endings[1]["text"].endswith("s, 2 of 2 points measured")
    assert laptop.run("runs", "list", "--tag", run_id).out.count(f"{run_id}.u") == 2


@pytest.mark.slow
def test_what_a_fired_sweep_left_is_gone_on_with_from_any_laptop_by_the_models_that_it_measured(
    laptop: Laptop, new_laptop: Callable[[str], Laptop], server: SshServer, tmp_path: Path
) -> None:
    drafter = server.home / "drafter"
    drafter.mkdir()
    (drafter / "config.json").write_text('{"trained": 1}')
    file = laptop.project / "mine.toml"
    base = '[sweep]\njob = "standalone"\n[sweep.base]\ndraft = "~/drafter"\nrows = "bundled"\n'
    file.write_text(f"{base}[sweep.grid]\nmax_rows = [1, 2]\n")  # both fail: the drafter has no weights
    every = ("--host", "gpu1", "--every", "@weekly", "--run-id", "weekly")
    made = laptop.run("sweep", "run", "mine.toml", *every)
    assert made.code == 0, made.err
    (drafter / "config.json").write_text('{"trained": 22}')
    run_id = due_now(server, tmp_path, "weekly")
    other = new_laptop("other")
    other.add_host("gpu1", server)
    going = other.run("sweep", "resume", run_id, "--host", "gpu1", "--detach")
    assert (going.code, f"sweep `{run_id}` still runs on gpu1" in going.err) == (15, True), going.err
    wait_for_phase(server, run_id, "succeeded")
    rest = other.run("sweep", "resume", run_id, "--host", "gpu1", "--run-id", "rest", "--detach")
    assert rest.code == 0, rest.err  # as it was when it fired, not as when the schedule was made
    second = laptop.run("sweep", "resume", run_id, "--host", "gpu1", "--detach")
    assert (second.code, f"sweep `rest` goes on with sweep `{run_id}`" in second.err) == (15, True), second.err
    wait_for_phase(server, "rest", "succeeded")
    (drafter / "config.json").write_text('{"trained": 333}')
    drifted = laptop.run("sweep", "resume", "rest", "--host", "gpu1", "--detach")
    assert (drifted.code, "what lies under ~/drafter on the host is another than it was" in drifted.err) == (5, True)
    found = json.loads(laptop.run("sweep", "report", "rest", "--json").out)
    assert (found["counts"]["failed"], found["drift"]) == (2, [])


def test_the_end_is_told_once_by_whoever_sees_it(laptop: Laptop, server: SshServer, tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = teller(tmp_path, told)
    with laptop.toml.open("a") as file:
        file.write(f'[notify]\ncommand = ["{command}"]\nwebhook = "NO_SUCH_VARIABLE"\n')
    run = ("run", "selftest", "--host", "gpu1", "--run-id")
    first = laptop.run(*run, "first")
    assert first.code == 0, first.err
    assert "the end of first could not be told by webhook" in first.err
    assert laptop.run("attach", "first").code == 0
    assert laptop.run(*run, "second", "--no-notify", "--fail").code == 20
    assert laptop.run("attach", "second").code == 20
    endings = [json.loads(line) for line in told.read_text().splitlines()]
    assert [(one["run_id"], one["phase"]) for one in endings] == [("first", "succeeded"), ("second", "failed")]
