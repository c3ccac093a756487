"""Expectations judged: an expectation holds only where the whole 95 % interval says so.

Failed: the whole interval says the opposite. Anything else cannot be told - an interval that crosses the value, a
single run, a baseline that is not comparable, a metric that was not measured, a load that is no measurement, equal
samples near the value - and what cannot be told is never passed.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import CaseComparison, Comparison
from orchestrator.compare.condition import Condition
from orchestrator.compare.diff import compare_sets
from orchestrator.compare.fingerprint import implied, value_of
from orchestrator.compare.matching import PREFERRED, case_words
from orchestrator.compare.pairing import figure_of
from orchestrator.compare.pooling import Case, Operand, pooled
from orchestrator.compare.statistics import is_mostly_equal
from orchestrator.compare.statistics.alike import LEAST_ALIKE, enough_alike
from orchestrator.compare.statistics.starts import LEAST_STARTS, by_start
from orchestrator.compare.stats import UNKNOWN, Estimate
from orchestrator.errors import UsageError
from orchestrator.records.measurement import Measurement

Outcome = Literal["passed", "failed", "cannot tell"]


@dataclass(frozen=True, kw_only=True)
class Judgment:
    """One expectation on one load."""

    condition: Condition
    outcome: Outcome
    case: Case = ()
    """The load; empty where none could be found."""
    figure: Estimate = UNKNOWN
    """What was measured; against a baseline the ratio - 1, or the difference."""
    comparison: Comparison | None = None
    reason: str = ""
    """Why it cannot be told."""
    left_out: tuple[str, ...] = ()
    """Runs that were meant and are not judged: the baseline that it is held against is one of them."""


def judge(condition: Condition, measured: Operand, baseline: Operand | None = None) -> tuple[Judgment, ...]:
    """Judge an expectation on every load that it means; at least one judgment in any case."""
    loads = _loads(condition, tuple(pooled(measured, lambda _: True).values()))
    if isinstance(loads, str):
        return (cannot_tell(condition, loads),)
    if condition.baseline is None:
        return tuple(_absolute(condition, load) for load in loads)
    if baseline is None:
        return (cannot_tell(condition, f"`{condition.baseline}` was not found"),)
    loads = _at_its_load(condition, loads, baseline)
    if isinstance(loads, str):
        return (cannot_tell(condition, loads),)
    unclear = _unclear(condition, loads, baseline)
    return tuple(
        cannot_tell(condition, unclear[load.case], load.case)
        if load.case in unclear
        else _relative(condition, load, measured, baseline)
        for load in loads
    )


def cannot_tell(
    condition: Condition,
    reason: str,
    case: Case = (),
    figure: Estimate = UNKNOWN,
    comparison: Comparison | None = None,
) -> Judgment:
    """An expectation that is not judged, with the reason."""
    return Judgment(
        condition=condition, outcome="cannot tell", case=case, figure=figure, comparison=comparison, reason=reason
    )


def _loads(condition: Condition, measurements: Sequence[Measurement]) -> Sequence[Measurement] | str:
    """The loads that are meant, or why there are none: without a word on it the drafter's side, the test's own rows."""
    fitting = [
        item for item in measurements if all(value_of(item, key) == value for key, value in condition.where.items())
    ]
    if not fitting:
        told = ", ".join(f"{key}={value}" for key, value in condition.where.items())
        return f"no load of the run has {told}" if told else "nothing was measured"
    for key, value in PREFERRED.items():
        if key not in condition.where:
            fitting = [item for item in fitting if value_of(item, key) == value] or fitting
    having = [
        item
        for item in fitting
        if any(series.metric == condition.metric.name for series in item.series) or (item.invalid and not item.series)
    ]
    if having:
        return having
    known = sorted({series.metric for item in fitting for series in item.series})
    return f"the run has no {condition.metric.name}; it has {', '.join(known)}"


def _absolute(condition: Condition, load: Measurement) -> Judgment:
    if load.invalid:
        return cannot_tell(condition, "; ".join(load.invalid), load.case)
    series = next(item for item in load.series if item.metric == condition.metric.name)
    starts = by_start(series, condition.metric)
    figure = figure_of(condition.metric, starts)
    if series.unit != condition.metric.unit:
        return cannot_tell(
            condition, f"it was measured in {series.unit}, not in {condition.metric.unit}", load.case, figure
        )
    if series.level == "run" and len(starts.y) < LEAST_STARTS:
        alone = dataclasses.replace(figure, low=None, high=None)
        return cannot_tell(condition, _few_starts(len(series.y), len(starts.y)), load.case, alone)
    if figure.value is None or figure.low is None or figure.high is None:
        few = f"no interval from {figure.rows} sample{'' if figure.rows == 1 else 's'}: measure more"
        return cannot_tell(condition, few, load.case, figure)
    limit = condition.value or 0.0
    if is_mostly_equal(starts) and (why := _too_alike(condition, figure, limit / figure.value - 1)):
        return cannot_tell(condition, why, load.case, dataclasses.replace(figure, low=None, high=None))
    outcome = _outcome(condition, figure.low, figure.high, limit)
    return Judgment(condition=condition, outcome=outcome, case=load.case, figure=figure, reason=_crossing(outcome))


def _too_alike(condition: Condition, figure: Estimate, apart: float) -> str:
    """Why samples of which all but a few are equal do not tell on which side of a value others lie; empty = they do.

    `apart`: how far the value is from the figure, as a share of that. Shares have an interval that says as much.
    """
    metric = condition.metric
    if metric.unit == "share":
        return ""
    more = enough_alike(figure.rows, near=abs(apart) < metric.margin)
    near = f", and the value is within {100 * metric.margin:g} % of their figure" if more == LEAST_ALIKE else ""
    told = f"its samples are equal, or all but a few are{near}: their spread tells nothing of others"
    return f"{told}; {more} samples would tell, found {figure.rows}" if more else ""


def _few_starts(repeats: int, starts: int) -> str:
    """Why repeats on so few server starts tell nothing, as in a comparison, and what would."""
    runs = "run" if starts == 1 else "runs"
    told = f"{repeats} repeats of {starts} {runs} (server starts)" if repeats > starts else f"{starts} {runs}"
    return (
        f"{told}, {LEAST_STARTS} are the least: measure with `--starts {LEAST_STARTS}` (--with-baseline starts one "
        f"a repeat), or judge several runs together (`bench~{LEAST_STARTS}`)"
    )


def _at_its_load(condition: Condition, loads: Sequence[Measurement], baseline: Operand) -> Sequence[Measurement] | str:
    """Of a typed number that names its load the loads that it is of, or why there are none; else all of them."""
    if not baseline.is_typed:
        return loads
    factors = implied(condition.vary)
    named = [{fact for fact in item.case if fact.name not in factors} for item in baseline.measurements]
    fitting = [load for load in loads if any(case <= set(load.case) for case in named)]
    if fitting:
        return fitting
    told = ", ".join(case_words(item.case) for item in baseline.measurements)
    other = next((fact.name for item in baseline.measurements for fact in item.case if fact not in loads[0].case), "")
    across = f"; with [vary={other}] it is compared across" if other and not condition.vary else ""
    return f"`{condition.baseline}` was measured at {told}, and no load that is meant is that one{across}"


def _unclear(condition: Condition, loads: Sequence[Measurement], baseline: Operand) -> dict[Case, str]:
    """Loads that a figure of the baseline may be of, as it tells less than they do and fits several; with the reason.

    A typed number names no load: held against every one it would pass at the load that it was never measured at.
    """
    factors = implied(condition.vary)
    theirs = [
        set(item.case)
        for item in baseline.measurements
        if any(series.metric == condition.metric.name for series in item.series)
    ]
    found: dict[Case, str] = {}
    for case in theirs:
        fitting = [load.case for load in loads if set(load.case) > case and set(load.case) not in theirs]
        apart = {tuple(fact for fact in one if fact.name not in factors) for one in fitting}
        if len(apart) > 1:
            words = " ".join(f"{fact.name}={fact.value}" for fact in case)
            said = f"says no more than {words}" if words else "names no load"
            for one in fitting:
                name = next(fact for fact in one if any(fact not in other for other in fitting))
                found[one] = (
                    f"`{condition.baseline}` {said}, and {len(apart)} loads of the run fit it: "
                    f"`[{name.name}={name.value}] {condition.text.strip()}` chooses this one"
                    + ("; `baseline set --load` would name the number's own" if baseline.is_typed else "")
                )
    return found


def _relative(condition: Condition, load: Measurement, measured: Operand, baseline: Operand) -> Judgment:
    where = {fact.name: fact.value or "" for fact in load.case}
    asked = Asked(
        metrics=(condition.metric.name,), vary=condition.vary, where={**condition.where, **_kept(where, condition)}
    )
    alone = Operand(label=measured.label, sets=(dataclasses.replace(measured.sets[0], measurements=(load,)),))
    try:
        found = compare_sets(alone, baseline, asked)
    except UsageError as error:
        return cannot_tell(condition, f"{error.message}; {error.hint}", load.case)
    case = next((item for item in found.cases if item.ours.case == load.case), None)
    if case is None:
        return cannot_tell(condition, "; ".join(found.notes) or "the baseline has no such load", load.case)
    line = next((item for item in case.comparisons if item.metric.name == condition.metric.name), None)
    if line is None or case.verdict in ("invalid", "not comparable"):
        return cannot_tell(condition, _why(case, line), load.case)
    change = line.change
    if change.low is None or change.high is None:
        return cannot_tell(condition, f"no interval: {line.note or 'too few samples'}", load.case, change, line)
    limit = condition.factor - 1 if condition.metric.change == "ratio" else condition.offset
    if line.alike and (why := _too_alike(condition, change, (1 + limit) / (1 + (change.value or 0.0)) - 1)):
        return cannot_tell(condition, why, load.case, dataclasses.replace(change, low=None, high=None), line)
    outcome = _outcome(condition, change.low, change.high, limit)
    return Judgment(
        condition=condition, outcome=outcome, case=load.case, figure=change, comparison=line, reason=_crossing(outcome)
    )


def _kept(where: dict[str, str], condition: Condition) -> dict[str, str]:
    """A load's own facts choose it, but for those that may differ from the baseline."""
    factors = implied(condition.vary)
    return {key: value for key, value in where.items() if key not in factors}


def _outcome(condition: Condition, low: float, high: float, limit: float) -> Outcome:
    if condition.operator in (">=", ">"):
        holds = low >= limit if condition.operator == ">=" else low > limit
        fails = high < limit if condition.operator == ">=" else high <= limit
    else:
        holds = high <= limit if condition.operator == "<=" else high < limit
        fails = low > limit if condition.operator == "<=" else low >= limit
    return "passed" if holds else "failed" if fails else "cannot tell"


def _crossing(outcome: Outcome) -> str:
    return "the 95 % interval crosses the value: measure more, or expect less" if outcome == "cannot tell" else ""


def _why(case: CaseComparison, line: Comparison | None) -> str:
    reasons = [*case.ours.invalid, *(f"the baseline: {text}" for text in case.theirs.invalid)]
    reasons += [f"not comparable: {item.name} is {item.ours}, the baseline's {item.theirs}" for item in case.hard]
    if not reasons and line is not None and line.note:
        reasons = [line.note]
    if case.hard:
        reasons.append(f"[vary={case.hard[0].name}] says that it may differ")
    return "; ".join(reasons) or "the baseline has no such figure"
