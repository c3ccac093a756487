"""Times in words."""

import time


def moment(unix_s: float | None, *, zone: str = " UTC", unknown: str = "unknown") -> str:
    """A time in UTC; `unknown` also for a number that no calendar has."""
    if unix_s is None:
        return unknown
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(unix_s)) + zone
    except (OverflowError, ValueError, OSError):
        return unknown
