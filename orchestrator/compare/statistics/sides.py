"""Two independent sides: each one's centre and standard error, and their difference by Welch.

A side may be runs (values), prompts that the other side did not answer (a ratio of sums), or one number whose own
uncertainty nobody told: that one counts as exact, and the comparison says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from orchestrator.compare.statistics.alike import mostly_equal
from orchestrator.compare.statistics.averages import variance
from orchestrator.compare.statistics.effect import Effect, Scale, settled
from orchestrator.compare.stats import Estimate


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side on the scale of the comparison."""

    centre: float
    magnitude: float
    """Of the figures on that scale: what rounding noise is measured by."""
    variance: float | None
    """Of one sample; None = too few samples to know it."""
    samples: int
    """0 = a number without samples."""
    mostly_equal: bool = False
    """Whether all samples but a few are equal."""

    @property
    def fixed(self) -> bool:
        """Whether it is one number, taken as exact."""
        return self.samples == 0


def of_runs(values: Sequence[float], scale: Scale) -> Side | None:
    """Runs or repeats, each a sample; None where the logs of a 0 would be needed."""
    if scale == "log" and min(values) <= 0:
        return None
    shown = [math.log(value) for value in values] if scale == "log" else list(values)
    return Side(
        centre=fmean(shown),
        magnitude=1.0 if scale == "log" else max(map(abs, values)),
        variance=variance(shown) if len(shown) > 1 else None,
        samples=len(shown),
        mostly_equal=mostly_equal(values),
    )


def of_figure(figure: Estimate, scale: Scale, values: Sequence[float] = ()) -> Side | None:
    """A ratio of sums with its linearised standard error (delta method for the log); None where it is 0 or unknown.

    `values`: each row's own figure.
    """
    if figure.value is None or (scale == "log" and figure.value <= 0):
        return None
    error = figure.standard_error
    if error is not None and scale == "log":
        error /= figure.value
    return Side(
        centre=math.log(figure.value) if scale == "log" else figure.value,
        magnitude=1.0 if scale == "log" else abs(figure.value),
        variance=None if error is None else error**2 * figure.rows,
        samples=figure.rows,
        mostly_equal=mostly_equal(values),
    )


def of_number(value: float, scale: Scale) -> Side | None:
    """One number, as if exact; None where its log would be needed and it is 0."""
    if scale == "log" and value <= 0:
        return None
    shown = math.log(value) if scale == "log" else value
    return Side(centre=shown, magnitude=1.0 if scale == "log" else abs(value), variance=0.0, samples=0)


def welch(ours: Side, theirs: Side, scale: Scale) -> Effect:
    """Difference of the centres; degrees of freedom after Satterthwaite; one-sample t where a side is exact."""
    sampled = [side for side in (ours, theirs) if not side.fixed]
    value = ours.centre - theirs.centre
    count = min((side.samples for side in sampled), default=0)
    if not sampled or any(side.variance is None for side in sampled):
        return Effect(scale=scale, value=value, standard_error=None, freedom=0, samples=count, sides=1)
    spreads = [(side.variance or 0.0, side.samples) for side in sampled]
    squares = [(spread / n, n - 1) for spread, n in spreads]
    total = sum(square for square, _ in squares)
    error = settled(math.sqrt(total), max(ours.magnitude, theirs.magnitude))
    freedom = total**2 / sum(square**2 / free for square, free in squares) if error else count - 1
    return Effect(
        scale=scale,
        value=value,
        standard_error=error,
        freedom=freedom,
        samples=count,
        variance=sum(spread for spread, _ in spreads),
        sides=2 if len(sampled) == 2 else 1,
        mostly_equal=all(side.mostly_equal for side in sampled),
    )
