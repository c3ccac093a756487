"""A change with its standard error, on the scale where the error is symmetric; its interval, its t-test.

Ratios are treated as differences of logs, shares as differences. A spread of nothing is no certainty: the standard
error of equal numbers is unknown rather than 0. Then the only interval is the one of order statistics, from the least
to the largest, which covers the median with 1 - 2^(1-n): 95 % from 6 samples on. Below that there is none.
"""

import math
from dataclasses import dataclass
from typing import Literal

from orchestrator.compare.comparison import Test
from orchestrator.compare.stats import CONFIDENCE, Estimate, student_t_quantile

Scale = Literal["log", "plain"]
LEAST_EQUAL = 6
"""Samples from which equal numbers have an interval, of no width."""
NO_SPREAD = 1e-12
"""Standard errors below this share of the figures are rounding noise."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """Ours against theirs: a difference of logs or of figures."""

    scale: Scale
    value: float
    standard_error: float | None
    """None = too few samples for one; 0.0 = the samples do not differ at all."""
    freedom: float
    samples: int
    """Of the smaller side (pairs, where paired); a number without samples does not count."""
    variance: float = 0.0
    """Of one sample: standard_error^2 = variance / samples; the sum over both sides where they are not paired."""
    sides: Literal[1, 2]
    """How many sides' samples the standard error rests on; pairs, and runs against a number, are one."""

    @property
    def spread(self) -> bool:
        """Whether there is a standard error to reckon with."""
        return bool(self.standard_error)


def settled(standard_error: float, magnitude: float) -> float:
    """The standard error, 0.0 where it is no more than rounding noise of figures of that magnitude."""
    return 0.0 if standard_error <= NO_SPREAD * magnitude else standard_error


def change_of(effect: Effect, confidence: float = CONFIDENCE) -> Estimate:
    """Ratio - 1 or difference, with Student's interval; without bounds where there is no standard error."""

    def shown(value: float) -> float:
        return math.expm1(value) if effect.scale == "log" else value

    low = high = None
    if effect.spread and effect.standard_error is not None:
        half = student_t_quantile(0.5 + confidence / 2, effect.freedom) * effect.standard_error
        low, high = shown(effect.value - half), shown(effect.value + half)
    elif effect.standard_error is not None and effect.samples >= LEAST_EQUAL:
        low = high = shown(effect.value)
    return Estimate(
        value=shown(effect.value),
        low=low,
        high=high,
        standard_error=effect.standard_error,
        confidence=confidence,
        rows=effect.samples,
    )


def t_test(effect: Effect, name: str) -> Test:
    """Whether there is any change: Student's t, two-sided."""
    if effect.standard_error is None:
        return Test(name=name, p=None, note="too few samples")
    if not effect.spread:
        return Test(name=name, p=None, note="the samples do not differ: there is no spread to measure the change by")
    t = effect.value / effect.standard_error
    return Test(name=name, p=2 * tail(-abs(t), effect.freedom), statistic=t)


def no_spread(effect: Effect, what: str) -> str:
    """A note on samples that do not differ at all."""
    if effect.samples < LEAST_EQUAL:
        return f"{what} (n = {effect.samples}): the spread is unknown, not 0; {LEAST_EQUAL} samples would tell more"
    return f"{what} (n = {effect.samples}): the interval of no width is the one of order statistics"


def tail(t: float, freedom: float) -> float:
    """Probability that Student's t is at most `t`; freedom inf is the normal distribution."""
    if math.isinf(freedom):
        return math.erfc(-t / math.sqrt(2)) / 2
    from scipy.special import stdtr  # noqa: PLC0415 - only where a test is asked for

    return float(stdtr(freedom, t))
