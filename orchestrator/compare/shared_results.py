"""Results of other tools that several runs hold: files that are appended to have their earlier results again.

Such a result counts once: as repeats of several runs the same numbers would pass for several starts of a server that
agree. It stays with the run that holds most, so a file that has grown stands for all that it was before. Not covered:
imports of a version that kept no identity of results, and figures without repeats, which are never put together.
"""

import dataclasses
from collections.abc import Iterator, Sequence

from orchestrator.compare.counted import counted
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series

_NAMED = 3
Place = tuple[int, int]
"""Of a measurement: its set, and where it stands there."""


def each_result_once(sets: Sequence[MeasurementSet]) -> tuple[MeasurementSet, ...]:
    """The sets with each result of a load in one of them alone; a load of which nothing is left is left out."""
    again = _again(sets)
    if not again:
        return tuple(sets)
    return tuple(
        dataclasses.replace(
            one,
            measurements=tuple(
                left
                for index, item in enumerate(one.measurements)
                if (left := _without(item, set(again.get((number, index), {})))) is not None
            ),
        )
        for number, one in enumerate(sets)
    )


def shared_within(sets: Sequence[MeasurementSet]) -> tuple[str, ...]:
    """What `each_result_once` leaves out, a sentence a pair of runs; of many the first ones with their count."""
    pairs: dict[tuple[str, str], set[str]] = {}
    for (number, _), results in _again(sets).items():
        for result, holder in results.items():
            pairs.setdefault((sets[number].run_id, holder), set()).add(result)
    return _few(
        [f"{_stand(len(shared), run)} in {holder} as well: counted once" for (run, holder), shared in pairs.items()]
    )


def on_both_sides(ours: Sequence[MeasurementSet], theirs: Sequence[MeasurementSet]) -> tuple[str, ...]:
    """Results that runs of both sides hold, but for the runs that are themselves on both."""
    both = {one.run_id for one in ours} & {one.run_id for one in theirs}
    holders = {key: one.run_id for one in ours if one.run_id not in both for key in _keys(one)}
    pairs: dict[tuple[str, str], int] = {}
    for one in theirs:
        for key in _keys(one):
            if one.run_id not in both and key in holders:
                pair = (one.run_id, holders[key])
                pairs[pair] = pairs.get(pair, 0) + 1
    return _few(
        [
            f"{_stand(count, run)} in {holder}, on the other side, as well: the sides are not independent, and differ "
            "less than they would"
            for (run, holder), count in pairs.items()
        ]
    )


def _again(sets: Sequence[MeasurementSet]) -> dict[Place, dict[str, str]]:
    """By measurement its results that count elsewhere, each with the run where it does."""
    loads: dict[tuple[Fact, ...], list[Place]] = {}
    for number, one in enumerate(sets):
        for index, item in enumerate(one.measurements):
            if item.results:
                loads.setdefault(item.case, []).append((number, index))
    found: dict[Place, dict[str, str]] = {}
    for places in loads.values():
        held: dict[str, str] = {}
        for number, index in sorted(places, key=lambda at: -len(sets[at[0]].measurements[at[1]].results)):
            own = {result.sha256 for result in sets[number].measurements[index].results}
            if shared := {result: held[result] for result in sorted(own & held.keys())}:
                found[number, index] = shared
            held |= dict.fromkeys(own - held.keys(), sets[number].run_id)
    return found


def _without(one: Measurement, again: set[str]) -> Measurement | None:
    """The measurement without these results; None where none of its own is left."""
    if not again:
        return one
    kept = tuple(result for result in one.results if result.sha256 not in again)
    if not kept:
        return None
    gone = {result.key for result in one.results if result.sha256 in again}
    series = tuple(left for item in one.series if (left := _rows_but(item, gone)) is not None)
    return dataclasses.replace(one, series=series, results=kept)


def _rows_but(series: Series, gone: set[str]) -> Series | None:
    if series.level != "run":
        return series
    rows = [index for index, key in enumerate(series.keys) if key not in gone]
    if not rows:
        return None
    return dataclasses.replace(
        series,
        keys=tuple(series.keys[index] for index in rows),
        clusters=tuple(series.clusters[index] for index in rows) if series.clusters else (),
        y=tuple(series.y[index] for index in rows),
    )


def _keys(one: MeasurementSet) -> Iterator[tuple[tuple[Fact, ...], str]]:
    return ((item.case, result.sha256) for item in one.measurements for result in item.results)


def _stand(count: int, run: str) -> str:
    return f"{counted(count, 'result')} of {run} {'stands' if count == 1 else 'stand'}"


def _few(texts: list[str]) -> tuple[str, ...]:
    return (*texts[:_NAMED], *([f"and {len(texts) - _NAMED} more such pairs of runs"] if len(texts) > _NAMED else []))
