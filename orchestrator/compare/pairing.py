"""One load on two sides, metric by metric; also the figures that cannot be compared, with the reason."""

import dataclasses
from collections.abc import Sequence

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import Comparison, Verdict
from orchestrator.compare.metrics import Metric, metric_of
from orchestrator.compare.statistics import compare_series, estimate
from orchestrator.compare.stats import UNKNOWN, Estimate
from orchestrator.records.measurement import Measurement, Series


@dataclasses.dataclass(frozen=True, kw_only=True)
class Barred:
    """What is not held against each other."""

    verdict: Verdict | None = None
    """Of the whole load; None = it may be compared."""
    note: str = ""
    speeds: str = ""
    """Why its speeds may not be, in words."""


FEW = 3
"""Figures of a side up to which it is somebody's number, and worth saying what else could be held against ours."""


def compare_metrics(
    ours: Measurement, theirs: Measurement, asked: Asked, *, barred: Barred, typed: bool
) -> tuple[Comparison, ...]:
    """A comparison for every metric of both sides, and for each that only the other side has.

    What is `barred` is shown with both figures and no change. `typed`: a side is a number that somebody gave, whose
    definition is taken to be ours.
    """
    mine, other = ({item.metric: item for item in side.series} for side in (ours, theirs))
    wanted = [name for name in dict.fromkeys((*mine, *other)) if not asked.metrics or name in asked.metrics]
    found = []
    for name in wanted:
        metric = metric_of(name)
        if metric is None:
            continue
        margin = asked.margins.get(name, asked.margins.get(name.partition(".")[2], metric.margin))
        if name in mine and name in other:
            found.append(_both(metric, mine[name], other[name], margin, loose=typed or asked.force))
        elif name in other or name in asked.metrics:
            has = tuple(mine) if len(other) <= FEW else ()
            found.append(_one(metric, mine.get(name), other.get(name), margin, has))
    return tuple(_unless_barred(item, barred) for item in found)


def figure_of(metric: Metric, series: Series) -> Estimate:
    """One side's figure with its interval; over the repeats of a start, where it has one alone."""
    found = compare_series(metric, series, series)
    return found.ours if found.ours.value is None else estimate(series, metric)


def _both(metric: Metric, ours: Series, theirs: Series, margin: float, *, loose: bool) -> Comparison:
    if not loose or ours.definition == theirs.definition:
        return compare_series(metric, ours, theirs, margin=margin)
    found = compare_series(metric, ours, dataclasses.replace(theirs, definition=ours.definition), margin=margin)
    words = f"theirs is defined as: {theirs.definition}" if theirs.definition else "how theirs was counted is not told"
    return dataclasses.replace(found, note="; ".join(filter(None, (found.note, words))))


def _one(metric: Metric, ours: Series | None, theirs: Series | None, margin: float, has: Sequence[str]) -> Comparison:
    """A figure that only one side has."""
    series = ours or theirs
    assert series is not None
    alone = compare_series(metric, series, series, margin=margin)
    missing = "the other side has none" if theirs is None else f"this side has no {metric.name}"
    if theirs is not None and has:
        missing += f", but it has {', '.join(has)}"
    return dataclasses.replace(
        _without_change(alone, "not comparable"),
        ours=UNKNOWN if ours is None else alone.ours,
        theirs=UNKNOWN if theirs is None else alone.theirs,
        n_ours=0 if ours is None else alone.n_ours,
        n_theirs=0 if theirs is None else alone.n_theirs,
        note=missing,
    )


def _unless_barred(item: Comparison, barred: Barred) -> Comparison:
    """Without what its samples alone would say, where circumstances speak against a change."""
    if barred.verdict is not None:
        return dataclasses.replace(_without_change(item, barred.verdict), note=barred.note)
    if barred.speeds and item.metric.is_speed and item.change.value is not None:
        return dataclasses.replace(_without_change(item, "not comparable"), note=barred.speeds)
    return item


def _without_change(item: Comparison, verdict: Verdict) -> Comparison:
    return dataclasses.replace(
        item,
        change=UNKNOWN,
        bootstrap=None,
        verdict=verdict,
        pairs=None,
        method="",
        tests=(),
        equivalence_p=None,
        detectable=None,
        needed=None,
    )
