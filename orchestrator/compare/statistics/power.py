"""What so many samples could have shown, and how many would show a given change, with 80 % power at alpha 0.05.

n = (z_0.975 + z_0.8)^2 * variance / change^2, z replaced by Student's t of the samples at hand: with few runs the
normal quantiles promise too much. Variance as `Effect.variance`: of one pair, or the sum over both sides; relative,
where the change is (the variance of logs is the squared coefficient of variation). The sum of two quantiles is itself
an approximation, and Welch's t gives away more where runs are few: 3 runs a side have 69 % power, 5 have 78 %.
"""

import math
from typing import Literal

from orchestrator.compare.stats import CONFIDENCE, student_t_quantile

POWER = 0.8
MOST = 10_000_000
"""More samples than that are not worth a figure."""


def detectable_change(standard_error: float, freedom: float = math.inf) -> float:
    """The smallest change that is shown in 80 % of cases, on the scale of the standard error."""
    return (student_t_quantile(0.5 + CONFIDENCE / 2, freedom) + student_t_quantile(POWER, freedom)) * standard_error


def samples_by_normal(variance: float, change: float) -> float:
    """Samples a side, by normal quantiles and not rounded: the least that could do."""
    return variance * (detectable_change(1.0) / change) ** 2


def samples_needed(variance: float, change: float, sides: Literal[1, 2]) -> int | None:
    """Samples a side (or pairs) that show `change`; None where no number below ten millions does."""
    if change <= 0 or samples_by_normal(variance, change) > MOST:
        return None
    n = max(2, math.ceil(samples_by_normal(variance, change)))
    while detectable_change(math.sqrt(variance / n), sides * (n - 1)) > change:
        n += 1
    return n
