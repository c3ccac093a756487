"""Grid, zip and explicit points -> combinations of settings, each either a job or skipped with its reason.

A combination is a configuration at one load. It is skipped where a constraint does not hold, where the job's own check
refuses it (the one that `run` makes: a tree that cannot be, a number out of range), or where it is the same as another
once its derived values are in, and its algorithm and a chain's draft tokens are as SGLang has them.
"""

import dataclasses
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import JobFileError
from orchestrator.jobfile import check_key, parsed
from orchestrator.secret_settings import require_no_secret
from orchestrator.sweep.chains import as_called, as_served
from orchestrator.sweep.file import SweepFile
from remote_payload.schema import JOB_KINDS, SchemaError, SkippedPoint, SweepPoint, UnitJob
from remote_payload.schema.record import from_value

LOADS = ("concurrency", "request_rate")
"""Of a served benchmark: all loads of one configuration share its server's start."""
SPECULATION = ("draft", "algorithm", "num_steps", "eagle_topk", "num_draft_tokens", "draft_quantization")
"""What plain decoding has none of."""
ALGORITHM = "EAGLE3"
"""A server of this algorithm and no draft decodes plainly."""
CLIENT = (
    "prompts", "heldout_prompts", "max_prompts", "max_new_tokens", "ignore_eos", "temperature", "sampled", "top_p",
    "top_k", "seed", "requests", "repeats", "attach_url", "api_key_env", *LOADS,
)  # fmt: skip
"""What can differ between points on a server that was up before."""
MOST_POINTS = 100_000


@dataclass(frozen=True, kw_only=True)
class Point:
    """One combination that can be run."""

    changes: Mapping[str, Any]
    """Over the base; of a served benchmark with its one load as a single number."""
    job: UnitJob
    """The whole job of this point alone."""
    is_baseline: bool = False

    @property
    def configuration(self) -> str:
        """What must be alike for two points to share one start, as JSON."""
        return json.dumps(without_loads(self.changes), sort_keys=True)


@dataclass(frozen=True, kw_only=True)
class Expanded:
    """All of them, in the file's order, those of plain decoding first."""

    points: tuple[Point, ...]
    skipped: tuple[SkippedPoint, ...]


def expand(file: SweepFile, base: UnitJob) -> Expanded:
    """Every combination of the file over the base. Raises JobFileError for mistakes that no point is to blame for."""
    _require_known(file, base)
    values = as_json(base)
    points: dict[str, Point] = {}
    skipped: list[SkippedPoint] = []
    _require_few(file, sum(math.prod(map(len, some)) for some in _dimensions(file)) + len(file.points))
    for written in _combinations(file):
        for changes in _with_loads(written, base):
            complete = as_served(_derived(file, changes, values), values)
            _require_one_server(file, complete, values)
            reason = _against(file, {**values, **complete})
            point = None if reason is not None else _point(file, values, complete)
            if isinstance(point, Point) and (twin := points.get(_key(point))) is not None:
                point = _twice(changes, twin)
            if isinstance(point, Point):
                points[_key(point)] = point
            else:
                skipped.append(SkippedPoint(changes_json=json.dumps(changes, default=str), reason=reason or str(point)))
        _require_few(file, len(points) + len(skipped))
    plain = _baselines(file, values, tuple(points.values())) if file.baseline else {}
    both = {**plain, **{key: point for key, point in points.items() if key not in plain}}
    return Expanded(points=tuple(both.values()), skipped=tuple(skipped))


def _dimensions(file: SweepFile) -> list[list[Sequence[Any]]]:
    rows = list(file.zipped.values())[:1]
    return [[*rows, *file.grid.values()]] if rows or file.grid else []


def _require_few(file: SweepFile, count: int) -> None:
    if count > MOST_POINTS:
        raise JobFileError(f"{file.source}: a sweep has at most {MOST_POINTS} combinations, found: {count} or more")


def _twice(written: Mapping[str, Any], twin: Point) -> str:
    if without_loads(written) != without_loads(twin.changes):
        return f"the same as {in_words(without_loads(twin.changes))}"
    load = {key: value for key, value in twin.changes.items() if key in LOADS}
    return f"the file has it more than once{f' at {in_words(load)}' if load else ''}"


def in_words(changes: Mapping[str, Any]) -> str:
    """For people: `num_steps 3, eagle_topk 1, concurrency 4`; what is unset is `-`."""
    return ", ".join(f"{key} {'-' if value is None else value}" for key, value in changes.items()) or "as in the base"


def point_words(point: SweepPoint) -> str:
    """What a point sets; plain decoding by its name."""
    return words_of(json.loads(point.changes_json), is_baseline=point.is_baseline)


def words_of(changes: Mapping[str, Any], *, is_baseline: bool) -> str:
    """The same of settings that are no point yet."""
    if not is_baseline:
        return in_words(changes)
    rest = {key: value for key, value in changes.items() if key not in SPECULATION}
    return f"plain decoding, {in_words(rest)}" if rest else "plain decoding"


def without_loads(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration alone."""
    return {key: value for key, value in changes.items() if key not in LOADS}


def as_json(job: UnitJob) -> dict[str, Any]:
    """The job as JSON has it: lists where it has tuples."""
    value: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(job)))
    return value


def _require_known(file: SweepFile, base: UnitJob) -> None:
    allowed = [field.name for field in dataclasses.fields(base) if field.name != "kind"]
    for name, tables in (("grid", (file.grid,)), ("zip", (file.zipped,)), ("points", file.points)):
        for table in tables:
            for key in table:
                check_key(key, allowed, f"{file.source}: sweep.{name}")
    for at, one in enumerate(file.derive):
        check_key(one.key, allowed, f"{file.source}: sweep.derive[{at}]")
    if getattr(base, "with_baseline", False):
        raise JobFileError(f"{file.source}: a sweep measures plain decoding as points of its own: `sweep.baseline`")


def _require_one_server(file: SweepFile, changes: Mapping[str, Any], base: Mapping[str, Any]) -> None:
    """Of a served point: one load, and nothing asked of an attached server that it cannot be any more."""
    if base["kind"] != "bench":
        return
    loads = [key for key in LOADS if key in changes]
    if len(loads) > 1:
        raise JobFileError(
            f"{file.source}: a point has one load, {in_words(changes)} has both: let [[sweep.derive]] set "
            f"`{loads[0]}` only where `{loads[1]}` is not varied"
        )
    if {**base, **changes}["attach_url"] is None:
        return
    if file.baseline or (fixed := sorted(changes.keys() - {*CLIENT})):
        what = "`sweep.baseline` must be false" if file.baseline else f"`{fixed[0]}` cannot be varied"
        raise JobFileError(f"{file.source}: a server that is attached to stays as it was started: {what}")


def _combinations(file: SweepFile) -> Iterator[dict[str, Any]]:
    rows = [dict(zip(file.zipped, row, strict=True)) for row in zip(*file.zipped.values(), strict=True)]
    if file.grid or rows:
        for together in rows or [{}]:
            for values in itertools.product(*file.grid.values()):
                yield {**together, **dict(zip(file.grid, values, strict=True))}
    for point in file.points:
        yield dict(point)


def _with_loads(changes: dict[str, Any], base: UnitJob) -> Iterator[dict[str, Any]]:
    """A served benchmark's configuration at each of its loads: its own one, or all of the base's."""
    if base.kind != "bench":
        yield changes
        return
    own = [key for key in LOADS if key in changes]
    if own:
        for key in own:
            values = changes[key] if isinstance(changes[key], list) else [changes[key]]
            for value in values:
                yield {**{name: item for name, item in changes.items() if name not in LOADS}, key: value}
        return
    for key in LOADS:
        for value in getattr(base, key):
            yield {**changes, key: value}


def _derived(file: SweepFile, changes: dict[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(changes)
    for one in file.derive:
        settings = {**base, **found}
        if one.when is None or one.when.value(settings):
            found[one.key] = one.to.value(settings)
    return found


def _against(file: SweepFile, settings: Mapping[str, Any]) -> str | None:
    """The first constraint that does not hold, in words."""
    for one in file.constraints:
        if not one.require.value(settings):
            told = f"`{one.require.text}` does not hold"
            return f"{one.because} ({told})" if one.because else told
    return None


def _point(
    file: SweepFile, base: Mapping[str, Any], changes: Mapping[str, Any], *, is_baseline: bool = False
) -> Point | str:
    """The point, or why there is none."""
    ordered = {**without_loads(changes), **{key: changes[key] for key in LOADS if key in changes}}
    read = {key: parsed(key, value, f"{file.source}: sweep") for key, value in ordered.items()}
    value = {**base, **read}
    loads = [key for key in LOADS if key in read]
    if base["kind"] == "bench" and loads:
        value |= {key: [read[key]] if key in loads else [] for key in LOADS}
    try:
        job = from_value(JOB_KINDS[file.job], value)
    except SchemaError as error:
        where, _, said = str(error).partition(": ")
        if where != "$":  # of the wrong type, which no other value makes good
            key = where.removeprefix("$.").partition("[")[0]
            is_whole = said.startswith("expected int") and any(one.key == key for one in file.derive)
            hint = "in [[sweep.derive]] `/` makes a broken number, `//` a whole one" if is_whole else None
            raise JobFileError(f"{file.source}: sweep: `{where.removeprefix('$.')}`: {said}", hint=hint) from None
        return said
    require_no_secret(job, dict.fromkeys(read, file.source))
    return Point(changes=read, job=job, is_baseline=is_baseline)


def _baselines(file: SweepFile, base: Mapping[str, Any], points: tuple[Point, ...]) -> dict[str, Point]:
    """Plain decoding under every circumstance that the points have, speculation aside."""
    found: dict[str, Point] = {}
    for point in points:
        changes = {key: value for key, value in point.changes.items() if key not in SPECULATION}
        plain: dict[str, Any] = {key: None for key in SPECULATION if key != "algorithm" and base[key] is not None}
        if base["algorithm"] != ALGORITHM:
            plain["algorithm"] = ALGORITHM
        made = _point(file, base, {**plain, **changes}, is_baseline=True)
        if isinstance(made, str) or getattr(made.job, "speculates", True):
            raise JobFileError(
                f"{file.source}: there is no plain decoding of {in_words(point.changes)}: "
                f"{made if isinstance(made, str) else 'its server_args ask for speculation'}",
            )
        found.setdefault(_key(made), made)
    return found


def _key(point: Point) -> str:
    return json.dumps(as_called(dataclasses.asdict(point.job)), sort_keys=True)
