"""Samples that are all equal, or all but a few: what they say of others, which is not what their spread says.

Equal numbers have no spread to make an interval of, and where only a few differ the spread is that of those few. Both
are judged by one rule, so that agreement is never worth less than almost the same agreement: n samples that are alike
say that others are unlike them in a share of at most 1 - 0.05^(1/n) (95 % confidence; Clopper-Pearson of 0 in n).
A share's interval holds at least what such others could change, as none is beyond 0 or 1. Of other figures nobody knows
how far they could go: there a claim takes a number of samples, 59 for "nothing beyond the margin", 6 for any other.
"A few" is fewer than 5 (as few samples give no interval by themselves) and at most a quarter: five that change as much
as shares can have an interval by Student's t as wide as this one.
"""

import math
from collections.abc import Sequence

from orchestrator.compare.stats import CONFIDENCE, MIN_ROWS

LEAST_EQUAL = 6
"""Samples from which equal numbers have an interval, of no width: from the least to the largest, which covers the
median with 1 - 2^(1-n)."""
LEAST_ALIKE = 59
"""Samples from which equal ones leave at most 5 % that are not, the most that `equivalent` may leave: 0.95^59 < 5 %."""
SAME = 1e-9
"""Figures that differ by less than this share of the largest are equal."""


def mostly_equal(values: Sequence[float], magnitude: float = 0.0) -> bool:
    """Whether all are one and the same figure, but for fewer than 5 that are at most a quarter; at least 2 of them.

    `magnitude`: of what they were reckoned from, where that is larger than they are, as of differences.
    """
    if len(values) < 2:
        return False
    unlike = len(values) - _most_equal(sorted(values), SAME * max(magnitude, *map(abs, values)))
    return unlike < MIN_ROWS and 4 * unlike <= len(values)


def unseen_share(samples: int, confidence: float = CONFIDENCE) -> float:
    """The largest share of others that may be unlike `samples` equal ones: Clopper-Pearson's limit of 0 in n."""
    return -math.expm1(math.log1p(-confidence) / samples)


def unseen_bounds(
    value: float, samples: int, least: float, most: float = 1.0, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """How far such others could bring a mean of figures between `least` and `most`."""
    unseen = unseen_share(samples, confidence)
    return value - unseen * (value - least), value + unseen * (most - value)


def enough_alike(samples: int, *, near: bool) -> int:
    """0 where so many samples that are alike may claim a figure; else how many may.

    `near`: the claim is within the margin of what they all show, so that a few others would overturn it.
    """
    enough = LEAST_ALIKE if near else LEAST_EQUAL
    return 0 if samples >= enough else enough


def _most_equal(ordered: Sequence[float], tolerance: float) -> int:
    """The largest number of equal ones, in ascending order."""
    first = most = 0
    for last, value in enumerate(ordered):
        while value - ordered[first] > tolerance:
            first += 1
        most = max(most, last - first + 1)
    return most
