"""Intervals for proportions and for ratios of sums. Too little data gives no interval, and then no verdict.

Positions of one row are not independent (a hard passage is hard for every reading), so every interval that a verdict
hangs on takes the row as its cluster: one (y, x) pair a row, linearised standard error of the ratio of sums
(Cochran, Sampling Techniques, 3rd ed., 6.4), Student's t with rows - 1 degrees of freedom.
Not covered: dependence between rows (several rows of one conversation); merge such rows before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

CONFIDENCE = 0.95
MIN_ROWS = 5
"""Below this a linearised standard error means little: no interval is given."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure with its uncertainty; no `value` where nothing was counted, no bounds where rows are too few."""

    value: float | None
    low: float | None = None
    high: float | None = None
    standard_error: float | None = None
    confidence: float = CONFIDENCE
    rows: int
    """Clusters behind the figure."""


UNKNOWN = Estimate(value=None, rows=0)
"""Nothing was counted."""


@dataclass(frozen=True, kw_only=True)
class Proportion:
    """`hits` of `n`, with the Wilson interval (positions taken as independent: for orientation, not for verdicts)."""

    hits: int
    n: int
    value: float | None
    low: float | None
    high: float | None


def wilson(hits: int, n: int, confidence: float = CONFIDENCE) -> Proportion:
    """Wilson's score interval (Wilson 1927, without continuity correction); all None where n is 0."""
    if not 0 <= hits <= n:
        raise ValueError(f"expected 0 <= hits <= n, found: {hits} of {n}")
    if n == 0:
        return Proportion(hits=0, n=0, value=None, low=None, high=None)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = hits / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return Proportion(hits=hits, n=n, value=share, low=max(0.0, centre - half), high=min(1.0, centre + half))


def pooled_ratio(y: Sequence[float], x: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """sum(y) / sum(x) over rows; SE = sqrt(n/(n-1) * sum(z^2)) with z_i = (y_i - R * x_i) / sum(x)."""
    if not sum(x):
        return Estimate(value=None, confidence=confidence, rows=0)
    ratio = sum(y) / sum(x)
    return _estimate(ratio, _influence(y, x), confidence, _used(x))


def bounded(estimate: Estimate, least: float, most: float) -> Estimate:
    """The estimate with its interval cut to what the figure can be: few rows know less than its definition does."""
    if estimate.low is None or estimate.high is None:
        return estimate
    return replace(estimate, low=max(estimate.low, least), high=min(estimate.high, most))


def paired_difference(
    a: tuple[Sequence[float], Sequence[float]],
    b: tuple[Sequence[float], Sequence[float]],
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Difference a - b of two ratios of sums over the same rows in the same order; `a` and `b` are (y, x).

    With x the counted positions and y the hits among them this is the paired difference of proportions. The pairing
    works through the rows: z_i = z_i(a) - z_i(b), so what is hard for both cancels.
    """
    _same_length(a, b)
    if not sum(a[1]) or not sum(b[1]):
        return Estimate(value=None, confidence=confidence, rows=0)
    z = [za - zb for za, zb in zip(_influence(*a), _influence(*b), strict=True)]
    return _estimate(sum(a[0]) / sum(a[1]) - sum(b[0]) / sum(b[1]), z, confidence, _used(a[1], b[1]))


def paired_ratio(
    a: tuple[Sequence[float], Sequence[float]],
    b: tuple[Sequence[float], Sequence[float]],
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Relative difference (a / b) - 1 of two ratios of sums over the same rows, by the linearised log ratio."""
    _same_length(a, b)
    if not (sum(a[0]) and sum(a[1]) and sum(b[0]) and sum(b[1])):
        return Estimate(value=None, confidence=confidence, rows=0)
    log_ratio = math.log(sum(a[0]) / sum(a[1])) - math.log(sum(b[0]) / sum(b[1]))
    z = [za - zb for za, zb in zip(_log_influence(*a), _log_influence(*b), strict=True)]
    return _as_ratio(_estimate(log_ratio, z, confidence, _used(a[1], b[1])))


def unpaired_difference(a: Estimate, b: Estimate) -> Estimate:
    """Difference a - b of independent estimates: Welch's standard error and degrees of freedom."""
    if a.value is None or b.value is None:
        return Estimate(value=None, confidence=a.confidence, rows=0)
    value, rows = a.value - b.value, min(a.rows, b.rows)
    if a.standard_error is None or b.standard_error is None:
        return Estimate(value=value, confidence=a.confidence, rows=rows)
    va, vb = a.standard_error**2, b.standard_error**2
    if va + vb == 0:
        return Estimate(value=value, low=value, high=value, standard_error=0.0, confidence=a.confidence, rows=rows)
    freedom = (va + vb) ** 2 / (va**2 / (a.rows - 1) + vb**2 / (b.rows - 1))
    error = math.sqrt(va + vb)
    half = student_t_quantile(0.5 + a.confidence / 2, freedom) * error
    return Estimate(
        value=value,
        low=value - half,
        high=value + half,
        standard_error=error,
        confidence=a.confidence,
        rows=rows,
    )


def student_t_quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's t."""
    from scipy.special import stdtrit  # noqa: PLC0415 - 0.2 s, only where an interval is asked for

    return float(stdtrit(freedom, probability))


def _influence(y: Sequence[float], x: Sequence[float]) -> list[float]:
    ratio, total = sum(y) / sum(x), sum(x)
    return [(yi - ratio * xi) / total for yi, xi in zip(y, x, strict=True)]


def _log_influence(y: Sequence[float], x: Sequence[float]) -> list[float]:
    y_total, x_total = sum(y), sum(x)
    return [yi / y_total - xi / x_total for yi, xi in zip(y, x, strict=True)]


def _used(*xs: Sequence[float]) -> int:
    """Rows in which anything was counted: an empty row adds no information."""
    return sum(map(any, zip(*xs, strict=True)))


def _same_length(a: tuple[Sequence[float], Sequence[float]], b: tuple[Sequence[float], Sequence[float]]) -> None:
    if not len(a[0]) == len(a[1]) == len(b[0]) == len(b[1]):
        raise ValueError("expected the same rows on both sides")


def _estimate(value: float, z: Sequence[float], confidence: float, rows: int) -> Estimate:
    if rows < MIN_ROWS:
        return Estimate(value=value, confidence=confidence, rows=rows)
    error = math.sqrt(rows / (rows - 1) * sum(part * part for part in z))
    half = student_t_quantile(0.5 + confidence / 2, rows - 1) * error
    return Estimate(
        value=value,
        low=value - half,
        high=value + half,
        standard_error=error,
        confidence=confidence,
        rows=rows,
    )


def _as_ratio(log: Estimate) -> Estimate:
    def back(value: float | None) -> float | None:
        return None if value is None else math.expm1(value)

    return Estimate(
        value=back(log.value),
        low=back(log.low),
        high=back(log.high),
        standard_error=log.standard_error,
        confidence=log.confidence,
        rows=log.rows,
    )
