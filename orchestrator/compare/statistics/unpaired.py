"""Two sides without pairs: runs against runs, prompts against other prompts, either against a number.

Throughput and latency belong here: the requests of a run share its batches, so a run (or repeat) is one sample.
"""

import math
from statistics import fmean

from orchestrator.compare.comparison import Test
from orchestrator.compare.metrics import Metric
from orchestrator.compare.statistics.averages import mean, variance
from orchestrator.compare.statistics.effect import Effect, Scale, t_test
from orchestrator.compare.statistics.findings import Findings
from orchestrator.compare.statistics.prompts import alone, figure, ratios
from orchestrator.compare.statistics.ranks import mann_whitney
from orchestrator.compare.statistics.sides import Side, of_figure, of_number, of_runs, welch
from orchestrator.compare.stats import MIN_ROWS, Estimate, student_t_quantile
from orchestrator.records.measurement import Level, Series

ENOUGH_RUNS = 5
LEAST_AGAINST_NUMBER = 3
LEAST_FOR_PREDICTION = 3


def unpaired_findings(metric: Metric, ours: Series, theirs: Series) -> Findings:
    """Welch's t of logs (of figures, for shares); a number without samples counts as exact."""
    scale: Scale = "log" if metric.change == "ratio" else "plain"
    mine, other = _side(ours, scale), _side(theirs, scale)
    effect = None if mine is None or other is None else _tested(welch(mine, other, scale), mine, other, ours, theirs)
    level = _level(ours, theirs)
    return Findings(
        level=level,
        ours=estimate(ours, metric),
        theirs=estimate(theirs, metric),
        effect=effect,
        method=_method(scale, level, ours, theirs),
        tests=_tests(effect, scale, ours, theirs),
        notes=_notes(effect, metric, ours, theirs),
        single="prompt" not in {ours.level, theirs.level},
    )


def estimate(series: Series, metric: Metric) -> Estimate:
    """One side's figure: ratio of sums over prompts, mean over runs, or the number as it stands."""
    if series.level == "prompt":
        return figure(alone(series), metric.unit)
    if series.level == "run":
        return mean(series.y)
    return Estimate(value=series.y[0], rows=series.n or 1)


def _side(series: Series, scale: Scale) -> Side | None:
    if series.level == "run":
        return of_runs(series.y, scale)
    if series.level == "summary":
        return of_number(series.y[0], scale)
    return of_figure(figure(alone(series), ""), scale)


def _tested(effect: Effect, mine: Side, other: Side, ours: Series, theirs: Series) -> Effect:
    """The effect without its error where a number stands against fewer than 3 runs: too little to test."""
    few = "run" in {ours.level, theirs.level} and effect.samples < LEAST_AGAINST_NUMBER
    if few and (mine.fixed or other.fixed):
        return Effect(scale=effect.scale, value=effect.value, standard_error=None, freedom=0,
                      samples=effect.samples, sides=1)  # fmt: skip
    return effect


def _level(ours: Series, theirs: Series) -> Level:
    levels = {ours.level, theirs.level}
    if "summary" in levels:
        return "summary"
    return "run" if "run" in levels else "prompt"


def _method(scale: Scale, level: Level, ours: Series, theirs: Series) -> str:
    if level == "summary":
        what = "log of our figure" if theirs.level == "summary" else "log of their figure"
        return f"one number against samples, {what if scale == 'log' else 'difference'}, Student's t"
    if ours.level != theirs.level:
        return "prompts against runs, Welch's t" + (" of logs" if scale == "log" else "")
    if level == "prompt":
        return f"prompts not paired, {'log ratio' if scale == 'log' else 'difference'} of ratios of sums, Welch's t"
    return "per run, Welch's t of logs (ratio of geometric means)" if scale == "log" else "per run, Welch's t"


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


def _notes(effect: Effect | None, metric: Metric, ours: Series, theirs: Series) -> tuple[str, ...]:
    notes = []
    for name, series in (("our", ours), ("their", theirs)):
        if series.level == "summary":
            notes.append(f"{name} number came without its samples: it counts as exact, so the interval is too narrow")
    runs = [len(series.y) for series in (ours, theirs) if series.level == "run"]
    if effect is None:
        notes.append("a figure of 0 has no ratio")
    elif effect.spread:
        if runs and min(runs) < ENOUGH_RUNS:
            notes.append(f"fewer than {ENOUGH_RUNS} runs a side: the interval leans on runs being normally spread")
    elif effect.standard_error is not None:
        notes.append(f"all samples of a side are equal (n = {effect.samples}): their spread is unknown, not 0")
    elif "prompt" in {ours.level, theirs.level}:
        notes.append(f"an interval needs {MIN_ROWS} prompts (or conversations), found {effect.samples}")
    notes += _prediction(metric, ours, theirs)
    return tuple(notes)


def _prediction(metric: Metric, ours: Series, theirs: Series) -> list[str]:
    """Where one run stands against several: what a further run like those would show."""
    for name, one, several in (("our", ours, theirs), ("their", theirs, ours)):
        n = len(several.y)
        if one.level != "run" or several.level != "run" or len(one.y) != 1 or n < LEAST_FOR_PREDICTION:
            continue
        logs = metric.change == "ratio" and min(several.y) > 0
        values = [math.log(value) for value in several.y] if logs else list(several.y)
        half = student_t_quantile(0.975, n - 1) * math.sqrt(variance(values) * (1 + 1 / n))
        low, high = fmean(values) - half, fmean(values) + half
        if logs:
            low, high = math.exp(low), math.exp(high)
        inside = "inside" if low <= one.y[0] <= high else "outside"
        return [
            f"{name} one run is {inside} what a further run like the other {n} would show in 95 % of cases: "
            f"{low:.4g} to {high:.4g} {metric.unit}"
        ]
    return []
