"""Figures as words: one place for how a number with its uncertainty looks. Unknown is `unknown`, never 0."""

from collections.abc import Sequence

from orchestrator.compare.counted import counted
from orchestrator.compare.stats import Estimate, Proportion

UNKNOWN = "unknown"


def some_of(names: Sequence[str], most: int) -> str:
    """The first of them, and how many there are besides, e.g. `a, b and 3 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def percent(value: float | None) -> str:
    """A share in percent with one decimal."""
    return UNKNOWN if value is None else f"{100 * value:.1f} %"


def proportion(share: Proportion) -> str:
    """e.g. `75.3 % [73.1, 77.4] n=600`."""
    if share.value is None or share.low is None or share.high is None:
        return f"{UNKNOWN} n=0"
    return f"{100 * share.value:.1f} % [{100 * share.low:.1f}, {100 * share.high:.1f}] n={share.n}"


def length(estimate: Estimate, n: int) -> str:
    """An accept length, e.g. `2.83 [2.70, 2.96] n=544`."""
    if estimate.value is None:
        return f"{UNKNOWN} n=0"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.2f} n={n}"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}] n={n}"


def number(value: float | None) -> str:
    """A plain figure with two decimals."""
    return UNKNOWN if value is None else f"{value:.2f}"


def within(estimate: Estimate) -> str:
    """A figure with its interval, e.g. `1.31 [1.20, 1.42]`."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return number(estimate.value)
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def change(estimate: Estimate, unit: str) -> str:
    """A difference in hundredths with its interval, e.g. `+45.7 points, 95 % interval +40.1 to +51.2, 12 rows`."""
    if estimate.value is None:
        return UNKNOWN
    rows = counted(estimate.rows, "row")
    if estimate.low is None or estimate.high is None:
        return f"{100 * estimate.value:+.1f} {unit}, no interval from {rows}"
    return f"{moved(estimate, unit, scale=100, digits=1)}, {rows}"


def moved(estimate: Estimate, unit: str, *, scale: float = 1.0, digits: int = 2) -> str:
    """A difference with its interval, e.g. `+0.34 tokens, 95 % interval +0.13 to +0.56`."""
    if estimate.value is None:
        return UNKNOWN
    if estimate.low is None or estimate.high is None:
        return f"{scale * estimate.value:+.{digits}f} {unit}, no interval"
    level = f"{100 * estimate.confidence:.4g} % interval"
    return (
        f"{scale * estimate.value:+.{digits}f} {unit}, {level} {scale * estimate.low:+.{digits}f} to "
        f"{scale * estimate.high:+.{digits}f}"
    )


def seconds(value: float | None) -> str:
    """A duration."""
    if value is None:
        return UNKNOWN
    if value < 1:
        return f"{value:.2f} s"
    if value < 90:
        return f"{value:.1f} s"
    return f"{int(value // 3600)} h {int(value % 3600 // 60)} min" if value >= 5400 else f"{value / 60:.1f} min"


def age(value: float | None) -> str:
    """For how long something is so; what began after it was looked at, as with clocks that differ, begins `now`."""
    return "now" if value is not None and value < 0 else seconds(value)


def mebibytes(value: int | None) -> str:
    """A size in memory."""
    return UNKNOWN if value is None else f"{value / 2**20:.0f} MiB"


def size(size_bytes: int | None) -> str:
    """Bytes in the largest unit that leaves a whole number before the point."""
    if size_bytes is None:
        return UNKNOWN
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
