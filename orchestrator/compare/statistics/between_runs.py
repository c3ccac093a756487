"""Runs put together of which each answered the same prompts, and whose figures differ by more than is worth a word.

A set's acceptance is compared prompt by prompt over the means of its runs. What differs from run to run on the very
same prompts - another server start, another state of the machine - is averaged away there and in no interval.
"""

import math
from collections.abc import Sequence

from orchestrator.compare.metrics import Metric
from orchestrator.compare.statistics.averages import geometric_mean, mean
from orchestrator.compare.stats import Estimate
from orchestrator.records.measurement import Series

LEAST_RUNS = 3
"""Below which nothing is said of their spread but the lowest and the highest."""


def disagreement(metric: Metric, series: Sequence[Series]) -> str:
    """What is to be said of prompt series of several runs; empty where they agree within the metric's margin.

    Each run by the prompts that all of them answered, so that other prompts are no disagreement.
    """
    if len(series) < 2 or series[0].level != "prompt":
        return ""
    shared = set(series[0].keys).intersection(*(one.keys for one in series[1:]))
    figures = [figure for one in series if (figure := _figure(one, shared)) is not None]
    if len(figures) < len(series) or not _differ(metric, figures):
        return ""
    by_run = ""
    if len(figures) >= LEAST_RUNS:
        spread = geometric_mean(figures) if metric.change == "ratio" else mean(figures, least=0.0)
        by_run = _within(spread, metric)
    low, high = (_shown(value, metric) for value in (min(figures), max(figures)))
    return (
        f"{metric.name} differs among the {len(figures)} runs put together, {low} to {high} on the same "
        f"{len(shared)} prompts{by_run}: the interval over prompts leaves that out"
    )


def _figure(series: Series, prompts: set[str]) -> float | None:
    at = [index for index, key in enumerate(series.keys) if key in prompts]
    x = math.fsum(series.x[index] for index in at) if series.x else float(len(at))
    return math.fsum(series.y[index] for index in at) / x if x else None


def _differ(metric: Metric, figures: Sequence[float]) -> bool:
    low, high = min(figures), max(figures)
    if metric.change == "difference":
        return high - low > metric.margin
    return low <= 0 or high / low - 1 > metric.margin


def _within(found: Estimate, metric: Metric) -> str:
    if found.low is None or found.high is None:
        return ""
    low, high = (_shown(value, metric) for value in (found.low, found.high))
    return f"; their mean by run is within {low} to {high} (95 %)"


def _shown(value: float, metric: Metric) -> str:
    return f"{100 * value:.1f} %" if metric.unit == "share" else f"{value:.4g}"
