"""Every time that passes is accounted for once, whatever the host was at: on, off, looked at, its clock set ahead."""

import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remote_payload import processes
from remote_payload.schedule import history
from remote_payload.schedule.folder import ScheduleDir
from remote_payload.schedule.history import GRACE_S, at_this_moment, counts, note, note_steps_and_missed, read_history
from remote_payload.schedule.times import due_between
from remote_payload.schema import RunSpec, SelftestJob, to_json
from remote_payload.schema.cron import parse_cron
from remote_payload.schema.schedule import Occasion, Schedule
from tests.payload.schedule.test_times import use, zone

__all__ = ["zone"]  # a fixture
BEGIN_S = 1_796_000_000
SPEC = RunSpec(
    run_id="often",
    job_kind="selftest",
    job_json=to_json(SelftestJob()),
    python="/usr/bin/python3",
    payload_sha256="0" * 64,
    environment={},
    launched_by="somebody@laptop",
    created_unix_s=1.0,
)


def schedule_of(cron: str) -> Schedule:
    return Schedule(
        schedule_id="often",
        cron=cron,
        engine="cron",
        spec=SPEC,
        host="here",
        zone="UTC",
        path="/usr/bin",
        python="/usr/bin/python3",
        created_unix_s=float(BEGIN_S),
    )


STEPS = st.lists(st.tuples(st.sampled_from(["on", "off", "look", "ahead"]), st.integers(1, 90)), max_size=10)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["*/7 * * * *", "5 */3 * * *", "0 0 * * *"]), STEPS)
def test_every_time_is_accounted_for_once(cron: str, steps: list[tuple[str, int]]) -> None:
    schedule, now_s, boot_s = schedule_of(cron), float(BEGIN_S), float(BEGIN_S - 500_000)
    with tempfile.TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        folder = ScheduleDir(Path(root), "often")
        folder.path.mkdir(parents=True)
        patch.setattr(history.time, "time", lambda: now_s)
        patch.setattr(history.time, "clock_gettime", lambda _: now_s - boot_s)
        for what, minutes in steps:
            until_s = now_s + minutes * 60
            if what == "on":
                for due_s in due_between(parse_cron(cron), now_s, until_s):
                    now_s = due_s + 1.0
                    note_steps_and_missed(folder, schedule, due_s - 1)
                    note(folder, at_this_moment(what="fired", due_unix_s=due_s))
            elif what == "look":
                note_steps_and_missed(folder, schedule, now_s - GRACE_S)
            elif what == "ahead":
                boot_s += minutes * 60
            now_s = max(now_s, until_s)
        note_steps_and_missed(folder, schedule, now_s)
        found = read_history(folder)
        told = [
            due_s
            for one in found
            if one.due_unix_s is not None
            for due_s in due_between(parse_cron(cron), one.due_unix_s - 1, one.until_unix_s or one.due_unix_s)
        ]
        due = list(due_between(parse_cron(cron), BEGIN_S, now_s))
        # What cron is late with by more than the grace is told as missed, and then as fired: here it never is.
        assert told == due
        assert counts(found).get("fired", 0) + counts(found).get("missed", 0) == len(due)


def test_a_file_that_has_grown_large_loses_its_oldest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_BYTES", 2000)
    monkeypatch.setattr(history, "KEPT_LINES", 5)
    folder = ScheduleDir(tmp_path, "often")
    folder.path.mkdir(parents=True)
    for number in range(60):
        note(folder, at_this_moment(what="fired", due_unix_s=BEGIN_S + number * 60))
    found = read_history(folder)
    assert 5 <= len(found) < 20
    assert found[-1].due_unix_s == BEGIN_S + 59 * 60


def test_half_a_line_is_passed_over(tmp_path: Path) -> None:
    folder = ScheduleDir(tmp_path, "often")
    folder.path.mkdir(parents=True)
    note(folder, at_this_moment(what="fired", due_unix_s=BEGIN_S))
    with folder.history.open("a") as file:
        file.write('{"what": "fir\n')
    note(folder, at_this_moment(what="fired", due_unix_s=BEGIN_S + 60))
    assert [one.due_unix_s for one in read_history(folder)] == [BEGIN_S, BEGIN_S + 60]


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("reboots", [False, True])
def test_a_clock_that_was_far_ahead_hides_no_time_once_it_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, reboots: bool
) -> None:
    use("UTC")
    year_s, hour_s, clock = 365 * 86400, 3600, {"ahead": 0.0, "now": float(BEGIN_S), "boot": BEGIN_S - 500_000.0}
    monkeypatch.setattr(history.time, "time", lambda: clock["now"] + clock["ahead"])
    monkeypatch.setattr(history.time, "clock_gettime", lambda _: clock["now"] - clock["boot"])
    folder, schedule = ScheduleDir(tmp_path, "often"), schedule_of("0 * * * *")
    folder.path.mkdir(parents=True)

    def look() -> list[Occasion]:
        before = len(read_history(folder))
        return note_steps_and_missed(folder, schedule, time.time())[before:]

    (first,) = due_between(parse_cron(schedule.cron), BEGIN_S, BEGIN_S + hour_s)
    clock["now"] = first + 1.0
    note(folder, at_this_moment(what="fired", due_unix_s=first))
    clock["ahead"] = year_s
    assert [one.what for one in look()] == ["clock_step", "missed"]
    clock["ahead"] = 0.0
    if reboots:
        monkeypatch.setattr(processes, "boot_id", lambda: "another")
    clock["now"] += 3 * hour_s
    (missed,) = [one for one in look() if one.what == "missed"]
    assert missed.count == (2 if reboots else 3)  # of another boot the first of them is known no better
    assert (missed.until_unix_s, look()) == (first + 3 * hour_s, [])
