"""Rows of one configuration -> one measurement: a row is a repeat; a circumstance that varies in the file is a case.

What a tool does not tell stands as a fact without a value, so that a comparison says what it could not check.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.compare.bench_facts import DRAFT_ARGUMENTS, HARD_ARGUMENTS
from orchestrator.errors import InvalidRunError
from orchestrator.importers.source import Row, Source, in_words
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series

HARD = (
    *HARD_ARGUMENTS,
    *DRAFT_ARGUMENTS,
    *("gpu", "dataset", "prompts_sha256", "prompts", "temperature", "top_p", "top_k", "max_new_tokens", "ignore_eos"),
    *("simulated_acceptance", "cache_policy"),
)
_IN_WORDS = {
    "gpu": "the GPU",
    "target": "the target model",
    "draft": "the draft model",
    "prompts_sha256": "which prompts",
    "temperature": "the temperature",
    "cache_policy": "whether the prefix cache was flushed",
    "simulated_acceptance": "whether acceptance was simulated",
}
_SECRET = re.compile(r"key|secret|password|passwd|credential|auth|(?:hf|access|api)_token", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number of one row."""

    metric: str
    unit: str
    definition: str
    value: float
    is_last: bool = False
    """Runs on over the rows of a file, e.g. since the server's start: only the last one stands, without its samples."""
    n: int | None = None
    """Of a summary: what stood behind it."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """What one row tells."""

    row: Row
    case: Mapping[str, str | None]
    figures: Sequence[Figure]
    hard: Mapping[str, str | None] = field(default_factory=dict)
    soft: Mapping[str, str | None] = field(default_factory=dict)
    arguments: Mapping[str, str | None] = field(default_factory=dict)
    invalid: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


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


def assembled(source: Source, origin: Origin, points: Sequence[Point]) -> MeasurementSet:
    """The set of a file. Raises InvalidRunError where no row has a figure."""
    # The same file is the same run: the tool, the day where it is known, the hash of the content.
    run_id = "-".join(part for part in (origin.kind, origin.date, source.sha256[:12]) if part)
    told = [point for point in points if point.figures]
    if not told:
        raise InvalidRunError(f"{source.name}: expected figures of {origin.tool}, found none in {len(points)} results")
    groups: dict[tuple[tuple[str, str | None], ...], list[Point]] = {}
    for point in told:
        groups.setdefault(tuple({**point.case, **_whole(point, origin)}.items()), []).append(point)
    varied = _varied([dict(key) for key in groups], set(told[0].case))
    found = tuple(_measurement(run_id, dict(key), some, varied) for key, some in groups.items())
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
        unknown=(*origin.unknown, *_unknown(found)),
    )


def arguments_of(told: Mapping[str, object]) -> dict[str, str | None]:
    """The scalar arguments that a server told, without anything that is or may be a secret."""
    kept = {name: value for name, value in told.items() if not _SECRET.search(name)}
    return {name: in_words(kept[name]) for name in sorted(kept) if not isinstance(kept[name], list | dict)}


def hard_of(arguments: Mapping[str, str | None]) -> dict[str, str | None]:
    """Hard facts that a server's arguments tell; nothing where it told none."""
    if not arguments:
        return {}
    found = {name: arguments.get(key) for name, key in HARD_ARGUMENTS.items()}
    plain = arguments.get("speculative_algorithm") is None
    found |= {name: "none" if plain else arguments.get(key) for name, key in DRAFT_ARGUMENTS.items()}
    for name in ("quantization", "draft_quantization"):
        found[name] = found[name] or "none"
    return found


def _whole(point: Point, origin: Origin) -> dict[str, str | None]:
    """Every hard circumstance, told or not, but those of the case."""
    hard = {name: point.hard.get(name) for name in (*HARD, *point.hard) if name not in point.case}
    return {**hard, "harness": origin.tool}


def _varied(keys: Sequence[Mapping[str, str | None]], case: set[str]) -> list[str]:
    """Circumstances that are no part of the case and differ in one file."""
    names = dict.fromkeys(name for key in keys for name in key if name not in case)
    return [name for name in names if len({key.get(name) for key in keys}) > 1]


def _measurement(
    run_id: str, key: dict[str, str | None], points: Sequence[Point], varied: Sequence[str]
) -> Measurement:
    case = {**points[0].case, **{name: key.get(name) for name in varied}}
    last = points[-1]
    return Measurement(
        case=_facts({name: value for name, value in case.items() if value is not None}),
        series=_series(run_id, points),
        hard=_facts({name: value for name, value in key.items() if name not in points[0].case}),
        soft=_facts(last.soft),
        arguments=_facts(last.arguments),
        invalid=tuple(dict.fromkeys(text for point in points for text in point.invalid)),
        warnings=tuple(dict.fromkeys(text for point in points for text in point.warnings)),
    )


def _series(run_id: str, points: Sequence[Point]) -> tuple[Series, ...]:
    by_name: dict[tuple[str, str, str], list[tuple[str, Figure]]] = {}
    for point in points:
        for item in point.figures:
            key = f"{run_id}/{point.row.number}"
            by_name.setdefault((item.metric, item.unit, item.definition), []).append((key, item))
    found: dict[str, Series] = {}
    for (metric, unit, definition), values in by_name.items():
        last = values[-1][1]
        keys, items = zip(*values, strict=True)
        found.setdefault(
            metric,
            Series(
                metric=metric,
                unit=unit,
                definition=definition,
                level="summary" if last.is_last else "run",
                keys=() if last.is_last else keys,
                y=(last.value,) if last.is_last else tuple(item.value for item in items),
                n=last.n,
            ),
        )
    return tuple(found.values())


def _facts(values: Mapping[str, str | None]) -> tuple[Fact, ...]:
    return tuple(Fact(name=name, value=value) for name, value in values.items())


def _unknown(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """A sentence on each hard circumstance that some measurement does not tell."""
    names = dict.fromkeys(fact.name for one in measurements for fact in one.hard if fact.value is None)
    return tuple(f"the file does not tell {_IN_WORDS.get(name, f'`{name}`')}" for name in names)
