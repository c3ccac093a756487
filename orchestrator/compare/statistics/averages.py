"""Means of independent samples with Student's interval."""

import math
from collections.abc import Sequence
from statistics import fmean

from orchestrator.compare.statistics.alike import mostly_equal
from orchestrator.compare.statistics.effect import Effect, change_of, settled
from orchestrator.compare.stats import CONFIDENCE, Estimate


def mean(values: Sequence[float], confidence: float = CONFIDENCE, *, least: float | None = None) -> Estimate:
    """Arithmetic mean; no bounds for one value, nor for fewer than 6 equal ones; `least` as of `change_of`."""
    return change_of(_one_sample(values), confidence, least=least)


def geometric_mean(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Geometric mean, e.g. of speed-ups over data sets; no value unless all are positive."""
    if not values or min(values) <= 0:
        return Estimate(value=None, confidence=confidence, rows=len(values))
    logs = change_of(_one_sample([math.log(value) for value in values]), confidence)
    return Estimate(
        value=_back(logs.value),
        low=_back(logs.low),
        high=_back(logs.high),
        standard_error=logs.standard_error,
        confidence=confidence,
        rows=logs.rows,
    )


def variance(values: Sequence[float]) -> float:
    """Sample variance, by n - 1; needs two values."""
    centre = fmean(values)
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)


def _one_sample(values: Sequence[float]) -> Effect:
    n, centre = len(values), fmean(values)
    error = None if n < 2 else settled(math.sqrt(variance(values) / n), max(map(abs, values)))
    return Effect(
        scale="plain",
        value=centre,
        standard_error=error,
        freedom=n - 1,
        samples=n,
        sides=1,
        mostly_equal=mostly_equal(values),
    )


def _back(log: float | None) -> float | None:
    return None if log is None else math.exp(log)
