"""A series of samples as one figure: value, interval, and what its n counts; the same as in a comparison."""

import dataclasses

from orchestrator.compare.counted import counted
from orchestrator.compare.metrics import Metric, metric_of
from orchestrator.compare.served_speed import LEAST_REPEATS
from orchestrator.compare.statistics import estimate
from orchestrator.compare.statistics.starts import by_start
from orchestrator.compare.stats import Estimate, bounded
from orchestrator.records.measurement import Series


def figure_of(series: Series) -> Estimate:
    """As a comparison has it: mean over starts (geometric for ratios), ratio of sums over prompts, or a bare number.

    Of one server start alone its repeats are the samples, which says nothing of other starts. No interval below three
    of them.
    """
    metric = _metric(series)
    found = estimate(_independent(series, metric), metric)
    if series.level == "run" and found.rows < LEAST_REPEATS:
        found = dataclasses.replace(found, low=None, high=None)
    if series.unit == "share":
        return bounded(found, 0, 1)
    return bounded(found, 0, float("inf")) if all(value >= 0 for value in series.y) else found


def count_of(series: Series) -> int | None:
    """Samples behind the figure; None = the source does not tell."""
    if series.level == "summary":
        return series.n
    if series.level == "run":
        return len(_independent(series, _metric(series)).y)
    return len(set(series.clusters)) or len(series.y)


def what_n_counts(series: Series, n: int) -> str:
    """A number of what its n counts, e.g. `1 repeat of one server start`."""
    if series.level == "run":
        starts = len(set(series.clusters))
        if starts == 1:
            return counted(n, "repeat of one server start", "repeats of one server start")
        return counted(n, "server start" if starts else "repeat")
    if series.level == "summary":
        return counted(n, "sample")
    if series.clusters:
        return counted(n, "distinct prompt or conversation", "distinct prompts or conversations")
    return counted(n, "prompt")


def _independent(series: Series, metric: Metric) -> Series:
    """One value a server start, where there are several."""
    starts = by_start(series, metric)
    return starts if len(starts.y) > 1 else series


def _metric(series: Series) -> Metric:
    """The catalogue's; of a metric nobody knows nothing but its unit is taken for granted."""
    unknown = Metric(name=series.metric, unit=series.unit, better="neither", margin=0.0, change="difference")
    return metric_of(series.metric) or unknown
