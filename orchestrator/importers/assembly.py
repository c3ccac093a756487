"""Rows of one configuration -> one measurement: a row is a repeat; a circumstance that varies in the file is a case.

Rows are repeats of one another only if everything that the file tells of server, load and prompts is alike; what it
does not tell stands as a fact without a value, so that a comparison says what it could not check.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.compare.fingerprint import SERVED
from orchestrator.compare.possible import impossible_figures
from orchestrator.errors import InvalidRunError
from orchestrator.importers.point import Figure, Point
from orchestrator.importers.row import once
from orchestrator.importers.served_by import server_of
from orchestrator.importers.source import Source
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Result, Series

HARD = (*(name for name in SERVED if name != "harness"), "failed_requests")
"""What each measurement tells, or says that the file does not."""
_IN_WORDS = {
    "gpu": "the GPU",
    "target": "the target model",
    "draft": "the draft model",
    "target_weights": "the target's weights",
    "draft_weights": "the drafter's weights",
    "prompts_sha256": "which prompts",
    "temperature": "the temperature",
    "cache_policy": "whether the prefix cache was flushed",
    "simulated_acceptance": "whether acceptance was simulated",
    "failed_requests": "how many requests were sent (lost ones cannot be seen)",
}


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Which tool, and when."""

    kind: str
    tool: str
    """Also the harness: figures of two tools are no pair."""
    created_unix_s: float | None = None
    date: str = ""
    """YYYYMMDD, as the tool tells it."""
    unknown: tuple[str, ...] = ()


Key = tuple[tuple[str, str], ...]


def assembled(source: Source, origin: Origin, points: Sequence[Point], run_id: str = "") -> MeasurementSet:
    """The set of a file, under `run_id` or one of its own. Raises InvalidRunError where no row has a figure."""
    # The same file is the same run: the tool, the day, the hash of the content.
    run_id = run_id or "-".join(part for part in (origin.kind, origin.date or source.day, source.sha256[:12]) if part)
    told = [point for point in points if point.figures]
    if not told:
        raise InvalidRunError(f"{source.name}: expected figures of {origin.tool}, found none in {len(points)} results")
    groups: dict[Key, list[tuple[str, Point]]] = {}
    for number, point in enumerate(told, 1):
        groups.setdefault(_key(point, origin), []).append((f"{run_id}/{number}", point))
    varied = _telling([dict(key) for key in groups], set(told[0].case))
    found = tuple(_measurement(dict(key), some, varied) for key, some in groups.items())
    unknown = origin.unknown
    if not origin.date:
        unknown += ("when it was measured" + ("; the day in its id is that of the file" if source.day else ""),)
    if len(told) < len(points):
        unknown += (f"{len(points) - len(told)} of {len(points)} results tell no figure and were left out",)
    return MeasurementSet(
        run_id=run_id,
        origin="imported",
        tool=origin.tool,
        job_kind="imported",
        label=source.label,
        created_unix_s=origin.created_unix_s,
        source=source.name,
        source_sha256=source.sha256,
        measurements=found,
        unknown=(*unknown, *_unknown(found)),
    )


def _key(point: Point, origin: Origin) -> Key:
    """Everything by which rows are told apart: the case, every hard circumstance, the server, the tool."""
    hard = {name: point.hard.get(name) for name in (*HARD, *point.hard) if name not in point.case}
    hard |= {"failed_requests": None if point.lost is None else str(point.lost), "harness": origin.tool}
    more = {**point.soft, **server_of(point.arguments)}
    if point.lost is None and point.answered is not None:
        more["answered_requests"] = str(point.answered)  # fewer may be lost ones
    told = {**more, **hard, **point.case}
    return tuple((name, value) for name, value in sorted(told.items()) if value is not None)  # null is as absent


def _telling(keys: Sequence[Mapping[str, str]], case: set[str]) -> list[str]:
    """The fewest circumstances, hard ones first, that with those of the case tell these groups apart."""
    names = [name for name in dict.fromkeys((*HARD, *(name for key in keys for name in key))) if name not in case]
    chosen: list[str] = []
    parts = len({tuple(key.get(name) for name in sorted(case)) for key in keys})
    for name in names:
        more = len({tuple(key.get(part) for part in (*sorted(case), *chosen, name)) for key in keys})
        if more > parts:
            parts = more
            chosen.append(name)
    return chosen


def _measurement(key: Mapping[str, str], points: Sequence[tuple[str, Point]], varied: Sequence[str]) -> Measurement:
    some = [point for _, point in points]
    case = {**some[0].case, **{name: key.get(name) for name in varied}}
    hard = [name for name in dict.fromkeys((*HARD, *some[0].hard, "harness")) if name not in some[0].case]
    series, warnings = _series(points)
    counts = {**some[-1].counts, "answered_requests": None if (n := some[-1].answered) is None else str(n)}
    found = Measurement(
        case=_facts({name: value for name, value in case.items() if value is not None}),
        series=series,
        hard=_facts({name: key.get(name) for name in hard}),
        soft=_facts({**some[0].soft, **counts}),
        arguments=_facts(some[0].arguments),
        invalid=once(text for point in some for text in (*_lost(point), *point.invalid, *point.doubts.invalid)),
        warnings=once(
            (
                *(text for point in some for text in (*point.warnings, *point.doubts.warnings)),
                *warnings,
                *_as_repeats(some),
            )
        ),
        results=tuple(Result(key=at, sha256=point.place.digest.hex()) for at, point in points if point.place.digest),
    )
    return dataclasses.replace(found, invalid=(*found.invalid, *impossible_figures(found)))


def _series(points: Sequence[tuple[str, Point]]) -> tuple[tuple[Series, ...], list[str]]:
    """The series, and what is to be said of those that not every row tells."""
    starts = _starts(points)
    by_name: dict[tuple[str, str, str], list[tuple[str, Figure]]] = {}
    for key, point in points:
        for item in point.figures:
            by_name.setdefault((item.metric, item.unit, item.definition), []).append((key, item))
    found: dict[str, Series] = {}
    fewer: dict[int, list[str]] = {}
    for (metric, unit, definition), values in by_name.items():
        last = values[-1][1]
        keys, items = zip(*values, strict=True)
        if len(values) < len(points) and not last.is_last:
            fewer.setdefault(len(values), []).append(metric)
        found.setdefault(
            metric,
            Series(
                metric=metric,
                unit=unit,
                definition=definition,
                level="summary" if last.is_last else "run",
                keys=() if last.is_last else keys,
                clusters=() if last.is_last or not starts else tuple(starts[key] for key in keys),
                y=(last.value,) if last.is_last else tuple(item.value for item in items),
                n=last.n,
            ),
        )
    told = [f"only {n} of {len(points)} repeats tell {', '.join(names)}" for n, names in fewer.items()]
    return tuple(found.values()), told


def _starts(points: Sequence[tuple[str, Point]]) -> dict[str, str]:
    """The server's start of each key, numbered as they come; empty where one does not tell it."""
    told = [point.start for _, point in points]
    names = dict.fromkeys(told)
    if None in names or (len(names) == 1 and str(told[0]).startswith("seed")):
        return {}
    numbers = {name: number for number, name in enumerate(names)}
    return {key: f"{key.rpartition('/')[0]}/start {numbers[point.start]}" for key, point in points}


def _lost(point: Point) -> tuple[str, ...]:
    if point.lost is not None and point.lost > 0:
        return (f"{point.lost} of {point.asked} requests were not answered ({point.place.where})",)
    return (f"no request was answered ({point.place.where})",) if point.answered == 0 else ()


def _as_repeats(points: Sequence[Point]) -> list[str]:
    """What is to be said of rows that are taken for repeats, and of numbers that are none."""
    found = [
        f"no figure of {', '.join(f'`{name}`' for name in point.place.no_numbers)}: not a number ({point.place.where})"
        for point in points
        if point.place.no_numbers
    ]
    if len(points) == 1:
        return found
    if points[0].hard.get("target") is None and not points[0].arguments:
        found.append(f"its {len(points)} results count as repeats on one server and model: the file tells neither")
    for name in points[0].counts:
        values = dict.fromkeys(value for point in points if (value := point.counts.get(name)) is not None)
        if len(values) > 1:
            found.append(f"{name.replace('_', ' ')} are not alike in its repeats: {', '.join(list(values)[:4])}")
    return found


def _facts(values: Mapping[str, str | None]) -> tuple[Fact, ...]:
    return tuple(Fact(name=name, value=value) for name, value in values.items())


def _unknown(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """The hard circumstances that some measurement does not tell, those with a word of their own first."""
    names = list(dict.fromkeys(fact.name for one in measurements for fact in one.hard if fact.value is None))
    worded = [_IN_WORDS[name] for name in names if name in _IN_WORDS]
    others = [f"`{name}`" for name in names if name not in _IN_WORDS]
    return tuple(f"the file does not tell {', '.join(some)}" for some in (worded, others) if some)
