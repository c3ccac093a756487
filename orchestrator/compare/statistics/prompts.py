"""Prompts in pairs: what both sides answered, merged by conversation; and the figure of one side's prompts alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.compare.statistics.alike import LEAST_EQUAL, mostly_equal, unseen_bounds
from orchestrator.compare.statistics.effect import settled
from orchestrator.compare.stats import Estimate, bounded, pooled_ratio, wilson
from orchestrator.records.measurement import Series

ROUNDING = 1e-9
"""Of a number of rows."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Sums over independent rows, a prompt or a conversation each: the figure is sum(y) / sum(x)."""

    y: tuple[float, ...]
    x: tuple[float, ...]
    scalar: bool
    """Each prompt has one number: x counts prompts."""

    @property
    def counted(self) -> int:
        """Rows in which anything was counted."""
        return len(self.x) - self.x.count(0.0)

    @property
    def effective(self) -> int:
        """Rows of equal weight that would say as much (Kish 1965), rounded down; needs one in which was counted."""
        total = sum(self.x)
        return max(1, int(1 / sum((x / total) ** 2 for x in self.x) + ROUNDING))


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """The same rows of both sides, in the same order."""

    ours: Rows
    theirs: Rows
    prompts: int
    """Behind the rows."""
    clustered: bool

    @property
    def ratios(self) -> tuple[list[float], list[float]]:
        """Each row's own figure on both sides, where both counted anything."""
        kept = [
            (a / n, b / m)
            for a, n, b, m in zip(self.ours.y, self.ours.x, self.theirs.y, self.theirs.x, strict=True)
            if n and m
        ]
        return [a for a, _ in kept], [b for _, b in kept]

    def mostly_equal(self, *, shares: bool) -> bool:
        """Whether all rows but a few show the same change: the same difference of shares, else the same ratio."""
        pairs = list(zip(*self.ratios, strict=True))
        if shares:
            return mostly_equal([a - b for a, b in pairs], 1.0)
        return mostly_equal([a / b if b else -1.0 for a, b in pairs])  # -1: no ratio, which is like no other


def pair(ours: Series, theirs: Series) -> Pairs:
    """The prompts that both sides answered, by key. A side that names no conversations takes the other's."""
    at_theirs = dict(zip(theirs.keys, range(len(theirs.keys)), strict=True))
    both = [(index, at_theirs[key]) for index, key in enumerate(ours.keys) if key in at_theirs]
    clusters: list[str] = []
    if ours.clusters:
        clusters = [ours.clusters[mine] for mine, _ in both]
    elif theirs.clusters:
        clusters = [theirs.clusters[other] for _, other in both]
    return Pairs(
        ours=_rows(ours, [mine for mine, _ in both], clusters),
        theirs=_rows(theirs, [other for _, other in both], clusters),
        prompts=len(both),
        clustered=len(set(clusters)) < len(clusters),
    )


def alone(series: Series) -> Rows:
    """All of one side's prompts, merged by its conversations."""
    return _rows(series, range(len(series.y)), series.clusters)


def ratios(rows: Rows) -> list[float]:
    """Each row's own figure, where anything was counted."""
    return [y / x for y, x in zip(rows.y, rows.x, strict=True) if x]


def figure(rows: Rows, unit: str) -> Estimate:
    """sum(y) / sum(x) with its interval over rows.

    A share of prompts that each are 0 or 1 has Wilson's interval instead: it keeps its width where all are alike. So
    has one that is 0 or 1 in every row, however much each counted: a row counts as one draw, by its weight. Where a
    share is the same in all rows but a few it holds what others could show (`alike.py`). A figure that is no share has
    no interval from fewer than 6 rows that are all alike.
    """
    if unit != "share":
        found = pooled_ratio(rows.y, rows.x)
        alike = found.standard_error is not None and settled(found.standard_error, abs(found.value or 0.0)) == 0
        return replace(found, low=None, high=None) if alike and found.rows < LEAST_EQUAL else found
    if set(rows.x) == {1.0} and set(rows.y) <= {0.0, 1.0}:
        share = wilson(round(sum(rows.y)), len(rows.y))
        return Estimate(value=share.value, low=share.low, high=share.high, rows=share.n)
    found = bounded(pooled_ratio(rows.y, rows.x), 0, 1)
    if found.low is not None and found.value in (0.0, 1.0):
        whole = wilson(0, rows.effective)
        low, high = whole.low or 0.0, whole.high or 1.0
        return replace(found, low=low if found.value == 0 else 1 - high, high=high if found.value == 0 else 1 - low)
    if found.value is not None and found.low is not None and found.high is not None and mostly_equal(ratios(rows)):
        low, high = unseen_bounds(found.value, rows.effective, 0.0)
        return replace(found, low=min(found.low, low), high=max(found.high, high))
    return found


def _rows(series: Series, at: Sequence[int], clusters: Sequence[str]) -> Rows:
    y = [series.y[index] for index in at]
    x = [series.x[index] for index in at] if series.x else [1.0] * len(y)
    if clusters:
        y, x = _merged(y, clusters), _merged(x, clusters)
    return Rows(y=tuple(y), x=tuple(x), scalar=not series.x)


def _merged(values: Sequence[float], clusters: Sequence[str]) -> list[float]:
    sums = dict.fromkeys(clusters, 0.0)
    for name, value in zip(clusters, values, strict=True):
        sums[name] += value
    return list(sums.values())
