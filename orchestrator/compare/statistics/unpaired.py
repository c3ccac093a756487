"""Two sides without pairs: runs against runs, prompts against other prompts, either against a number.

Throughput and latency belong here: the requests of a run share its batches, so a run (or repeat) is one sample.
"""

from collections.abc import Mapping
from dataclasses import replace

from orchestrator.compare.comparison import TWO_NUMBERS, Test
from orchestrator.compare.metrics import Metric
from orchestrator.compare.statistics.alike import mostly_equal
from orchestrator.compare.statistics.averages import geometric_mean, mean
from orchestrator.compare.statistics.effect import Effect, Scale, t_test
from orchestrator.compare.statistics.findings import Findings
from orchestrator.compare.statistics.prompts import alone, figure, ratios
from orchestrator.compare.statistics.ranks import mann_whitney
from orchestrator.compare.statistics.remarks import remarks
from orchestrator.compare.statistics.sides import Side, of_figure, of_number, of_runs, welch
from orchestrator.compare.statistics.starts import LEAST_STARTS
from orchestrator.compare.stats import Estimate
from orchestrator.records.measurement import Level, Series

WORDS: Mapping[Level, str] = {"prompt": "prompts", "run": "runs", "summary": "one number"}


def unpaired_findings(metric: Metric, ours: Series, theirs: Series) -> Findings:
    """Welch's t of logs (of figures, for shares); a number without samples counts as exact."""
    scale: Scale = "log" if metric.change == "ratio" else "plain"
    mine, other = _side(ours, theirs, scale), _side(theirs, ours, scale)
    effect = None if mine is None or other is None else _tested(welch(mine, other, scale), ours, theirs)
    level = _level(ours, theirs)
    return Findings(
        level=level,
        ours=estimate(ours, metric),
        theirs=estimate(theirs, metric),
        effect=effect,
        method=_method(scale, ours, theirs),
        tests=_tests(effect, scale, ours, theirs),
        notes=remarks(effect, metric, ours, theirs),
        single=_is_single(ours, theirs),
    )


def estimate(series: Series, metric: Metric) -> Estimate:
    """One side's figure: ratio of sums over prompts, mean over runs, or the number as it stands.

    The mean is geometric for what is compared as a ratio, so that two figures and their change agree. Its interval is
    over the values as they are: where they are repeats of one server start, it is that start's alone.
    """
    if series.level == "prompt":
        return figure(alone(series), metric.unit)
    if series.level == "run":
        if metric.change == "ratio" and min(series.y) > 0:
            return geometric_mean(series.y)
        return mean(series.y, least=0.0 if metric.unit == "share" else None)
    return Estimate(value=series.y[0], rows=series.n or 1)


def is_mostly_equal(series: Series) -> bool:
    """Whether all of one side's samples but a few are equal, each prompt (conversation) or run by its own figure."""
    return mostly_equal(ratios(alone(series)) if series.level == "prompt" else series.y)


def _is_single(ours: Series, theirs: Series) -> bool:
    """Whether a side is one run alone, or both are bare numbers."""
    lone = any(series.level == "run" and len(series.y) == 1 for series in (ours, theirs))
    levels = {ours.level, theirs.level}
    return "prompt" not in levels and (lone or levels == {"summary"})


def _side(series: Series, other: Series, scale: Scale) -> Side | None:
    if series.level == "prompt":
        rows = alone(series)
        return of_figure(figure(rows, ""), scale, ratios(rows))
    one_run_against_prompts = len(series.y) == 1 and other.level == "prompt"
    if series.level == "summary" or one_run_against_prompts:
        return of_number(series.y[0], scale)
    return of_runs(series.y, scale)


def _tested(effect: Effect, ours: Series, theirs: Series) -> Effect:
    """The effect without its error where a side has fewer than 3 runs (starts): too little to test."""
    few = "run" in {ours.level, theirs.level} and 0 < effect.samples < LEAST_STARTS
    if few and "prompt" not in {ours.level, theirs.level}:
        return replace(effect, standard_error=None, freedom=0, variance=0.0)
    return effect


def _level(ours: Series, theirs: Series) -> Level:
    levels = {ours.level, theirs.level}
    if "summary" in levels:
        return "summary"
    return "run" if "run" in levels else "prompt"


def _method(scale: Scale, ours: Series, theirs: Series) -> str:
    levels = {ours.level, theirs.level}
    if levels == {"run"}:
        return "per run, Welch's t of logs (ratio of geometric means)" if scale == "log" else "per run, Welch's t"
    if levels == {"prompt"}:
        return f"prompts not paired, {'log ratio' if scale == 'log' else 'difference'} of sums, Welch's t"
    if levels == {"summary"}:
        return TWO_NUMBERS
    t = "Student's t" if "summary" in levels else "Welch's t"
    return f"{WORDS[ours.level]} against {WORDS[theirs.level]}, {t}{' of logs' if scale == 'log' else ''}"


def _tests(effect: Effect | None, scale: Scale, ours: Series, theirs: Series) -> tuple[Test, ...]:
    found: list[Test] = []
    one_sample = "summary" in {ours.level, theirs.level}
    if effect is not None:
        name = "one-sample t" if one_sample else "Welch's t"
        found.append(t_test(effect, f"{name} of logs" if scale == "log" else name))
    if ours.level == theirs.level == "prompt":
        found.append(mann_whitney(ratios(alone(ours)), ratios(alone(theirs))))
    elif ours.level == theirs.level == "run":
        found.append(mann_whitney(ours.y, theirs.y))
        if scale == "log" and min(len(ours.y), len(theirs.y)) > 1:
            mine, other = of_runs(ours.y, "plain"), of_runs(theirs.y, "plain")
            if mine is not None and other is not None:
                found.append(t_test(welch(mine, other, "plain"), "Welch's t"))
    equal = effect is not None and effect.standard_error == 0.0
    return tuple(sorted(found, key=lambda test: test.p is None) if equal else found)
