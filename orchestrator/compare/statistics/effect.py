"""A change with its standard error, on the scale where the error is symmetric; its interval, its t-test.

Ratios are treated as differences of logs, shares as differences. A spread of nothing is no certainty: the standard
error of equal numbers is unknown rather than 0. What n samples that are all alike do say is that others are like them
but for a share of at most 1 - 0.05^(1/n) (95 % confidence; Clopper-Pearson of 0 in n). Of shares that is an interval,
as the others cannot be beyond 0 or 1. Of ratios the only interval is the one of order statistics, from the least to the
largest, which covers the median with 1 - 2^(1-n): 95 % from 6 samples on, none below.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

from orchestrator.compare.comparison import Test
from orchestrator.compare.stats import CONFIDENCE, Estimate, student_t_quantile

Scale = Literal["log", "plain"]
LEAST_EQUAL = 6
"""Samples from which equal numbers have an interval, of no width."""
LEAST_ALIKE = 59
"""Samples from which equal ones leave at most 5 % that are not, the most that `equivalent` may leave: 0.95^59 < 5 %."""
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


def change_of(effect: Effect, confidence: float = CONFIDENCE, *, least: float | None = None) -> Estimate:
    """Ratio - 1 or difference, with Student's interval; without bounds where there is no standard error.

    `least`: of shares what a sample can be at least (0; their differences -1), 1 at most; None = without bounds.
    """

    def shown(value: float) -> float:
        return math.expm1(value) if effect.scale == "log" else value

    low = high = None
    if effect.spread and effect.standard_error is not None:
        half = student_t_quantile(0.5 + confidence / 2, effect.freedom) * effect.standard_error
        low, high = shown(effect.value - half), shown(effect.value + half)
    elif effect.standard_error is not None and least is not None:
        unseen = unseen_share(effect.samples, confidence)
        low = effect.value - unseen * (effect.value - least)
        high = effect.value + unseen * (1 - effect.value)
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


def unseen_share(samples: int, confidence: float = CONFIDENCE) -> float:
    """The largest share of others that may be unlike `samples` equal ones: Clopper-Pearson's limit of 0 in n."""
    return -math.expm1(math.log1p(-confidence) / samples)


def alike_change(effect: Effect, margin: float, *, shares: bool) -> tuple[Estimate, str]:
    """The change of samples that do not differ at all, and what is to be said of it.

    A change beyond the margin may be one from 6 samples on; that there is none takes 59, which leave 5 % unseen.
    """
    change = change_of(effect, least=-1.0 if shares else None)
    told = f"up to {100 * unseen_share(effect.samples):.2g} % of others could show another change (95 % confidence)"
    if shares:
        return change, f"{told}: the interval takes them to be as different as shares can be"
    within = change.value is not None and abs(change.value) < margin
    enough = LEAST_ALIKE if within else LEAST_EQUAL
    if effect.samples < enough:
        none = replace(change, low=None, high=None)
        return none, f"the spread is unknown, not 0: {told}, {enough} samples would tell more"
    return change, f"{told}, and the interval of no width is the one of order statistics, of the median"


def tail(t: float, freedom: float) -> float:
    """Probability that Student's t is at most `t`; freedom inf is the normal distribution."""
    if math.isinf(freedom):
        return math.erfc(-t / math.sqrt(2)) / 2
    from scipy.special import stdtr  # noqa: PLC0415 - only where a test is asked for

    return float(stdtr(freedom, t))
