"""What so many samples could have shown, and how many would show a given change, with 80 % power at a level alpha.

Alpha is 5 %; where m comparisons are corrected for each other 5 % / m, the strictest that Holm and Benjamini-Hochberg
ask of any: whoever is held to less sees more.

n = (z_(1 - alpha/2) + z_0.8)^2 * variance / change^2, z replaced by Student's t of the samples at hand: with few runs
the normal quantiles promise too much. Variance as `Effect.variance`: of one pair, or the sum over both sides; relative,
where the change is (the variance of logs is the squared coefficient of variation). The sum of two quantiles is itself
an approximation, and Welch's t gives away more where runs are few: 3 runs a side have 69 % power, 4 have 75 %, 5 have
78 % (simulated, 60,000 times each), and less than that where they are corrected.
"""

import math
from typing import Literal

from orchestrator.compare.comparison import Spread
from orchestrator.compare.stats import student_t_quantile

ALPHA = 0.05
POWER = 0.8
POWERS_OF_FEW = {3: 0.69, 4: 0.75, 5: 0.78}
"""By runs a side, at alpha 0.05: what the approximation really gives by Welch's t."""
MOST = 10_000_000
"""More samples than that are not worth a figure."""


def power_of(spread: Spread, margin: float, *, ratio: bool, alpha: float = ALPHA) -> tuple[float, int | None]:
    """The smallest change shown in 80 % of cases (ratio - 1, or the difference), and the samples that show the margin.

    Never fewer than those below which nothing is judged.
    """
    change = detectable_change(spread.standard_error, spread.freedom, alpha)
    needed = samples_needed(spread.variance, margin, spread.sides, alpha)
    return math.expm1(change) if ratio else change, None if needed is None else max(needed, spread.least)


def detectable_change(standard_error: float, freedom: float = math.inf, alpha: float = ALPHA) -> float:
    """The smallest change that is shown in 80 % of cases, on the scale of the standard error."""
    return (student_t_quantile(1 - alpha / 2, freedom) + student_t_quantile(POWER, freedom)) * standard_error


def samples_by_normal(variance: float, change: float, alpha: float = ALPHA) -> float:
    """Samples a side, by normal quantiles and not rounded: the least that could do."""
    return variance * (detectable_change(1.0, alpha=alpha) / change) ** 2


def samples_needed(variance: float, change: float, sides: Literal[1, 2], alpha: float = ALPHA) -> int | None:
    """Samples a side (or pairs) that show `change`; None where no number below ten millions does."""
    if change <= 0 or samples_by_normal(variance, change, alpha) > MOST:
        return None
    n = max(2, math.ceil(samples_by_normal(variance, change, alpha)))
    while detectable_change(math.sqrt(variance / n), sides * (n - 1), alpha) > change:
        n += 1
    return n
