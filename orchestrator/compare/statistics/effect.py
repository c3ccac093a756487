"""A change with its standard error, on the scale where the error is symmetric; its interval, its t-test.

Ratios are treated as differences of logs, shares as differences. A spread of nothing, or of a few samples among many
equal ones, is no certainty: `alike.py` says what such samples tell.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

from orchestrator.compare.comparison import Test
from orchestrator.compare.statistics.alike import LEAST_EQUAL, enough_alike, unseen_bounds, unseen_share
from orchestrator.compare.stats import CONFIDENCE, Estimate, student_t_quantile

Scale = Literal["log", "plain"]
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
    mostly_equal: bool = False
    """Whether all samples but a few are equal, on every side."""

    @property
    def spread(self) -> bool:
        """Whether there is a standard error to reckon with."""
        return bool(self.standard_error)

    @property
    def alike(self) -> bool:
        """Whether its samples do not differ at all, or only a few of them do."""
        return self.standard_error == 0.0 or (self.spread and self.mostly_equal)


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
    elif effect.alike and (least is not None or effect.samples >= LEAST_EQUAL):
        low = high = shown(effect.value)
    if low is not None and high is not None and effect.alike and least is not None:
        lowest, highest = unseen_bounds(effect.value, effect.samples, least, confidence=confidence)
        low, high = min(low, lowest), max(high, highest)
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


def alike_change(effect: Effect, margin: float, *, shares: bool) -> tuple[Estimate, str]:
    """The change of samples that do not differ, or of which only a few do, and what is to be said of it.

    A change beyond the margin may be one from 6 samples on; that there is none takes 59, which leave 5 % unseen.
    """
    change = change_of(effect, least=-1.0 if shares else None)
    told = f"up to {100 * unseen_share(effect.samples):.2g} % of others could show another change (95 % confidence)"
    if shares:
        return change, f"{told}: the interval takes them to be as different as shares can be"
    low, high = (change.value or 0.0 if end is None else end for end in (change.low, change.high))
    within = -margin < low and high < margin
    short = enough_alike(effect.samples, near=within)
    if short and (within or not low < 0 < high):
        unknown = "that of a few samples" if effect.spread else "unknown, not 0"
        return replace(change, low=None, high=None), (
            f"the spread is {unknown}: {told}, {short} samples would tell more"
        )
    if effect.spread:
        return change, told
    return change, f"{told}, and the interval of no width is the one of order statistics, of the median"


def tail(t: float, freedom: float) -> float:
    """Probability that Student's t is at most `t`; freedom inf is the normal distribution."""
    if math.isinf(freedom):
        return math.erfc(-t / math.sqrt(2)) / 2
    from scipy.special import stdtr  # noqa: PLC0415 - only where a test is asked for

    return float(stdtr(freedom, t))
