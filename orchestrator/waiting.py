"""What a run waits for on its host, from the words of the command line: times, durations, sizes, GPUs, other runs."""

import dataclasses
import re
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from orchestrator.errors import UsageError
from orchestrator.jobfile import parse_size
from remote_payload.schema.waiting import LEASES, Waiting

_MOMENT = re.compile(r"(?:(\d{4}-\d{2}-\d{2})[ T])?(\d{1,2}:\d{2})(?:\s*([A-Za-z+-][\w/+:-]*))?", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})", re.ASCII)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])", re.ASCII)
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, kw_only=True)
class Wish:
    """The words of the command line."""

    at: str | None = None
    after: tuple[str, ...] = ()
    gpus: int | None = None
    min_free: str | None = None
    when_free: bool = False
    longest: str | None = None

    def waiting(self, leases: str | None = None, now: datetime | None = None) -> Waiting | None:
        """As a record; None = nothing is waited for. `now` is aware, in this laptop's zone. Raises UsageError."""
        if self == Wish():
            return None
        if not self.gpus and (self.min_free or self.when_free or self.longest):
            raise UsageError("--min-free, --when-free and --wait are about GPUs: say how many with --gpus N")
        if self.longest and not self.when_free:
            raise UsageError("--wait says how long to wait for free GPUs: it belongs to --when-free")
        start = (None, None) if self.at is None else moment(self.at, now or datetime.now().astimezone())
        try:
            return Waiting(
                start_unix_s=start[0],
                start_local=start[1],
                after=self.after,
                gpus=self.gpus or 0,
                min_free_bytes=None if self.min_free is None else parse_size(self.min_free, "--min-free"),
                when_free=self.when_free,
                longest_s=None if self.longest is None else duration_s(self.longest, "--wait"),
                leases=leases or LEASES,
            )
        except ValueError as error:
            raise UsageError(str(error)) from None


def moment(text: str, now: datetime) -> tuple[float | None, str | None]:
    """A start: Unix seconds, or for the host's own zone the words that the host reads by its clock.

    `22:00` is the next one; a zone may follow: none = this laptop's, `host`, `laptop`, `UTC`, `+02:00` or a name of the
    IANA database. Raises UsageError, also for a day that has passed.
    """
    told = _MOMENT.fullmatch(text.strip())
    if told is None:
        raise _no_moment(text)
    day, clock, zone = told.groups()
    try:
        hour, minute = (int(part) for part in clock.split(":"))
        wall = datetime.strptime(f"{day or now.strftime('%Y-%m-%d')} {hour:02d}:{minute:02d}", "%Y-%m-%d %H:%M")
    except ValueError:
        raise _no_moment(text) from None
    if day is not None and wall.date() < now.date() - timedelta(days=1):  # also what no clock can count
        raise UsageError(f"--at: {text.strip()} has passed (it is {now:%Y-%m-%d %H:%M %Z})")
    if zone == "host":
        return None, f"{day}T{hour:02d}:{minute:02d}" if day else f"{hour:02d}:{minute:02d}"
    place = _zone(zone, text)
    if day is not None:
        shown = _moments(wall, place)
        if not shown:
            raise UsageError(
                f"--at: the clocks skip this time: {text.strip()}",
                hint="they go forward over it for summer time: name a time before or after",
            )
        due_s = next((moment for moment in shown if moment > now.timestamp()), None)
        if due_s is None:
            raise UsageError(f"--at: {text.strip()} has passed (it is {now:%Y-%m-%d %H:%M %Z})")
        return due_s, None
    today = now.astimezone(place)
    days = (datetime(today.year, today.month, today.day, hour, minute) + timedelta(days=ahead) for ahead in range(3))
    coming = (moment for each in days for moment in _moments(each, place))  # one of the days may not have that time
    return next(moment for moment in coming if moment > now.timestamp()), None


def _moments(wall: datetime, place: tzinfo | None) -> list[float]:
    """When the clocks there show it, Unix seconds: once, or around a change of summer time twice or never."""
    found = set()
    for fold in (0, 1):
        told = wall.replace(fold=fold)
        moment = (told.astimezone() if place is None else told.replace(tzinfo=place)).timestamp()
        if datetime.fromtimestamp(moment, place).replace(tzinfo=None) == wall:
            found.add(moment)
    return sorted(found)


def _zone(name: str | None, text: str) -> tzinfo | None:
    """None = this laptop's own."""
    if name is None or name == "laptop":
        return None
    try:
        if offset := _OFFSET.fullmatch(name):
            minutes = int(offset[2]) * 60 + int(offset[3])
            return timezone(timedelta(minutes=minutes if offset[1] == "+" else -minutes))
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"--at: no time zone of this name: {name!r} (in {text.strip()!r})",
            hint="`host`, `laptop`, `UTC`, `+02:00` or a name like `Europe/Berlin`",
        ) from None


def duration_s(text: str, flag: str) -> float:
    """`90s`, `30m`, `6h`, `1.5d` in seconds. Raises UsageError."""
    told = _DURATION.fullmatch(text.strip())
    if told is None:
        raise UsageError(f"{flag}: expected a duration with its unit, like `90s`, `30m`, `6h` or `2d`, found: {text!r}")
    return float(told[1]) * _SECONDS[told[2]]


def same_gpus(earlier: Waiting | None, *, adopts: bool = False) -> Waiting | None:
    """What a run that goes on with an earlier one waits for: as many GPUs, but neither its time nor its forerunners.

    `adopts`: it takes over a start of the earlier one that still runs, and holds those GPUs: they are waited for.
    """
    if earlier is None or not earlier.gpus:
        return None
    when_free = earlier.when_free or adopts
    return dataclasses.replace(earlier, start_unix_s=None, start_local=None, after=(), when_free=when_free)


def start_words(waiting: Waiting) -> str | None:
    """When a run starts, for the person who asked: whose clock and zone is meant; None = it asks for no time."""
    if waiting.start_local is not None:
        return f"{waiting.start_local.replace('T', ' ')} by the host's clock and zone"
    if waiting.start_unix_s is None:
        return None
    here = time.localtime(waiting.start_unix_s)
    laptop = time.strftime("%Y-%m-%d %H:%M %Z", here)
    if here.tm_zone == "UTC":
        return laptop
    return f"{laptop} (this laptop's zone; {time.strftime('%H:%M UTC', time.gmtime(waiting.start_unix_s))})"


def _no_moment(text: str) -> UsageError:
    return UsageError(
        f"--at: expected a time, found: {text!r}",
        hint="`22:00` (the next one) or `2026-12-24 22:00`, this laptop's time; after it a zone: `22:00 host`, "
        "`22:00 UTC`, `22:00 Europe/Berlin`, `22:00 +02:00`",
    )
