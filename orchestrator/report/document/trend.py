"""How the figures went from run to run, and what baselines meant at the time."""

from collections import Counter
from collections.abc import Sequence

from orchestrator.compare.definitions import read_out
from orchestrator.compare.matching import PREFERRED
from orchestrator.compare.metrics import metric_of
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet
from orchestrator.report.document.blocks import Block, Chart, Section, Table, Text, Trace
from orchestrator.report.document.figures import case_words, fact_of, figure, rounded, scale_of, series_of, title_of
from orchestrator.report.document.subject import BaselineMove, Reported, Subject, in_time
from orchestrator.report.moments import moment
from orchestrator.report.words import UNKNOWN

Key = tuple[str, tuple[Fact, ...]]
LEAST = 3
"""Runs from which a trend is drawn; two are compared instead."""
MOST = 4
"""Figures drawn."""


def trend_section(reported: Reported) -> Section | None:
    """A figure a primary metric over the runs, oldest first, and every move of a baseline; None below three runs."""
    runs = in_time(reported.subjects)
    if len(runs) < LEAST and not reported.moves:
        return None
    keys = _most_told(runs) if len(runs) >= LEAST else []
    charts = (_chart(number, key, runs, reported.moves) for number, key in enumerate(keys[:MOST], start=1))
    blocks: list[Block] = [chart for chart in charts if chart is not None]
    if len(keys) > MOST:
        more = "; ".join(f"{title_of(metric)}, {case_words(case)}" for metric, case in keys[MOST : MOST + 8])
        blocks.append(Text(text=f"Not drawn: {more}{'; ...' if len(keys) > MOST + 8 else ''}.", kind="note"))
    if reported.moves:
        blocks.append(_moves(reported.moves))
    if not blocks:
        blocks.append(Text(text="No primary metric was measured by several of these runs.", kind="note"))
    return Section(name="trend", title="Trend over runs", blocks=tuple(blocks))


def _most_told(runs: Sequence[Subject]) -> list[Key]:
    """Primary metrics by case that two runs and more have, plain decoding last, else the most frequent first."""
    counts: Counter[Key] = Counter()
    for run in runs:
        for one in run.measured.measurements:
            if one.invalid:
                continue
            for series in one.series:
                metric = metric_of(series.metric)
                if metric is not None and (metric.primary or series.metric == "best.first_step_accuracy"):
                    counts[series.metric, one.case] += 1
    ranked = sorted(counts.items(), key=lambda item: (fact_of(item[0][1], "side") == "plain", -item[1]))
    return [key for key, count in ranked if count > 1]


def _chart(number: int, key: Key, runs: Sequence[Subject], moves: Sequence[BaselineMove]) -> Chart | None:
    metric, case = key
    at: list[float] = []
    value: list[float] = []
    low: list[float | None] = []
    high: list[float | None] = []
    unit, definition = "", ""
    for place, run in enumerate(runs, start=1):
        one = _measurement(run.measured, case)
        series = None if one is None else series_of(one, (metric,))
        if one is None or series is None or one.invalid:
            continue
        found = figure(series, one).estimate
        if found.value is None:
            continue
        scale, unit = scale_of(series.unit)
        definition = definition or read_out(series.definition)
        at.append(float(place))
        value.append(scale * found.value)
        low.append(None if found.low is None else scale * found.low)
        high.append(None if found.high is None else scale * found.high)
    if not value:
        return None
    name = f"{title_of(metric)}, {case_words(case)}"
    line = Trace(name=name, x=tuple(at), y=tuple(value), low=tuple(low), high=tuple(high), style="points")
    meant = _meant(key, runs, moves)
    return Chart(
        name=f"trend-{number}",
        title=name,
        told=f"{len(at)} runs, oldest first: from {rounded(value[0])} to {rounded(value[-1])} {unit}, lowest "
        f"{rounded(min(value))}, highest {rounded(max(value))}. The table of runs has every number.",
        definition=f"{definition}. Bars: 95 % intervals, where samples are enough for one. Only runs that are "
        "measurements; places are those of the table of runs. Circumstances may differ from run to "
        "run: a trend is no comparison.",
        x_label="run, oldest first",
        y_label=unit or "value",
        traces=(line, *meant),
        y_from_zero=False,
    )


def _measurement(measured: MeasurementSet, case: tuple[Fact, ...]) -> Measurement | None:
    return next((one for one in measured.measurements if one.case == case), None)


def _meant(key: Key, runs: Sequence[Subject], moves: Sequence[BaselineMove]) -> tuple[Trace, ...]:
    """What each baseline said about this figure while these runs were made: a line that steps at every move."""
    found = []
    for name in dict.fromkeys(move.name for move in moves):
        own = [move for move in moves if move.name == name]
        x: list[float] = []
        y: list[float] = []
        for place, run in enumerate(runs, start=1):
            when = run.measured.created_unix_s
            move = None if when is None else next((one for one in reversed(own) if one.since_unix_s <= when), None)
            value = None if move is None else _value(move, key, one_load=_is_one_load(key, runs))
            if value is not None:
                x.append(float(place))
                y.append(value)
        if x:
            found.append(Trace(name=f"baseline {name}", x=tuple(x), y=tuple(y), style="step"))
    return tuple(found[:3])


def _is_one_load(key: Key, runs: Sequence[Subject]) -> bool:
    """Whether the side has this one load in all runs: only then a number without a load can be meant for it."""
    metric, case = key
    side = fact_of(case, "side")
    measurements = (one for run in runs for one in run.measured.measurements)
    return all(
        one.case == case
        for one in measurements
        if fact_of(one.case, "side") == side and series_of(one, (metric,)) is not None
    )


def _value(move: BaselineMove, key: Key, *, one_load: bool) -> float | None:
    metric, case = key
    known = metric_of(metric)
    scale = 1.0 if known is None else scale_of(known.unit)[0]
    typed = dict(move.numbers).get(metric)
    if typed is not None:
        return scale * typed if (_is_of(move.load, case) if move.load else one_load) else None
    one = None if move.measured is None else _measurement(move.measured, case)
    series = None if one is None else series_of(one, (metric,))
    if one is None or series is None:
        return None
    found = figure(series, one).estimate.value
    return None if found is None else scale * found


def _numbers_words(move: BaselineMove) -> str:
    told = ", ".join(f"{metric} = {value:g}" for metric, value in move.numbers)
    return f"{told} at {case_words(move.load)}" if move.load else told


def _is_of(load: tuple[Fact, ...], case: tuple[Fact, ...]) -> bool:
    """Whether a number that was typed for a load is of this one; without a word on the side, of the drafter's."""
    side = fact_of(load, "side") or PREFERRED["side"]
    return set(load) <= set(case) and fact_of(case, "side") in (None, side)


def _moves(moves: Sequence[BaselineMove]) -> Table:
    rows = tuple(
        (
            move.name,
            moment(move.since_unix_s),
            move.run_id or _numbers_words(move) or UNKNOWN,
            move.note,
        )
        for move in reversed(moves)
    )
    return Table(
        caption=f"Baseline moves, newest first ({len(rows)})",
        head=("baseline", "since", "means", "note"),
        rows=rows,
        folded=len(rows) > 12,
    )
