"""Times in words."""

import time


def moment(unix_s: float | None) -> str:
    """A time in UTC."""
    return "unknown" if unix_s is None else time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(unix_s))
