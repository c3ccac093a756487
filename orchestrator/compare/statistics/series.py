"""One metric of two sides: what kind of samples they are, by which method, and what it amounts to."""

import math
from dataclasses import replace

from orchestrator.compare.comparison import Comparison, Spread, Verdict
from orchestrator.compare.counted import counted
from orchestrator.compare.metrics import Metric
from orchestrator.compare.statistics.effect import Effect, alike_change, change_of
from orchestrator.compare.statistics.equivalence import equivalence_p
from orchestrator.compare.statistics.findings import Findings, plain_change
from orchestrator.compare.statistics.paired import paired_findings
from orchestrator.compare.statistics.power import power_of
from orchestrator.compare.statistics.prompts import pair
from orchestrator.compare.statistics.starts import LEAST_STARTS, by_start, repeats_note
from orchestrator.compare.statistics.unpaired import estimate, unpaired_findings
from orchestrator.compare.statistics.verdict import judge, single_run_note
from orchestrator.compare.stats import MIN_ROWS, UNKNOWN, Estimate
from orchestrator.records.measurement import Series

ROUNDING = 1e-9
"""How far above 1 a share may lie by rounding."""
LEAST, MOST = 1e-100, 1e100
"""Beyond these no figure is a measurement, and sums and ratios would overflow."""


def compare_series(metric: Metric, ours: Series, theirs: Series, *, margin: float | None = None) -> Comparison:
    """Ours against theirs: change with its 95 % interval, tests, verdict against the margin (None = the metric's).

    Prompts are paired by key where at least 5 prompts (conversations) are on both sides; otherwise both sides are
    taken as independent, and the note says so. Other unit or definition: `not comparable`; a share outside [0, 1] or
    a negative figure of a ratio, a speed of 0, an accept length below 1: `invalid`. Repeats of one server start are one
    sample, and fewer than 3 runs (starts) a side have no verdict.
    Raises ValueError for series of other metrics than `metric`, and for a margin that is negative or no number.
    """
    limit = metric.margin if margin is None else margin
    if not (math.isfinite(limit) and limit >= 0):
        raise ValueError(f"expected a margin of 0 or more, found: {limit}")
    if not ours.metric == theirs.metric == metric.name:
        raise ValueError(f"expected two series of `{metric.name}`, found: `{ours.metric}` and `{theirs.metric}`")
    if unlike := _unlike(metric, ours, theirs):
        return _refused(metric, ours, theirs, limit, "not comparable", unlike)
    if impossible := _impossible(metric, "our", ours) or _impossible(metric, "their", theirs):
        return _refused(metric, ours, theirs, limit, "invalid", impossible)
    mine, other = by_start(ours, metric), by_start(theirs, metric)
    found = _findings(metric, mine, other)
    if note := repeats_note(metric, ours, theirs):
        found = replace(found, notes=(note, *found.notes))
    return _judged(metric, mine, other, limit, found)


def _spread_of(effect: Effect, standard_error: float, levels: set[str]) -> Spread:
    return Spread(
        standard_error=standard_error,
        freedom=effect.freedom,
        variance=effect.variance,
        sides=effect.sides,
        least=MIN_ROWS if "prompt" in levels else LEAST_STARTS,
    )


def _findings(metric: Metric, ours: Series, theirs: Series) -> Findings:
    if ours.level != "prompt" or theirs.level != "prompt":
        return unpaired_findings(metric, ours, theirs)
    pairs = pair(ours, theirs)
    fewer = min(len(ours.y), len(theirs.y))
    if min(pairs.ours.counted, pairs.theirs.counted) >= MIN_ROWS or pairs.prompts == fewer:
        found = paired_findings(metric, pairs)
        left = len(ours.y) + len(theirs.y) - 2 * pairs.prompts
        told = counted(left, "prompt that only one side answered is", "prompts that only one side answered are")
        return _noted(found, f"{told} left out") if left else found
    found = unpaired_findings(metric, ours, theirs)
    shared = counted(pairs.prompts, "prompt is", "prompts are")
    return _noted(found, f"only {shared} on both sides: compared as independent, which sees less")


def _judged(metric: Metric, ours: Series, theirs: Series, margin: float, found: Findings) -> Comparison:
    effect = found.effect
    change = Estimate(value=plain_change(found.ours, found.theirs, metric.change), rows=0)
    detectable = needed = equivalent = spread = None
    if effect is not None:
        change = change_of(effect)
        if effect.alike:
            change, told = alike_change(effect, margin, shares=metric.unit == "share")
            but = "but for a few, " if effect.spread else ""
            found = _noted(found, f"{but}{found.alike} (n = {effect.samples}): {told}")
        elif effect.spread and effect.standard_error is not None:
            equivalent = equivalence_p(effect, margin)
            spread = _spread_of(effect, effect.standard_error, {ours.level, theirs.level})
            detectable, needed = power_of(spread, margin, ratio=effect.scale == "log")
    verdict: Verdict = judge(change, margin, metric.better) or ("single run" if found.single else "inconclusive")
    if verdict == "single run":
        found = _noted(found, single_run_note(change.value, metric.change))
    return Comparison(
        metric=metric,
        ours=found.ours,
        theirs=found.theirs,
        change=change,
        verdict=verdict,
        margin=margin,
        level=found.level,
        n_ours=_samples(ours),
        n_theirs=_samples(theirs),
        pairs=found.pairs,
        method=found.method,
        tests=found.tests,
        equivalence_p=equivalent,
        detectable=detectable,
        needed=needed,
        spread=spread,
        alike=effect is not None and effect.alike,
        note="; ".join(found.notes),
    )


def _refused(metric: Metric, ours: Series, theirs: Series, margin: float, verdict: Verdict, note: str) -> Comparison:
    return Comparison(
        metric=metric,
        ours=_figure(metric, ours),
        theirs=_figure(metric, theirs),
        change=UNKNOWN,
        verdict=verdict,
        margin=margin,
        level="summary" if "summary" in {ours.level, theirs.level} else ours.level,
        n_ours=_samples(by_start(ours, metric)),
        n_theirs=_samples(by_start(theirs, metric)),
        note=note,
    )


def _figure(metric: Metric, series: Series) -> Estimate:
    return UNKNOWN if _impossible(metric, "", series) else estimate(series, metric)


def _unlike(metric: Metric, ours: Series, theirs: Series) -> str:
    """Why the two are not the same quantity; empty where they are."""
    if ours.unit != theirs.unit:
        return f"other unit: ours in {ours.unit}, theirs in {theirs.unit}"
    if ours.unit != metric.unit:
        return f"other unit: expected {metric.unit}, found {ours.unit} on both sides"
    if ours.definition != theirs.definition:
        return f"other definition: ours is {ours.definition}; theirs is {theirs.definition}"
    return ""


def _impossible(metric: Metric, side: str, series: Series) -> str:
    """Why the numbers of a side cannot be what they are called; empty where they can."""
    if min(*series.y, *series.x, 0.0) < 0:
        return f"{side} numbers: a negative value cannot be `{metric.name}`"
    values = (*series.y, *series.x)
    if max(values) > MOST or min(filter(None, values), default=1.0) < LEAST:
        return f"{side} numbers: a value outside {LEAST:g} to {MOST:g} cannot be `{metric.name}`"
    if metric.change == "ratio" and (not any(series.y) or (series.level != "prompt" and 0.0 in series.y)):
        return f"{side} numbers: a value of 0 cannot be `{metric.name}`: there nothing was done"
    if metric.is_accept_length and not _is_above_one(series):
        return f"{side} numbers: an accept length below 1 cannot be `{metric.name}`"
    most = series.x or (1.0,) * len(series.y)
    if metric.unit == "share" and any(y > x * (1 + ROUNDING) for y, x in zip(series.y, most, strict=True)):
        return f"{side} numbers: a share above 1 cannot be `{metric.name}`"
    return ""


def _is_above_one(series: Series) -> bool:
    """Whether the bonus token is in: every verify step gives it, so no accept length is below 1."""
    if series.level == "prompt" and series.x:
        return sum(series.y) >= sum(series.x) * (1 - ROUNDING)
    return min(series.y) >= 1 - ROUNDING


def _samples(series: Series) -> int:
    return (series.n or 1) if series.level == "summary" else len(series.y)


def _noted(found: Findings, note: str) -> Findings:
    return replace(found, notes=(*found.notes, note))
