"""Schedules on a host: the crontab around them, what a time leads to, what is missed, how they go."""

import dataclasses
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from remote_payload import processes
from remote_payload.refusal import Refusal
from remote_payload.runstate import read_spec
from remote_payload.schedule import calls, crontab, engines
from remote_payload.schedule.folder import ScheduleDir
from remote_payload.schedule.history import at_this_moment, note
from remote_payload.schema import PathIdentity, SelftestJob, SweepJob, from_json, to_json
from remote_payload.schema.schedule import Occasion, Schedule, ScheduleRequest
from remote_payload.schema.slurm import SlurmSettings
from remote_payload.schema.waiting import Waiting
from remote_payload.sweep.identity import digest_of
from tests.payload.rig import NONCE, Rig
from tests.payload.sweep.test_sweep import sweep_of
from tests.support.engines import crontab_at, environment, made, systemctl_at
from tests.support.made_smi import MadeSmi
from tests.support.patience import wait_for

pytestmark = pytest.mark.usefixtures("systems_zone")

FOREIGN = b'# m\xffne\nMAILTO=""\r\nCRON_TZ=Asia/Tokyo\n17 3 * * *\ttrue \\% "x"\n\n'


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return crontab_at(tmp_path)


def ask(rig: Rig, tmp_path: Path, action: str, schedule_id: str | None = "nightly", **more: Any) -> Any:
    exit_code, env = more.pop("exit_code", 0), more.pop("env", {})
    fields = {"nonce": NONCE, "root": str(rig.root), "action": action, "schedule_id": schedule_id, **more}
    (frame,) = rig.call("schedule", ScheduleRequest(**fields), env=environment(tmp_path, **env), exit_code=exit_code)
    return frame


def add(rig: Rig, tmp_path: Path, cron: str = "0 22 * * *", job: SelftestJob | None = None, **more: Any) -> Any:
    return ask(rig, tmp_path, "add", cron=cron, spec=rig.spec("nightly", job), **more)


def show(rig: Rig, tmp_path: Path, **more: Any) -> Any:
    (standing,) = ask(rig, tmp_path, "show", **more).standings
    return standing


def folder_of(rig: Rig) -> ScheduleDir:
    return ScheduleDir(rig.root.resolve(), "nightly")


def made_at(rig: Rig, created_unix_s: float, cron: str = "* * * * *") -> Schedule:
    """Let the schedule be so old."""
    known = folder_of(rig).read()
    older = dataclasses.replace(known, created_unix_s=created_unix_s, cron=cron)
    folder_of(rig).record.write_text(to_json(older))
    return older


def due_now(rig: Rig) -> Schedule:
    """Let this minute's be its one time."""
    minute = int(time.time()) // 60 * 60
    return made_at(rig, minute - 1.0, time.strftime("%M %H * * *", time.localtime(minute)))


def fire(rig: Rig, tmp_path: Path) -> "subprocess.CompletedProcess[str]":
    """Run what stands in the crontab as cron does: by sh, with hardly an environment."""
    (line,) = [line for line in (tmp_path / "crontab").read_text().splitlines() if "eagle3-remote schedule" in line]
    command = line.split(maxsplit=5)[5].replace("\\%", "%")
    bare = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    return subprocess.run(["/bin/sh", "-c", command], env=bare, capture_output=True, text=True, check=False, timeout=60)


def test_every_other_line_of_the_crontab_stays(rig: Rig, tmp_path: Path, table: Path) -> None:
    table.write_bytes(FOREIGN)
    (standing,) = add(rig, tmp_path).standings
    entry, _, rest = table.read_bytes().partition(b"\n")
    assert rest == FOREIGN
    assert entry.startswith(b"0 22 * * * ")
    assert entry.endswith(f" fire {rig.root} nightly # eagle3-remote schedule nightly".encode())
    assert (standing.installed, standing.schedule.engine, len(standing.coming_unix_s)) == (True, "cron", 1)
    add(rig, tmp_path)  # the same once more
    assert table.read_bytes() == entry + b"\n" + FOREIGN
    other = add(rig, tmp_path, cron="0 23 * * *", exit_code=1)
    assert (other.code, "another schedule owns this id" in other.message) == ("claimed_by_other_spec", True)
    assert ask(rig, tmp_path, "remove").standings == ()
    assert table.read_bytes() == FOREIGN
    assert not folder_of(rig).path.exists()
    assert ask(rig, tmp_path, "remove", exit_code=1).code == "no_such_run"


def test_where_no_crontab_was_none_is_left(rig: Rig, tmp_path: Path, table: Path) -> None:
    add(rig, tmp_path)
    assert table.exists()
    ask(rig, tmp_path, "remove")
    assert not table.exists()


def test_a_folder_with_everything_that_a_shell_and_cron_care_about(tmp_path: Path, table: Path) -> None:
    rig = Rig(tmp_path / "it's $HOME 100%")
    add(rig, tmp_path)
    schedule = due_now(rig)
    assert "100\\%" in table.read_text()
    assert fire(rig, tmp_path).stderr == ""
    (run_id,) = folder_of(rig).run_ids()
    assert schedule.spec.run_id == "nightly"
    rig.running(run_id)
    ask(rig, tmp_path, "remove")
    rig.clean_up()
    assert not table.exists()


def test_a_time_is_a_run_and_twice_is_one(rig: Rig, tmp_path: Path, table: Path) -> None:
    add(rig, tmp_path)
    due_now(rig)
    one, other = (threading.Thread(target=fire, args=(rig, tmp_path)) for _ in range(2))
    one.start(), other.start()
    one.join(), other.join()
    (run_id,) = folder_of(rig).run_ids()
    wait_for(lambda: rig.state(run_id).phase == "succeeded")
    told = show(rig, tmp_path, history=True)
    fired, again = told.history
    assert (fired.what, fired.run_id, again.what) == ("fired", run_id, "skipped")
    assert run_id == f"nightly.{time.strftime('%Y%m%d-%H%M', time.gmtime(fired.due_unix_s))}"
    assert [run.run_id for run in told.runs] == [run_id]
    assert "fired twice, or the clock was set back" in again.why


def test_slurm_is_asked_as_the_login_asks_it(rig: Rig, tmp_path: Path, table: Path) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir(exist_ok=True)
    sbatch = bin_folder / "sbatch"
    sbatch.write_text(f"#!/bin/sh\nenv > {tmp_path}/seen\necho 7\n")
    sbatch.chmod(0o755)
    spec = rig.spec("nightly", slurm=SlurmSettings(), environment={"LD_LIBRARY_PATH": "/opt/slurm/lib"})
    login = {"SLURM_CONF": "/etc/other/slurm.conf", "SBATCH_ACCOUNT": "lab", "SLURM_JWT": "s3cret"}
    login["PATH"] = f"{bin_folder}:{environment(tmp_path)['PATH']}"
    ask(rig, tmp_path, "add", cron="0 22 * * *", spec=spec, env=login)
    due_now(rig)
    assert fire(rig, tmp_path).returncode == 0
    seen = (tmp_path / "seen").read_text().splitlines()
    for line in ("SLURM_CONF=/etc/other/slurm.conf", "SBATCH_ACCOUNT=lab", "LD_LIBRARY_PATH=/opt/slurm/lib"):
        assert line in seen
    assert "s3cret" not in folder_of(rig).record.read_text()


@pytest.mark.slow
def test_a_sweep_is_known_by_the_models_that_lie_there_when_it_is_fired(rig: Rig, tmp_path: Path, table: Path) -> None:
    draft = tmp_path / "draft"
    draft.write_text("v1")
    job = sweep_of({})
    job = dataclasses.replace(job, identity=(PathIdentity(path=str(draft), digest=digest_of(str(draft))),))
    spec = rig.spec("nightly", job_kind="sweep", job_json=to_json(job))
    ask(rig, tmp_path, "add", cron="0 22 * * *", spec=spec)
    draft.write_text("v2, trained meanwhile")
    due_now(rig)
    assert fire(rig, tmp_path).returncode == 0
    (run_id,) = folder_of(rig).run_ids()
    wait_for(lambda: rig.state(run_id).phase == "succeeded")
    ran = from_json(SweepJob, read_spec(rig.run(run_id)).job_json)
    assert ran.identity[0].digest == digest_of(str(draft))
    assert ran.points[0].point_id not in ("p0", "")
    told = show(rig, tmp_path, history=True).history[-1]
    assert (told.what, told.why) == ("fired", f"other than when the schedule was made: {draft}")


def test_gpus_that_the_host_will_never_have_are_refused(rig: Rig, tmp_path: Path, table: Path) -> None:
    path = {"PATH": f"{MadeSmi(tmp_path).path}:{environment(tmp_path)['PATH']}"}
    wish = Waiting(gpus=9, leases=str(tmp_path / "leases"))
    refused = ask(
        rig, tmp_path, "add", cron="0 22 * * *", spec=rig.spec("nightly", waiting=wish), env=path, exit_code=1
    )
    assert refused.code == "schedule_refused"
    assert "9 GPUs asked for, this host shows 2" in refused.message
    assert not table.exists()
    fits = dataclasses.replace(wish, gpus=2)
    (standing,) = ask(
        rig, tmp_path, "add", cron="0 22 * * *", spec=rig.spec("nightly", waiting=fits), env=path
    ).standings
    assert standing.installed


def test_one_that_still_runs_is_not_joined_by_another(rig: Rig, tmp_path: Path, table: Path) -> None:
    add(rig, tmp_path, job=SelftestJob(duration_s=60.0))
    due_now(rig)
    spec = dataclasses.replace(folder_of(rig).read().spec, run_id="nightly.20200101-0000")
    rig.launch(spec)
    assert fire(rig, tmp_path).returncode == 0
    told = show(rig, tmp_path, history=True)
    assert [(line.what, line.why) for line in told.history] == [("skipped", "nightly.20200101-0000 is not over yet")]
    assert folder_of(rig).run_ids() == ("nightly.20200101-0000",)
    folder_of(rig).history.unlink()
    known = folder_of(rig).read()
    folder_of(rig).record.write_text(to_json(dataclasses.replace(known, overlap=True)))
    assert fire(rig, tmp_path).returncode == 0
    assert len(folder_of(rig).run_ids()) == 2
    assert show(rig, tmp_path).counts == {"fired": 1}


def occasion(due_s: int, **more: Any) -> Occasion:
    return dataclasses.replace(at_this_moment(what="fired", due_unix_s=due_s), **more)


def test_times_that_nobody_was_there_for(rig: Rig, tmp_path: Path, table: Path) -> None:
    add(rig, tmp_path)
    minute = int(time.time()) // 60 * 60
    made_at(rig, minute - 3600)
    note(folder_of(rig), occasion(minute - 3000))
    told = show(rig, tmp_path, history=True)
    missed = told.history[-1]
    assert (missed.what, missed.due_unix_s) == ("missed", minute - 2940)
    assert missed.until_unix_s in (minute - 180, minute - 120)  # the last ones may yet come
    assert missed.count == (missed.until_unix_s - missed.due_unix_s) // 60 + 1
    assert "cron did not fire it" in missed.why
    assert show(rig, tmp_path, history=True).counts["missed"] - missed.count in (0, 1)  # told once


def test_a_host_that_was_off(rig: Rig, tmp_path: Path, table: Path) -> None:
    booted_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    hour = int(booted_s) // 3600 * 3600
    add(rig, tmp_path)
    due = time.localtime(hour - 7200)  # of that day alone: on a machine that is up for a day it came again since
    made_at(rig, hour - 10 * 3600 - 1, cron=f"0 {due.tm_hour} {due.tm_mday} {due.tm_mon} *")
    missed = show(rig, tmp_path, history=True).history[0]
    assert (missed.due_unix_s, missed.why) == (hour - 7200, "the host was off")


def test_a_clock_that_was_set(rig: Rig, tmp_path: Path, table: Path) -> None:
    add(rig, tmp_path)
    minute = int(time.time()) // 60 * 60
    made_at(rig, minute - 7200)
    now = occasion(minute - 3600)
    note(folder_of(rig), dataclasses.replace(now, boot_offset_s=now.boot_offset_s - 3600.0))
    step, missed = show(rig, tmp_path, history=True).history[-2:]
    assert (step.what, step.why) == ("clock_step", "the host's clock was set by +3600 s")
    assert (missed.what, missed.why) == ("missed", "the host's clock was set by +3600 s, over it")
    assert step.boot_id == processes.boot_id()


def test_a_clock_that_was_set_back_fires_nothing_twice(rig: Rig, tmp_path: Path, table: Path) -> None:
    add(rig, tmp_path)
    minute = int(time.time()) // 60 * 60
    made_at(rig, minute - 7200)
    for moment in (minute, minute + 60, minute + 3600):
        note(folder_of(rig), occasion(moment))
    assert fire(rig, tmp_path).returncode == 0
    told = show(rig, tmp_path, history=True)
    assert folder_of(rig).run_ids() == ()
    assert told.counts == {"fired": 3, "skipped": 1}


def test_what_cannot_be_launched_is_told(rig: Rig, tmp_path: Path, table: Path) -> None:
    add(rig, tmp_path)
    due_now(rig)
    runs = rig.root / "runs"
    runs.rmdir()
    runs.write_text("in the way")
    done = fire(rig, tmp_path)
    assert done.returncode == 1
    assert "schedule nightly" in done.stderr
    runs.unlink()
    (line,) = show(rig, tmp_path, history=True).history
    assert (line.what, "cannot create the run directory" in line.why) == ("failed", True)
    assert fire(rig, tmp_path).returncode == 0  # and the same time may be tried again
    assert show(rig, tmp_path).counts == {"failed": 1, "fired": 1}


def test_the_zone_of_a_login_is_not_crons(rig: Rig, tmp_path: Path, table: Path) -> None:
    plain = add(rig, tmp_path)
    elsewhere = ask(rig, tmp_path, "show", env={"TZ": "XXX-13:45"})
    assert (elsewhere.zone, elsewhere.standings[0].coming_unix_s) == (plain.zone, plain.standings[0].coming_unix_s)


def test_an_entry_without_a_folder(rig: Rig, tmp_path: Path, table: Path) -> None:
    add(rig, tmp_path)
    folder_of(rig).remove()
    standing = show(rig, tmp_path, schedule_id=None)
    assert (standing.schedule_id, standing.schedule, standing.installed) == ("nightly", None, True)
    assert "its folder is gone" in standing.problem
    ask(rig, tmp_path, "remove")
    assert not table.exists()


def test_a_folder_without_an_entry(rig: Rig, tmp_path: Path, table: Path) -> None:
    add(rig, tmp_path)
    table.unlink()
    assert show(rig, tmp_path).installed is False
    ask(rig, tmp_path, "remove")
    assert not folder_of(rig).path.exists()


def test_one_that_another_host_keeps(rig: Rig, tmp_path: Path, table: Path) -> None:
    """Hosts may share a home, and with it the root."""
    add(rig, tmp_path)
    elsewhere = dataclasses.replace(folder_of(rig).read(), host="gpu7")
    folder_of(rig).record.write_text(to_json(elsewhere))
    told = show(rig, tmp_path)
    assert (told.installed, "is kept by another host" in told.problem) == (None, True)
    for action in ("remove", "add"):
        more = {"cron": "0 22 * * *", "spec": rig.spec("nightly")} if action == "add" else {}
        refused = ask(rig, tmp_path, action, exit_code=1, **more)
        assert "is kept by another host that shares this root: gpu7" in refused.message
    assert folder_of(rig).path.exists()


def test_another_roots_entry_is_not_ours(rig: Rig, tmp_path: Path, table: Path) -> None:
    add(rig, tmp_path)
    other = Rig(tmp_path / "other")
    add(other, tmp_path)
    assert len(table.read_text().splitlines()) == 2
    ask(rig, tmp_path, "remove")
    assert f"fire {other.root} nightly" in table.read_text()
    assert show(other, tmp_path).installed is True


ANSWERS = {
    "denied": ('echo "You (me) are not allowed to use this program (crontab)" >&2; exit 1', "may not use cron"),
    "failed": ('echo "cannot chdir(/var/spool/cron), bailing out" >&2; exit 1', "bailing out"),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_crontab_that_cannot_be_had(rig: Rig, tmp_path: Path, answer: str) -> None:
    text, words = ANSWERS[answer]
    made(tmp_path, "crontab", f"#!/bin/sh\n{text}\n")
    refused = add(rig, tmp_path, exit_code=1, engine="cron")
    assert (refused.code, words in refused.message) == ("schedule_refused", True), refused.message
    assert not folder_of(rig).path.exists()


def test_a_crontab_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, "crontab", "#!/bin/sh\nsleep 60\n")
    monkeypatch.setenv("PATH", environment(tmp_path)["PATH"])
    monkeypatch.setattr(calls, "CALL_S", 0.3)
    answer = crontab.look()
    assert (answer.answer, answer.problem) == ("hung", "`crontab -l` has not answered for 0 s")
    with pytest.raises(Refusal, match="nothing on this host can launch at a time: cron: `crontab -l` has not answered"):
        engines.choose("cron", (answer,))


def test_a_host_without_cron(rig: Rig, tmp_path: Path) -> None:
    refused = add(rig, tmp_path, exit_code=1, env={"PATH": str(tmp_path)})
    assert "this host has no `crontab`" in refused.message
    assert "this host has no `systemctl`" in refused.message


def test_a_crontab_that_does_not_keep_what_it_is_given(rig: Rig, tmp_path: Path) -> None:
    made(tmp_path, "crontab", "#!/bin/sh\n[ $1 = -l ] && echo '# always this'\nexit 0\n")
    refused = add(rig, tmp_path, exit_code=1)
    assert "the crontab reads otherwise than it was written, 3 times" in refused.message


def test_two_at_once_both_get_in(rig: Rig, tmp_path: Path, table: Path) -> None:
    def one(name: str) -> None:
        ask(rig, tmp_path, "add", name, cron="0 1 * * *", spec=rig.spec(name))

    threads = [threading.Thread(target=one, args=(f"s{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(table.read_text().splitlines()) == 4


def test_a_systemd_that_ends_with_the_login_is_none_to_rely_on(rig: Rig, tmp_path: Path) -> None:
    systemctl_at(tmp_path)
    made(tmp_path, "loginctl", "#!/bin/sh\necho no\n")
    assert "`loginctl enable-linger` turns it on" in add(rig, tmp_path, engine="systemd", exit_code=1).message


def test_a_timer_of_systemd(rig: Rig, tmp_path: Path) -> None:
    told = systemctl_at(tmp_path)
    (standing,) = add(rig, tmp_path, cron="30 2 13 * fri").standings
    assert (standing.schedule.engine, standing.installed) == ("systemd", True)
    units = tmp_path / "config" / "systemd" / "user"
    timer = (units / "eagle3-remote-nightly.timer").read_text()
    months = ",".join(f"{month:02d}" for month in range(1, 13))
    assert f"OnCalendar=*-{months}-13 02:30:00\nOnCalendar=Fri *-{months}-* 02:30:00\n" in timer
    assert f'"fire" "{rig.root}" "nightly"' in (units / "eagle3-remote-nightly.service").read_text()
    assert "--user enable --now eagle3-remote-nightly.timer" in told.read_text()
    ask(rig, tmp_path, "remove")
    assert list(units.iterdir()) == []
    assert "--user disable --now eagle3-remote-nightly.timer" in told.read_text()
