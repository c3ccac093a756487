"""When a cron expression is due, against looking at every single minute, and around changes of summer time."""

import os
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remote_payload.schedule.times import due_between, last_until, next_after
from remote_payload.schema.cron import Cron, CronError, parse_cron

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Auckland")


@pytest.fixture(autouse=True)
def zone() -> Iterator[None]:
    before = os.environ.get("TZ")
    yield
    if before is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = before
    time.tzset()


def use(name: str) -> None:
    os.environ["TZ"] = name
    time.tzset()


def unix(text: str) -> int:
    """Of a UTC time."""
    import calendar  # noqa: PLC0415

    return calendar.timegm(time.strptime(text, "%Y-%m-%d %H:%M"))


def utc(moments: Iterator[int]) -> list[str]:
    return [time.strftime("%Y-%m-%d %H:%M", time.gmtime(moment)) for moment in moments]


def matches(cron: Cron, moment: int) -> bool:
    """By crontab(5), of one minute that the clock shows."""
    now = time.localtime(moment)
    in_month, in_week = now.tm_mday in cron.days, (now.tm_wday + 1) % 7 in cron.weekdays
    day = (in_month and in_week) if cron.both_days else (in_month or in_week)
    return day and now.tm_mon in cron.months and now.tm_hour in cron.hours and now.tm_min in cron.minutes


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    stepped = st.tuples(st.one_of(span, st.just("*")), st.integers(1, high)).map(lambda pair: f"{pair[0]}/{pair[1]}")
    one = st.one_of(number.map(str), span, stepped)
    return st.one_of(st.just("*"), st.lists(one, min_size=1, max_size=3).map(",".join))


EXPRESSIONS = st.tuples(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 7)).map(" ".join)


@settings(max_examples=40, deadline=None)
@given(EXPRESSIONS, st.sampled_from(ZONES), st.integers(unix("2025-01-01 00:00"), unix("2031-01-01 00:00")))
def test_it_is_due_in_the_minutes_that_match(text: str, name: str, start: int) -> None:
    """Away from changes of summer time, which have their own tests."""
    use(name)
    try:
        cron = parse_cron(text)
    except CronError as error:
        assert "never due" in str(error)  # noqa: PT017
        return
    until = start + 3 * 86400
    if len({time.localtime(start + hour * 3600).tm_gmtoff for hour in range(-30, 4 * 24)}) > 1:
        return
    slow = [moment for moment in range(start - start % 60 + 60, until + 1, 60) if matches(cron, moment)]
    assert list(due_between(cron, start, until)) == slow
    assert parse_cron(cron.line)[:6] == cron[:6]
    if slow:
        assert next_after(cron, start) == slow[0]
        assert last_until(cron, until, start) == slow[-1]


BERLIN = "Europe/Berlin"  # 2026-03-29 02:00 -> 03:00 at 01:00 UTC; 2026-10-25 03:00 -> 02:00 at 01:00 UTC


@pytest.mark.parametrize(
    ("text", "name", "day", "due"),
    [
        ("30 2 * * *", BERLIN, "2026-03-28", ["2026-03-29 01:00"]),
        ("0,30 2 * * *", BERLIN, "2026-03-28", ["2026-03-29 01:00"]),
        ("30 3 * * *", BERLIN, "2026-03-28", ["2026-03-29 01:30"]),
        ("0 * * * *", BERLIN, "2026-03-28", ["2026-03-29 00:00", "2026-03-29 01:00", "2026-03-29 02:00"]),
        ("30 2 * * *", BERLIN, "2026-10-24", ["2026-10-25 00:30"]),
        ("30 1 * * *", BERLIN, "2026-10-24", ["2026-10-24 23:30"]),
        ("30 * * * *", BERLIN, "2026-10-24", ["2026-10-24 23:30", *(f"2026-10-25 0{hour}:30" for hour in range(3))]),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-10-03", ["2026-10-03 15:15"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03", ["2026-10-03 15:30"]),
    ],
)
def test_when_the_clocks_change(text: str, name: str, day: str, due: list[str]) -> None:
    use(name)
    if name == BERLIN:
        start, until = unix(f"{day} 23:00"), unix(f"{day} 23:00") + 3 * 3600 + 1800
    else:
        start, until = unix(f"{day} 14:00"), unix(f"{day} 17:00")
    assert utc(due_between(parse_cron(text), start, until)) == due


@pytest.mark.parametrize(
    ("text", "after", "due"),
    [
        ("0 0 29 2 *", "2096-03-01 00:00", "2104-02-29 00:00"),
        ("0 0 13 * 5", "2026-11-30 00:00", "2026-12-04 00:00"),
        ("0 0 13 * */7", "2026-11-30 00:00", "2026-12-13 00:00"),
        ("0 0 */2 * mon", "2026-11-30 00:00", "2026-12-07 00:00"),
        ("@weekly", "2026-11-30 00:00", "2026-12-06 00:00"),
        ("5 4 * * sun,7", "2026-11-30 00:00", "2026-12-06 04:05"),
        ("0 22 * dec fri-sat", "2026-11-30 00:00", "2026-12-04 22:00"),
        ("0 0 31 * *", "2026-11-30 00:00", "2026-12-31 00:00"),
        ("30 2 30 2 1", "2026-01-30 00:00", "2026-02-02 02:30"),
    ],
)
def test_the_next_time(text: str, after: str, due: str) -> None:
    use("UTC")
    assert next_after(parse_cron(text), unix(after)) == unix(due)


def test_nothing_lies_before_the_beginning() -> None:
    use("UTC")
    cron = parse_cron("0 12 * * *")
    noon = unix("2026-11-30 12:00")
    assert last_until(cron, noon + 59, noon - 1) == noon
    assert last_until(cron, noon + 59, noon) is None
    assert last_until(cron, noon - 1, noon - 3 * 86400) == noon - 86400


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("* * * *", "expected five fields"),
        ("", "expected five fields"),
        ("60 * * * *", "minute: expected 0..59, found: '60'"),
        ("* 24 * * *", "hour: expected 0..23"),
        ("* * 0 * *", "day of the month: expected 1..31"),
        ("* * * foo *", "month: expected 1..12 or jan..dec, found: 'foo'"),
        ("* * * * 8", "day of the week: expected 0..7 or sun..sat"),
        ("5-1 * * * *", "expected a range that goes up"),
        ("5/10 * * * *", "a step needs `*` or a range"),
        ("*/0 * * * *", "step of the minute: expected 1..59"),
        ("@reboot", "expected one of @hourly"),
        ("0 0 30 2 *", "never due"),
        ("~ * * * *", "minute: expected"),
        ("0 0 L * *", "day of the month"),
        ("٣ * * * *", "expected five fields"),
        ("1,,2 * * * *", "minute: expected 0..59, found: ''"),
        ("-1 * * * *", "minute: expected"),
    ],
)
def test_what_is_no_expression(text: str, words: str) -> None:
    with pytest.raises(CronError) as caught:
        parse_cron(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("0 22 * * mon-fri", "0 22 * * 1,2,3,4,5"),
        ("*/15 8-10 1 JAN 7", "*/15 8,9,10 1 1 0"),
        ("@daily", "0 0 * * *"),
    ],
)
def test_what_every_cron_understands(text: str, line: str) -> None:
    assert parse_cron(text).line == line
