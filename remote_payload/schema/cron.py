"""A cron expression: five fields and the names for common ones, read as Vixie's cron reads them (crontab(5)).

`minute hour day-of-month month day-of-week`, each `*`, a number, a name (month, day), a range, a list, `*/n`, `a-b/n`.
A day is meant when day-of-month AND day-of-week match, as long as one of them begins with `*`; when neither does,
when one OR the other matches. Not covered, and refused: `@reboot`, which names no time, cronie's `~`, Quartz' `?LW#`.
"""

from typing import NamedTuple

NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
LONGEST_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class CronError(ValueError):
    """A text that is no cron expression; says which field, what was expected and what was found."""


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    first_name: int = 0


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS, 1),
    _Field("day of the week", 0, 7, _DAYS, 0),
)


class Cron(NamedTuple):
    """When, as sets of numbers; Sunday is 0."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    both_days: bool
    """A day must match `days` and `weekdays`; False: one of them is enough."""
    by_the_clock: bool
    """Minute or hour begins with `*`: it follows the clock on the wall through changes of summer time, so a repeated
    hour counts twice and a missing one not at all. Others are due once on each of their days."""
    line: str
    """The same in five fields that every cron understands: numbers alone, lists instead of ranges."""


def parse_cron(text: str) -> Cron:
    """Read an expression. Raises CronError, also for a day that no year has, like February 30."""
    told = text.strip()
    if told.startswith("@"):
        if told.lower() not in NICKNAMES:
            raise CronError(f"expected one of {', '.join(NICKNAMES)}, found: {told[:40]!r}")
        told = NICKNAMES[told.lower()]
    words = told.split()
    if len(words) != len(_FIELDS) or not told.isascii():
        raise CronError(
            "expected five fields (minute, hour, day of the month, month, day of the week) or one of "
            f"{', '.join(NICKNAMES)}, found: {text.strip()[:80]!r}"
        )
    minutes, hours, days, months, weekdays = map(_numbers, words, _FIELDS)
    weekdays = frozenset(day % 7 for day in weekdays)
    both = words[2].startswith("*") or words[4].startswith("*")
    if both and not any(min(days) <= LONGEST_MONTH[month - 1] for month in months):
        raise CronError(f"no month of it has such a day, so it is never due: {text.strip()[:80]!r}")
    sets = (minutes, hours, days, months, weekdays)
    fields = (
        word if word.startswith("*") else ",".join(map(str, sorted(found)))
        for word, found in zip(words, sets, strict=True)
    )
    by_the_clock = words[0].startswith("*") or words[1].startswith("*")
    return Cron(*sets, both_days=both, by_the_clock=by_the_clock, line=" ".join(fields).lower())


def _numbers(word: str, field: _Field) -> frozenset[int]:
    found: set[int] = set()
    for part in word.split(","):
        span, slash, step = part.partition("/")
        every = _number(step, _Field(f"step of the {field.name}", 1, field.high)) if slash else 1
        if span == "*":
            low, high = field.low, min(field.high, 6) if field.names == _DAYS else field.high
        else:
            first, dash, last = span.partition("-")
            low = _number(first, field)
            high = _number(last, field) if dash else low
            if slash and not dash:
                raise CronError(f"{field.name}: a step needs `*` or a range before it, found: {part!r}")
            if high < low:
                raise CronError(f"{field.name}: expected a range that goes up, found: {part!r}")
        found.update(range(low, high + 1, every))
    return frozenset(found)


def _number(text: str, field: _Field) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 2 and field.low <= int(text) <= field.high:
        return int(text)
    if text.lower() in field.names:
        return field.names.index(text.lower()) + field.first_name
    names = f" or {field.names[0]}..{field.names[-1]}" if field.names else ""
    raise CronError(f"{field.name}: expected {field.low}..{field.high}{names}, found: {text[:40]!r}")
