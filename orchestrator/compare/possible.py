"""What a metric can be at all, and where a number without a unit could be meant in another one.

For what people type, a baseline's numbers and expectations: a condition that always or never holds would pass, or fail,
whatever a run does. And for what was measured, here or by another tool: such a load is no measurement.
"""

import dataclasses
from collections.abc import Iterator, Sequence

from orchestrator.compare.metrics import BONUS_IN, METRICS, Metric, metric_of
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series
from remote_payload.schema.job import MAX_STEPS

LENGTHS = frozenset(name for name in METRICS if name.startswith("accept_length"))
_RATES = ("tok/s", "req/s")
MOST_A_SECOND = 1e8
"""Tokens or requests; a rack of the largest GPUs gives about a hundredth of it."""
PER_TOKEN = ("tpot_s", "itl_s")
BARE_SECONDS, BARE_SECONDS_PER_TOKEN = 60.0, 1.0
"""A larger number without a unit is more likely one of milliseconds."""


def impossible(metric: Metric, value: float) -> tuple[str, str | None] | None:
    """Why the metric can never be this (in its own unit): what was expected, and a hint; None = it can be."""
    if metric.unit == "share":
        fits, words = 0 <= value <= 1, "a share, 0 to 1"
        hint: str | None = "a share of 71 % is written 0.71"
    elif _bare_name(metric) in LENGTHS:
        fits, words = 1 <= value <= MAX_STEPS + 1, f"an accept length, 1 to {MAX_STEPS + 1}"
        hint = "an accept length counts the bonus token"
    elif metric.unit in _RATES:
        fits, words, hint = (
            0 < value <= MOST_A_SECOND,
            f"a number of {metric.unit} above 0, {MOST_A_SECOND:g} at most",
            None,
        )
    else:
        fits, words, hint = value > 0, f"a number of {metric.unit} above 0", None
    return None if fits else (words, hint)


def impossible_figures(one: Measurement) -> tuple[str, ...]:
    """What is told of a load that cannot be, a sentence a metric with what was expected; none = all of it can be.

    An accept length is held against the load's own `num_draft_tokens` where that is told.
    """
    found = []
    for series in one.series:
        metric = metric_of(series.metric)
        if metric is None or metric.unit != series.unit:
            continue
        told = _beyond(series, metric, _width((*one.hard, *one.case)))
        if told is not None:
            value, words = told
            found.append(f"`{series.metric}` cannot be {value:.6g}: expected {words}")
        elif (one_prompt := _prompt_beyond(series, metric, _width((*one.hard, *one.case)))) is not None:
            found.append(f"`{series.metric}` of a prompt {one_prompt}")
    return tuple(found)


def asked_again(kept: MeasurementSet) -> MeasurementSet:
    """The set with every load whose figures cannot be as no measurement: what kept it earlier may not have asked."""
    return dataclasses.replace(kept, measurements=tuple(map(_asked_again, kept.measurements)))


def _asked_again(one: Measurement) -> Measurement:
    found = tuple(told for told in impossible_figures(one) if told not in one.invalid)
    return dataclasses.replace(one, invalid=(*one.invalid, *found)) if found else one


def _beyond(series: Series, metric: Metric, width: int | None) -> tuple[float, str] | None:
    """The first figure of the series that cannot be, and what was expected.

    Of a measured 0 nothing is said but of a length: a median gap between chunks may be one.
    """
    name = _bare_name(metric)
    most = MAX_STEPS + 1 if width is None else width
    whose = "" if width is None else f", its own num_draft_tokens ({width})"
    for value in _figures(series):
        if name in BONUS_IN and not 1 <= value <= most:
            return value, f"an accept length, 1 to {most}{whose}"
        if name in LENGTHS and not 1 <= value <= most + 1:  # tokens of the prefill are among the completion's
            return value, f"an accept length, 1 to {most + 1}, a token of the prefill among them{whose}"
        if metric.unit == "share" and not 0 <= value <= 1:
            return value, "a share, 0 to 1"
        if value < 0:
            return value, f"no negative number of {metric.unit}"
        if metric.unit in _RATES and value > MOST_A_SECOND:
            return value, f"{MOST_A_SECOND:g} {metric.unit} at most"
    return None


def _prompt_beyond(series: Series, metric: Metric, width: int | None) -> str | None:
    """The first prompt whose sum over its denominator is more than it can be, in words; None = there is none.

    The same limits as of the pooled figure, from above alone: a server may count a verify step after the last token.
    """
    most: float
    if _bare_name(metric) in LENGTHS:
        most = (MAX_STEPS + 1 if width is None else width) + (_bare_name(metric) not in BONUS_IN)
    elif metric.unit == "share":
        most = 1.0
    else:
        return None
    for key, total, by in zip(series.keys, series.y, series.x, strict=False):
        if by > 0 and total > most * by:
            return f"cannot be {total / by:.6g} ({key}): expected {most:g} at most"
    return None


def _figures(series: Series) -> Iterator[float]:
    """The figures that stand on their own: of prompts the pooled one or the mean, else each."""
    if series.x:
        if total := sum(series.x):
            yield sum(series.y) / total
    elif series.level == "prompt":
        yield sum(series.y) / len(series.y)
    else:
        yield from series.y


def _width(facts: Sequence[Fact]) -> int | None:
    told = next((fact.value for fact in facts if fact.name == "num_draft_tokens"), None)
    return int(told) if told is not None and told.isascii() and told.isdigit() and int(told) > 0 else None


def meanings(metric: Metric, number: float) -> tuple[str, str] | None:
    """The two ways in which a number without a unit could be meant; None = its metric's name tells the unit.

    `ttft_s <= 500` is hardly 500 s; `accept_rate >= 1` may be 1 % or all of them.
    """
    if metric.unit == "share":
        return ("100 %", "1 %") if number == 1 else None
    if metric.unit == "s":
        limit = BARE_SECONDS_PER_TOKEN if _bare_name(metric).startswith(PER_TOKEN) else BARE_SECONDS
        return (f"{number:g} ms", f"{number:g} s") if number > limit else None
    return None


def _bare_name(metric: Metric) -> str:
    return metric.name.removeprefix("declared.").removeprefix("best.")
