"""What `--at`, `--wait` and the GPU flags mean."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator.errors import Eagle3Error
from orchestrator.waiting import Wish, duration_s, moment, same_gpus, start_words
from remote_payload.schema.waiting import Waiting


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def now(text: str = "2026-11-30 20:00") -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M").astimezone()


@pytest.mark.parametrize(
    ("told", "due"),
    [
        ("22:00", "2026-11-30 21:00"),
        ("22:00 laptop", "2026-11-30 21:00"),
        ("19:00", "2026-12-01 18:00"),
        ("20:00", "2026-12-01 19:00"),
        ("22:00 UTC", "2026-11-30 22:00"),
        ("18:30 UTC", "2026-12-01 18:30"),
        ("9:05", "2026-12-01 08:05"),
        ("22:00 America/New_York", "2026-12-01 03:00"),
        ("14:30 America/New_York", "2026-11-30 19:30"),
        ("22:00 +05:30", "2026-12-01 16:30"),
        ("2026-12-24 22:00", "2026-12-24 21:00"),
        ("2026-12-24T22:00 UTC", "2026-12-24 22:00"),
        ("2027-07-01 12:00", "2027-07-01 10:00"),
    ],
)
def test_a_time_of_some_zone(told: str, due: str) -> None:
    unix_s, local = moment(told, now())
    assert local is None
    assert unix_s is not None
    assert datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M") == due


@pytest.mark.parametrize(
    ("told", "now_utc", "due_utc"),
    [
        ("02:30", "2026-03-28 12:00", "2026-03-30 00:30"),  # skipped on the 29th
        ("02:30 Europe/Berlin", "2026-03-28 12:00", "2026-03-30 00:30"),
        ("02:30", "2026-10-24 12:00", "2026-10-25 00:30"),  # twice on the 25th: the first
        ("02:30", "2026-10-25 00:45", "2026-10-25 01:30"),  # between the two: the second
        ("02:30 Europe/Berlin", "2026-10-25 00:45", "2026-10-25 01:30"),
        ("2026-10-25 02:30", "2026-10-25 00:45", "2026-10-25 01:30"),
        ("02:30", "2026-10-25 01:45", "2026-10-26 01:30"),
    ],
)
def test_a_time_around_a_change_of_the_clock(told: str, now_utc: str, due_utc: str) -> None:
    moment_s, _ = moment(told, datetime.fromisoformat(f"{now_utc}+00:00").astimezone())
    assert moment_s is not None
    assert datetime.fromtimestamp(moment_s, UTC).strftime("%Y-%m-%d %H:%M") == due_utc


@pytest.mark.parametrize("told", ["2026-03-29 02:30", "2026-03-29 02:30 Europe/Berlin"])
def test_a_day_that_has_no_such_time(told: str) -> None:
    with pytest.raises(Eagle3Error, match=f"--at: the clocks skip this time: {told}"):
        moment(told, now("2026-03-20 12:00"))


def test_the_next_time_across_a_change_of_summer_time() -> None:
    unix_s, _ = moment("12:00", now("2027-03-27 13:00"))
    assert unix_s is not None
    assert datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M") == "2027-03-28 10:00"


@pytest.mark.parametrize(
    ("told", "local"), [("22:00 host", "22:00"), ("7:30 host", "07:30"), ("2026-12-24 22:00 host", "2026-12-24T22:00")]
)
def test_a_time_that_the_host_reads_by_its_own_clock(told: str, local: str) -> None:
    assert moment(told, now()) == (None, local)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("soon", "expected a time, found: 'soon'"),
        ("25:00", "expected a time"),
        ("22:61 host", "expected a time"),
        ("2026-13-01 10:00", "expected a time"),
        ("22:00 Mars/Olympus", "no time zone of this name: 'Mars/Olympus'"),
        ("22:00 ../../etc/passwd", "expected a time"),
        ("2026-11-30 19:00", "has passed"),
        ("0001-01-01 00:00", "has passed"),
        ("2020-01-01 00:00 host", "has passed"),
        ("22:00 +99:00", "no time zone of this name: '+99:00'"),
        ("٢٢:٠٠", "expected a time"),
    ],
)
def test_times_that_are_none(told: str, words: str) -> None:
    with pytest.raises(Eagle3Error, match="--at") as caught:
        moment(told, now())
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90.0), ("30m", 1800.0), ("6h", 21600.0), ("1.5 d", 129600.0), ("0s", 0.0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert duration_s(text, "--wait") == seconds


@pytest.mark.parametrize("text", ["6", "h", "-1h", "6 hours", "nan h", "infh", ""])
def test_durations_that_are_none(text: str) -> None:
    with pytest.raises(Eagle3Error, match="--wait: expected a duration with its unit"):
        duration_s(text, "--wait")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, None),
        ({"gpus": 2}, Waiting(gpus=2)),
        (
            {"gpus": 1, "min_free": "20GiB", "when_free": True, "longest": "6h"},
            Waiting(gpus=1, min_free_bytes=20 * 2**30, when_free=True, longest_s=21600.0),
        ),
        ({"after": ("run-1",)}, Waiting(after=("run-1",))),
    ],
)
def test_what_was_asked(asked: dict[str, Any], found: Waiting | None) -> None:
    assert Wish(**asked).waiting() == found


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"when_free": True}, "say how many with --gpus N"),
        ({"min_free": "20GiB"}, "say how many with --gpus N"),
        ({"gpus": 1, "longest": "6h"}, "belongs to --when-free"),
        ({"gpus": 1, "min_free": "20"}, "--min-free: expected a size with its unit"),
        ({"gpus": 2000}, "`gpus` must be 0..1024"),
        ({"after": ("../etc",)}, "`after` must hold ids of runs"),
    ],
)
def test_what_makes_no_sense(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(Eagle3Error) as caught:
        Wish(**asked).waiting()
    assert words in str(caught.value)


def test_whose_clock_is_meant_is_said() -> None:
    assert start_words(Waiting(start_local="22:00")) == "22:00 by the host's clock and zone"
    told = start_words(Waiting(start_unix_s=now("2026-11-30 22:00").timestamp()))
    assert told == "2026-11-30 22:00 CET (this laptop's zone; 21:00 UTC)"
    assert start_words(Waiting(gpus=1)) is None


def test_a_laptop_on_utc_says_the_time_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert start_words(Waiting(start_unix_s=1_796_076_000.0)) == "2026-11-30 22:00 UTC"


def test_going_on_asks_for_as_many_gpus_and_not_for_the_time() -> None:
    earlier = Waiting(start_local="22:00", after=("r1",), gpus=2, when_free=True)
    assert same_gpus(earlier) == Waiting(gpus=2, when_free=True)
    assert same_gpus(Waiting(start_local="22:00")) is None
    assert same_gpus(None) is None
    # A start that is taken over holds the GPUs: giving up at once would refuse to go on for as long as it runs.
    assert same_gpus(Waiting(gpus=2), adopts=True) == Waiting(gpus=2, when_free=True)
    assert same_gpus(Waiting(gpus=2)) == Waiting(gpus=2)
