"""A real systemd of a user, with folders, processes and a control group of its own; and what it makes of our times."""

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remote_payload import processes
from remote_payload.schedule.folder import ScheduleDir
from remote_payload.schedule.timer import calendars
from remote_payload.schedule.times import next_after
from remote_payload.schema import SelftestJob, to_json
from remote_payload.schema.cron import CronError, parse_cron
from remote_payload.schema.schedule import ScheduleRequest
from tests.payload.rig import NONCE, Rig
from tests.payload.schedule.test_times import EXPRESSIONS, unix, zone
from tests.support.patience import wait_for

__all__ = ["zone"]  # a fixture
SYSTEMD = "/usr/lib/systemd/systemd"
_NAMESPACE = """
set -e
mount -t tmpfs run /run
mkdir -p -m 700 /run/systemd/system /run/user/0 "$1"
echo $$ > "$1/cgroup.procs"
echo ready
{systemd} --user &
wait
"""


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@settings(max_examples=8, deadline=None)
@given(
    st.lists(
        st.tuples(EXPRESSIONS, st.integers(unix("2025-01-01 00:00"), unix("2031-01-01 00:00"))), min_size=6, max_size=12
    )
)
def test_systemd_means_the_same_times(cases: list[tuple[str, int]]) -> None:
    """Of a day by its date or else its weekday two calendars are made; the earlier one counts."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    for text, after in cases:
        try:
            due = next_after(parse_cron(text), after)
        except CronError:
            continue
        command = ["systemd-analyze", "calendar", f"--base-time=@{after}", *calendars(text)]
        said = subprocess.run(command, capture_output=True, text=True, check=True, env={"TZ": "UTC", "LC_ALL": "C"})
        found = re.findall(r"Next elapse: \w+ (\S+ \S+):00 UTC", said.stdout)
        assert due is not None
        assert min(map(unix, found)) == due, (text, after)


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[list[str]]:
    """A running `systemd --user`; the words that run a program where it is."""
    if not Path(SYSTEMD).exists() or os.geteuid() != 0:
        pytest.skip("needs systemd, and root for namespaces and a control group")
    group = Path(f"/sys/fs/cgroup/systemd/eagle3-test-{os.getpid()}")
    if not group.parent.is_dir():
        group = Path(f"/sys/fs/cgroup/{group.name}")
    command = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"]
    shell = ["sh", "-c", _NAMESPACE.replace("{systemd}", SYSTEMD), "sh", str(group)]
    own = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_RUNTIME_DIR": "/run/user/0",
    }
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen([*command, *shell], stdout=subprocess.PIPE, stderr=log, env=own) as outer,
    ):
        try:
            assert outer.stdout is not None
            if outer.stdout.readline() != b"ready\n":
                pytest.skip(f"no namespaces or control groups here: {(tmp_path / 'log').read_text()}")
            (first,) = processes.children(outer.pid)
            words = [
                "nsenter",
                f"--target={first}",
                "--mount",
                "--pid",
                "--",
                "env",
                *(f"{k}={v}" for k, v in own.items()),
            ]
            asked = [*words, "systemctl", "--user", "show-environment"]
            wait_for(
                lambda: subprocess.run(asked, capture_output=True, check=False).returncode == 0, "systemd to answer"
            )
            yield words
        finally:
            outer.send_signal(signal.SIGKILL)
            outer.wait()
            for folder in sorted(group.rglob("*/"), reverse=True):
                with contextlib.suppress(OSError):
                    folder.rmdir()
            wait_for(lambda: _gone(group), "the control group to be empty")


def _gone(group: Path) -> bool:
    for folder in (*sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True), group):
        with contextlib.suppress(OSError):
            folder.rmdir()
    return not group.exists()


def ask(rig: Rig, inside: list[str], action: str, **more: Any) -> Any:
    python = rig.root.parent / "python"
    python.write_text(f'#!/bin/sh\nexec {" ".join(inside)} {sys.executable} "$@"\n')
    python.chmod(0o755)
    rig.python = str(python)
    request = ScheduleRequest(nonce=NONCE, root=str(rig.root), action=action, schedule_id="often", **more)
    (frame,) = rig.call("schedule", request)
    return frame


@pytest.mark.infra
def test_a_timer_from_its_making_to_its_end(tmp_path: Path, inside: list[str]) -> None:
    rig = Rig(tmp_path / "it's 100% $HOME")

    def systemctl(*words: str) -> str:
        done = subprocess.run([*inside, "systemctl", "--user", *words], capture_output=True, text=True, check=False)
        return done.stdout

    spec = rig.spec("often", SelftestJob(duration_s=2.0))
    made = ask(rig, inside, "add", cron="17 3 * * *", spec=spec, engine="systemd")
    timer = systemctl("show", "eagle3-remote-often.timer", "--property=NextElapseUSecRealtime")
    assert made.standings[0].coming_local[0].rpartition(" ")[0] in timer
    assert "enabled" in systemctl("is-enabled", "eagle3-remote-often.timer")
    folder = ScheduleDir(rig.root.resolve(), "often")
    minute = int(time.time()) // 60 * 60
    cron = time.strftime("%M %H * * *", time.localtime(minute))
    folder.record.write_text(to_json(dataclasses.replace(folder.read(), cron=cron, created_unix_s=minute - 1.0)))
    systemctl("start", "eagle3-remote-often.service")
    (run_id,) = folder.run_ids()
    rig.running(run_id)
    assert "inactive" in systemctl("is-active", "eagle3-remote-often.service")  # and the run goes on
    wait_for(lambda: rig.state(run_id).phase == "succeeded", "the run to end")
    assert ask(rig, inside, "show").standings[0].counts == {"fired": 1}
    ask(rig, inside, "remove")
    assert "eagle3-remote" not in systemctl("list-timers", "--all")
    assert list((tmp_path / "config" / "systemd" / "user").glob("eagle3*")) == []
