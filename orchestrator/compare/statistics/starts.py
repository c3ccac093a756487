"""Throughput and latency by server start: all repeats on one start are one sample, however many they are.

What a start was dealt - memory layout, tuned kernels, the machine's mood - is the same in all its repeats and another
in the next start's. An interval over repeats leaves that out: taken for one over starts it finds changes where there
are none. So a start counts by its mean; where a side has one start alone its repeats are told beside, never judged.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from orchestrator.compare.metrics import Metric
from orchestrator.compare.statistics.effect import Scale, change_of
from orchestrator.compare.statistics.sides import Side, of_number, of_runs, welch
from orchestrator.records.measurement import Series

LEAST_STARTS = 3
"""Runs (server starts) a side below which nothing is judged: two tell next to nothing about their own spread."""


def by_start(series: Series, metric: Metric) -> Series:
    """One value a server start, the mean of its repeats (geometric, for what is compared as a ratio)."""
    if series.level != "run":
        return series
    groups: dict[str, list[float]] = {}
    for name, value in zip(_starts(series), series.y, strict=True):
        groups.setdefault(name, []).append(value)
    if len(groups) == len(series.y):
        return series
    ratio, names = metric.change == "ratio", tuple(groups)
    return replace(
        series,
        keys=names,
        clusters=names,
        y=tuple(_geometric(some) if ratio else fmean(some) for some in groups.values()),
    )


def repeats_note(metric: Metric, ours: Series, theirs: Series) -> str:
    """What the repeats say where a side has one start alone; empty where it has none to tell of."""
    sides = [series for series in (ours, theirs) if _is_one_start(series)]
    if not sides:
        return ""
    counts = " and ".join(str(len(series.y)) for series in sides)
    told = all(series.clusters for series in sides)
    what = "repeats of one server start" if told else "repeats of one run, whose server starts are not told,"
    each = " each" if len(sides) == 2 else ""
    within = _within(metric, ours, theirs)
    if not within:
        return f"{counts} {what}{each} are one sample: how starts differ is not seen in them"
    return f"{counts} {what}{each}: {within}, without the differences between starts"


def _starts(series: Series) -> Sequence[str]:
    """The start of each value: as it is told, else the run of its key `RUN/REPEAT`: unknown starts count as one."""
    return series.clusters or tuple(key.rpartition("/")[0] or key for key in series.keys)


def _is_one_start(series: Series) -> bool:
    return series.level == "run" and len(series.y) > 1 and len(set(_starts(series))) == 1


def _within(metric: Metric, ours: Series, theirs: Series) -> str:
    """The change with an interval over repeats, in words; empty where a side has neither one start nor one number."""
    scale: Scale = "log" if metric.change == "ratio" else "plain"
    sides: list[Side] = []
    for series in (ours, theirs):
        side = None
        if _is_one_start(series):
            side = of_runs(series.y, scale)
        elif series.level == "summary":
            side = of_number(series.y[0], scale)
        if side is None:
            return ""
        sides.append(side)
    change = change_of(welch(sides[0], sides[1], scale))
    if change.value is None or change.low is None or change.high is None:
        return ""
    unit = "%" if scale == "log" else "points"
    return f"{100 * change.value:+.1f} {unit} [{100 * change.low:+.1f}, {100 * change.high:+.1f}]"


def _geometric(values: Sequence[float]) -> float:
    return math.exp(fmean(math.log(value) for value in values)) if min(values) > 0 else fmean(values)
