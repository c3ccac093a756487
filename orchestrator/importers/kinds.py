"""Which tool wrote a file, seen from its content, and its measurements."""

import datetime
import itertools
from collections.abc import Iterator

from orchestrator.errors import InvalidRunError, UsageError
from orchestrator.importers import (
    aiperf,
    sglang_batch,
    sglang_grid,
    sglang_log,
    sglang_serving,
    specforge,
    vllm_serving,
)
from orchestrator.importers.assembly import Origin, assembled
from orchestrator.importers.kind import Kind
from orchestrator.importers.point import Point
from orchestrator.importers.row import Row
from orchestrator.importers.source import Source
from orchestrator.records.measurement import MeasurementSet

JSON_KINDS = {
    kind.name: kind
    for kind in (
        sglang_serving.KIND,
        sglang_batch.KIND,
        sglang_grid.KIND,
        vllm_serving.KIND,
        specforge.BENCH_KIND,
        specforge.COMMAND_KIND,
        aiperf.KIND,
    )
}
KINDS = (*JSON_KINDS, sglang_log.KIND)


def measured(source: Source, kind: str | None = None) -> MeasurementSet:
    """The measurements of a file, of the kind it is said to be or the one it is seen to be.

    Raises UsageError for an unknown kind, InvalidRunError naming file and line where the file is none of that kind.
    """
    if kind is not None and kind not in KINDS:
        raise UsageError(f"expected one of {', '.join(KINDS)}, found: {kind!r}")
    if kind == sglang_log.KIND or (kind is None and not source.is_json and sglang_log.fits(source)):
        return sglang_log.measured(source)
    rows = iter(source.rows())
    first = next(rows, None)
    if first is None:
        raise InvalidRunError(f"{source.name}: expected results, found none")
    return _measured(source, JSON_KINDS[kind] if kind else _guess(first), itertools.chain([first], rows))


def _guess(row: Row) -> Kind:
    for kind in JSON_KINDS.values():
        if kind.fits(row):
            return kind
    raise InvalidRunError(
        f"{row.where}: this is no result file that is known here",
        hint=f"known are: {', '.join(KINDS)}; --kind says which it is",
    )


def _measured(source: Source, kind: Kind, rows: Iterator[Row]) -> MeasurementSet:
    """Row by row, so that only what was read of each stays."""
    points: list[Point] = []
    seen: set[bytes] = set()
    left_out: dict[str, None] = {}
    copies, when = 0, None
    for row in rows:
        if not kind.fits(row):
            other = next((item.words for item in JSON_KINDS.values() if item.fits(row)), "something else")
            raise InvalidRunError(f"{row.where}: expected a result of {kind.words}, found: {other}")
        if (reason := kind.passed_over(row)) is not None:
            left_out[reason] = None
            continue
        if row.digest in seen:
            copies += 1
            continue
        seen.add(row.digest)
        when = when or kind.when(row)
        points += kind.points(row)
    unknown = (*kind.unknown, *left_out)
    if copies:
        unknown += (f"{copies} results stand there twice; a copy is no repeat and was left out",)
    if when is not None and when.tzinfo is None:
        unknown += ("the time zone of its date: taken as UTC",)
    origin = Origin(
        kind=kind.name,
        tool=kind.words,
        unknown=unknown,
        created_unix_s=None if when is None else _as_utc(when).timestamp(),
        date="" if when is None else _as_utc(when).strftime("%Y%m%d"),
    )
    return assembled(source, origin, points)


def _as_utc(moment: datetime.datetime) -> datetime.datetime:
    known = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
    return known.astimezone(datetime.UTC)
