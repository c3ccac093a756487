"""When a cron expression is due, in this machine's own time zone, through changes of summer time as Vixie's cron does.

A time that does not exist on its day (clocks go forward) is due right after the gap; one that exists twice is due the
first time. An expression that follows the clock on the wall (`Cron.by_the_clock`) skips the one and has both of the
other. Source: cron.c of Vixie's cron with Debian's patches, "wildcard" and "fixed-time" jobs.
"""

import calendar
import os
import time
from collections.abc import Iterator

from remote_payload.schema.cron import Cron

DAY_S = 86400
LOOK_AHEAD_DAYS = 366 * 9
"""February 29 may be eight years off, around a century that has none."""


def use_the_systems_zone() -> None:
    """Read clocks as cron and systemd do; a login's own `TZ` is not theirs."""
    if os.environ.pop("TZ", None) is not None:
        time.tzset()


def due_between(cron: Cron, after_s: float, until_s: float) -> Iterator[int]:
    """Unix seconds of every time that it is due after the first moment and not after the second, in order."""
    day = time.localtime(after_s - DAY_S)[:3]
    while True:
        noon = time.localtime(time.mktime((*day, 12, 0, 0, 0, 0, -1)))
        if time.mktime((*day, 0, 0, 0, 0, 0, -1)) > until_s + DAY_S:
            return
        if _is_meant(cron, noon):
            yield from (due_s for due_s in _due_on(cron, noon) if after_s < due_s <= until_s)
        day = time.localtime(calendar.timegm((*day, 12, 0, 0, 0, 0, 0)) + DAY_S - noon.tm_gmtoff)[:3]


def next_after(cron: Cron, after_s: float) -> int | None:
    """The first time after a moment; None where there is none within nine years."""
    for days in (2, 40, 400, LOOK_AHEAD_DAYS):
        for due_s in due_between(cron, after_s, after_s + days * DAY_S):
            return due_s
    return None


def last_until(cron: Cron, until_s: float, since_s: float) -> int | None:
    """The last time that is not after `until_s`; None where there is none after `since_s`."""
    for days in (2, 40, 400, LOOK_AHEAD_DAYS):
        from_s = max(since_s, until_s - days * DAY_S)
        found = tuple(due_between(cron, from_s, until_s))
        if found or from_s == since_s:
            return found[-1] if found else None
    return None


def _is_meant(cron: Cron, day: time.struct_time) -> bool:
    in_month, in_week = day.tm_mday in cron.days, (day.tm_wday + 1) % 7 in cron.weekdays
    return day.tm_mon in cron.months and ((in_month and in_week) if cron.both_days else (in_month or in_week))


def _due_on(cron: Cron, day: time.struct_time) -> list[int]:
    """Of one day, which is meant."""
    naive_s = calendar.timegm((*day[:3], 0, 0, 0))
    walls = [naive_s + hour * 3600 + minute * 60 for hour in cron.hours for minute in cron.minutes]
    around = {time.localtime(naive_s - day.tm_gmtoff + hours * 3600).tm_gmtoff for hours in range(-4, 29)}
    if len(around) == 1:
        return sorted(wall - day.tm_gmtoff for wall in walls)
    found: set[int] = set()
    for wall in walls:
        moments = [wall - offset for offset in sorted(around, reverse=True) if _shows(wall - offset, wall)]
        if moments:
            found.update(moments if cron.by_the_clock else moments[:1])
        elif not cron.by_the_clock:
            found.add(_end_of_gap(wall, min(around), max(around)))
    return sorted(found)


def _shows(moment: int, wall: int) -> bool:
    """Whether the clock on the wall shows it then."""
    return moment + time.localtime(moment).tm_gmtoff == wall


def _end_of_gap(wall: int, before_s: int, after_s: int) -> int:
    """The first moment of the new time; the clock shows nothing between the two offsets' readings of `wall`."""
    low, high = wall - after_s, wall - before_s
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if time.localtime(middle).tm_gmtoff == before_s else (low, middle)
    return high
