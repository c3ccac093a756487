"""The real cron(8) and crontab(1), with a spool of their own in a mount namespace: this machine's is not touched."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remote_payload.schedule.folder import ScheduleDir
from remote_payload.schema.schedule import ScheduleRequest
from remote_payload.schema.slurm import SlurmSettings
from tests.payload.rig import NONCE, Rig
from tests.support.patience import wait_for
from tests.support.slurm import running_slurm

pytestmark = pytest.mark.infra

FOREIGN = '# mine\nMAILTO=""\nSHELL=/bin/false\nPATH=/nowhere\n17 3 * * * true % x\n'
_NAMESPACE = """
set -e
mount -t tmpfs -o mode=1730 spool /var/spool/cron/crontabs
chgrp crontab /var/spool/cron/crontabs
mount -t tmpfs none /etc/cron.d
mount --bind /dev/null /etc/crontab
mount -t tmpfs run /run
echo ready
exec cron -f
"""


@pytest.fixture
def cron(tmp_path: Path) -> Iterator[list[str]]:
    """A running cron; the words that run a program where it is."""
    if shutil.which("cron") is None or shutil.which("crontab") is None:
        pytest.skip("needs cron (apt install cron)")
    path = "/usr/sbin:/usr/bin:/sbin:/bin"
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _NAMESPACE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"PATH": path}) as daemon:
        assert daemon.stdout is not None
        assert daemon.stderr is not None
        if daemon.stdout.readline() != b"ready\n":
            pytest.skip(f"needs the right to mount (root): {daemon.stderr.read().decode()}")
        time.sleep(1.1)  # cron goes by its spool's time in whole seconds: a change in the second of its start is missed
        yield ["nsenter", f"--mount=/proc/{daemon.pid}/ns/mnt", "--"]
        daemon.terminate()


def crontab(cron: list[str], *words: str, text: str | None = None) -> str:
    done = subprocess.run([*cron, "crontab", *words], input=text, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else done.stderr


def ask(rig: Rig, inside: list[str], action: str, **more: Any) -> Any:
    python = rig.root.parent / "python"
    python.write_text(f'#!/bin/sh\nexec {" ".join(inside)} {sys.executable} "$@"\n')
    python.chmod(0o755)
    rig.python = str(python)
    request = ScheduleRequest(nonce=NONCE, root=str(rig.root), action=action, schedule_id="often", **more)
    (frame,) = rig.call("schedule", request)
    return frame


def test_the_next_minute_is_a_run_and_nothing_else_changes(rig: Rig, cron: list[str]) -> None:
    """Waits for the beginning of a minute."""
    crontab(cron, "-", text=FOREIGN)
    spec = rig.spec("often")
    made = ask(rig, cron, "add", cron="*/1 * * * *", spec=spec)
    assert next((one.engine, one.answer, one.daemon) for one in made.engines) == ("cron", "ok", True)
    due_s = made.standings[0].coming_unix_s[0]
    entry, _, rest = crontab(cron, "-l").partition("\n")
    assert (entry[:11], rest) == ("*/1 * * * *", FOREIGN)
    folder = ScheduleDir(rig.root.resolve(), "often")
    wait_for(lambda: bool(folder.run_ids()), "cron to fire", patience_s=80.0)
    (run_id,) = folder.run_ids()
    assert run_id == folder.run_id(due_s)
    rig.running(run_id)
    wait_for(lambda: rig.state(run_id).phase == "succeeded", "the run to end")
    assert abs((rig.state(run_id).started_unix_s or 0.0) - due_s) < 20.0
    told = ask(rig, cron, "show", history=True).standings[0]
    assert [(line.what, line.run_id) for line in told.history] == [("fired", run_id)]
    ask(rig, cron, "remove")
    assert crontab(cron, "-l") == FOREIGN


def test_where_there_was_no_crontab(rig: Rig, cron: list[str]) -> None:
    ask(rig, cron, "add", cron="0 3 * * *", spec=rig.spec("often"))
    assert "# eagle3-remote schedule often" in crontab(cron, "-l")
    ask(rig, cron, "remove")
    assert "no crontab for" in crontab(cron, "-l")


@pytest.mark.slow
def test_the_next_minute_is_a_batch_job_of_slurm(rig: Rig, cron: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Cron knows neither which cluster the login meant nor its defaults for sbatch; the schedule does."""
    with running_slurm() as slurm:
        for name, value in {**slurm.environment, "SBATCH_TIMELIMIT": "7"}.items():
            monkeypatch.setenv(name, value)
        worker = rig.worker("teller", "(RUN / 'result' / 'seen').write_text(os.environ['OF_THE_HOST'])\n")
        spec = rig.spec(
            "often",
            python=worker,
            environment={"OF_THE_HOST": "x y"},
            slurm=SlurmSettings(poll_s=1.0, partition="cheap"),
        )
        ask(rig, cron, "add", cron="*/1 * * * *", spec=spec)
        assert "SLURM_CONF" not in crontab(cron, "-l")
        folder = ScheduleDir(rig.root.resolve(), "often")
        wait_for(lambda: bool(folder.run_ids()), "cron to fire", patience_s=80.0)
        (run_id,) = folder.run_ids()
        wait_for(
            lambda: rig.run(run_id).state.exists() and rig.state(run_id).phase == "succeeded", "the batch job's end"
        )
        job = rig.state(run_id).slurm
        assert job is not None
        assert (job.node or "").startswith("node")
        told = slurm.run("scontrol", "-o", "show", "job", job.job_id)
        assert "Partition=cheap" in told
        assert "TimeLimit=00:07:00" in told
        assert (rig.run(run_id).result / "seen").read_text() == "x y"
        shown = ask(rig, cron, "show", history=True).standings[0]
        assert [(line.what, line.run_id) for line in shown.history][:1] == [("fired", run_id)]
        assert run_id in [state.run_id for state in shown.runs]
        ask(rig, cron, "remove")
