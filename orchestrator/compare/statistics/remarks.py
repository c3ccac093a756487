"""What must be said beside a comparison without pairs: what is taken as exact, what is too little, what is assumed."""

import math
from statistics import fmean

from orchestrator.compare.metrics import Metric
from orchestrator.compare.statistics.averages import variance
from orchestrator.compare.statistics.effect import Effect, settled
from orchestrator.compare.statistics.prompts import alone
from orchestrator.compare.statistics.starts import LEAST_STARTS
from orchestrator.compare.stats import CONFIDENCE, MIN_ROWS, student_t_quantile
from orchestrator.records.measurement import Series

ENOUGH_RUNS = 5
LEAST_FOR_PREDICTION = 3
NARROW = "where it was measured, the interval is too narrow"


def remarks(effect: Effect | None, metric: Metric, ours: Series, theirs: Series) -> tuple[str, ...]:
    """Sentences without a full stop, in the order of their weight."""
    notes = [*_exact(ours, theirs), *_too_few(ours, theirs)]
    runs = [len(series.y) for series in (ours, theirs) if series.level == "run"]
    if effect is None:
        notes.append("a figure of 0 has no ratio")
    elif effect.spread and not effect.alike and runs and 1 < min(runs) < ENOUGH_RUNS:
        notes.append(f"fewer than {ENOUGH_RUNS} runs a side: the interval leans on runs being normally spread")
    if effect is not None and effect.spread and not effect.alike:
        notes += _constant(ours, theirs)
    return (*notes, *_prediction(metric, ours, theirs))


def _exact(ours: Series, theirs: Series) -> list[str]:
    """A side whose figure is taken as exact, because nobody told how uncertain it is."""
    notes = []
    for name, series, other in (("our", ours, theirs), ("their", theirs, ours)):
        if series.level == "summary" and other.level != "summary":
            known = "" if series.n is None else f" (n = {series.n})"
            notes.append(f"{name} number came without its samples{known} and is taken as exact: {NARROW}")
        elif series.level == "run" and len(series.y) == 1 and other.level == "prompt":
            notes.append(f"{name} figure is of one run and is taken as exact: {NARROW}")
    return notes


def _constant(ours: Series, theirs: Series) -> list[str]:
    """A side without spread beside one with it: the interval rests on the other alone."""
    return [
        f"{name} {len(series.y)} runs are all equal: their spread counts as 0, and the interval may be too narrow"
        for name, series in (("our", ours), ("their", theirs))
        if series.level == "run" and len(series.y) > 1 and len(set(series.y)) == 1
    ]


def _too_few(ours: Series, theirs: Series) -> list[str]:
    """Why there is no interval, and what would give one."""
    notes: list[str] = []
    missing: list[str] = []
    for name, series, other in (("our", ours, theirs), ("their", theirs, ours)):
        rows = alone(series).counted if series.level == "prompt" else len(series.y)
        if series.level == "prompt" and rows < MIN_ROWS:
            notes.append(f"an interval needs {MIN_ROWS} prompts (or conversations), found {rows} on {name} side")
        elif series.level == "run" and other.level != "prompt" and rows < LEAST_STARTS:
            more = LEAST_STARTS - rows
            missing.append(f"{more} more run{'' if more == 1 else 's'} of {'ours' if name == 'our' else 'theirs'}")
    if missing:
        a_side = "" if "summary" in {ours.level, theirs.level} else " a side"
        notes.append(f"no verdict below {LEAST_STARTS} runs (server starts){a_side}: it takes {' and '.join(missing)}")
    return notes


def _prediction(metric: Metric, ours: Series, theirs: Series) -> list[str]:
    """Where one run stands against several: what a further run like those would show."""
    for name, one, several in (("our", ours, theirs), ("their", theirs, ours)):
        n = len(several.y)
        if one.level != "run" or several.level != "run" or len(one.y) != 1 or n < LEAST_FOR_PREDICTION:
            continue
        logs = metric.change == "ratio" and min(several.y) > 0
        values = [math.log(value) for value in several.y] if logs else list(several.y)
        if not settled(math.sqrt(variance(values)), 1.0 if logs else max(map(abs, values))):
            continue  # they do not differ: what a further one would show is unknown
        half = student_t_quantile(0.5 + CONFIDENCE / 2, n - 1) * math.sqrt(variance(values) * (1 + 1 / n))
        low, high = fmean(values) - half, fmean(values) + half
        if logs:
            low, high = math.exp(low), math.exp(high)
        inside = "inside" if low <= one.y[0] <= high else "outside"
        return [
            f"{name} one run is {inside} what a further run like the other {n} would show in 95 % of cases: "
            f"{low:.4g} to {high:.4g} {metric.unit}"
        ]
    return []
