"""A sweep file: TOML with one table `[sweep]`. Every mistake names the file and the key.

[sweep]
job = "bench"                 # what each point is: bench, standalone or selftest
repeats = 3                   # blocks; each measures every point once
blocks = "abab"               # the same order in every block, or "random" with `seed`
[sweep.base]                  # settings that all points share
[sweep.grid]                  # every combination of these
[sweep.zip]                   # these side by side, as one more dimension of the grid
[[sweep.points]]              # points of their own
[[sweep.derive]]              # set = "num_draft_tokens", to = "num_steps + 1", when = "eagle_topk == 1"
[[sweep.constraints]]         # require = "num_draft_tokens <= 32", because = "..."
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from orchestrator.config import read_toml
from orchestrator.errors import JobFileError
from orchestrator.sweep.expressions import Expression
from remote_payload.schema import JOB_KINDS

PLAIN = ("job", "repeats", "blocks", "seed", "baseline", "order", "retries", "stop_after_failures")
TABLES = ("base", "grid", "zip")
LISTS = ("points", "derive", "constraints")
MOST_REPEATS = 1000


@dataclass(frozen=True, kw_only=True)
class Derived:
    """A setting that follows from others, where `when` holds."""

    key: str
    to: Expression
    when: Expression | None


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """What must hold of a point, or it is skipped."""

    require: Expression
    because: str


@dataclass(frozen=True, kw_only=True)
class SweepFile:
    """What the file asks for."""

    source: str
    job: str
    base: Mapping[str, Any]
    grid: Mapping[str, Sequence[Any]]
    zipped: Mapping[str, Sequence[Any]]
    points: tuple[Mapping[str, Any], ...]
    derive: tuple[Derived, ...]
    constraints: tuple[Constraint, ...]
    repeats: int
    blocks: Literal["abab", "random"]
    seed: int
    baseline: bool
    """Whether plain decoding is measured as well; served benchmarks alone have it."""
    order: Literal["cost", "file"]
    retries: int
    stop_after_failures: int | None


def read(path: Path) -> SweepFile:
    """Read one sweep file. Raises JobFileError."""
    raw = read_toml(path, JobFileError)
    if set(raw) != {"sweep"} or not isinstance(raw["sweep"], dict):
        found = ", ".join(f"`{key}`" for key in raw) or "nothing"
        raise JobFileError(f"{path}: expected one table, [sweep], and nothing beside it; found: {found}")
    return from_table(raw["sweep"], str(path))


def from_table(table: dict[str, Any], source: str) -> SweepFile:
    """The table `[sweep]`, wherever it was read; `source` names that in messages. Raises JobFileError."""
    _require_keys(table, (*PLAIN, *TABLES, *LISTS), f"{source}: sweep")
    job = _one_of(table, "job", tuple(JOB_KINDS), None, source)
    for name in TABLES:
        if not isinstance(table.get(name, {}), dict):
            raise JobFileError(f"{source}: `sweep.{name}` must be a table, found: {table[name]!r}")
    for name in LISTS:
        found = table.get(name, [])
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise JobFileError(f"{source}: `sweep.{name}` must be tables, [[sweep.{name}]], found: {found!r}")
    baseline = table.get("baseline", job == "bench")
    if not isinstance(baseline, bool) or (baseline and job != "bench"):
        raise JobFileError(f"{source}: `sweep.baseline` must be true or false, and only bench has one: {baseline!r}")
    made = SweepFile(
        source=source,
        job=job,
        base=table.get("base", {}),
        grid=_lists(table.get("grid", {}), f"{source}: `sweep.grid"),
        zipped=_lists(table.get("zip", {}), f"{source}: `sweep.zip"),
        points=tuple(table.get("points", [])),
        derive=tuple(_derived(one, f"{source}: sweep.derive[{at}]") for at, one in enumerate(table.get("derive", []))),
        constraints=tuple(
            _constraint(one, f"{source}: sweep.constraints[{at}]")
            for at, one in enumerate(table.get("constraints", []))
        ),
        repeats=_whole(table, "repeats", 1, MOST_REPEATS, 1, source),
        blocks="random" if _one_of(table, "blocks", ("abab", "random"), "abab", source) == "random" else "abab",
        seed=_whole(table, "seed", 0, 2**32 - 1, 0, source),
        baseline=baseline,
        order="file" if _one_of(table, "order", ("cost", "file"), "cost", source) == "file" else "cost",
        retries=_whole(table, "retries", 0, 100, 0, source),
        stop_after_failures=_whole(table, "stop_after_failures", 1, 10**6, 1, source)
        if "stop_after_failures" in table
        else None,
    )
    _require_dimensions(made)
    return made


def _require_dimensions(file: SweepFile) -> None:
    if not file.grid and not file.zipped and not file.points:
        raise JobFileError(f"{file.source}: a sweep needs [sweep.grid], [sweep.zip] or [[sweep.points]]; found none")
    lengths = {len(values) for values in file.zipped.values()}
    if len(lengths) > 1:
        told = ", ".join(f"{key}: {len(values)}" for key, values in file.zipped.items())
        raise JobFileError(f"{file.source}: lists of [sweep.zip] must be equally long, found: {told}")
    both = sorted(set(file.grid) & set(file.zipped))
    if both:
        raise JobFileError(f"{file.source}: `{both[0]}` stands in [sweep.grid] and in [sweep.zip]; it can be in one")


def _lists(table: dict[str, Any], where: str) -> dict[str, list[Any]]:
    for key, values in table.items():
        if not isinstance(values, list) or not values:
            raise JobFileError(f"{where}.{key}` must be a list of values, none empty, found: {values!r}")
    return table


def _derived(table: dict[str, Any], where: str) -> Derived:
    _require_keys(table, ("set", "to", "when"), where)
    key = table.get("set")
    if not isinstance(key, str) or "to" not in table:
        raise JobFileError(f'{where}: expected `set` and `to`, e.g. set = "num_draft_tokens", to = "num_steps + 1"')
    to = _expression(table["to"], f"{where}.to")
    return Derived(key=key, to=to, when=_expression(table["when"], f"{where}.when") if "when" in table else None)


def _constraint(table: dict[str, Any], where: str) -> Constraint:
    _require_keys(table, ("require", "because"), where)
    because = table.get("because", "")
    if "require" not in table or not isinstance(because, str):
        raise JobFileError(f"{where}: expected `require`, an expression, and `because`, the reason in words")
    return Constraint(require=_expression(table["require"], f"{where}.require"), because=because)


def _expression(text: object, where: str) -> Expression:
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise JobFileError(f"{where}: expected an expression in quotes, found: {text!r}")
    return Expression(str(text), where)


def _one_of(table: dict[str, Any], key: str, allowed: tuple[str, ...], default: str | None, source: str) -> str:
    found = table.get(key, default)
    if found not in allowed:
        raise JobFileError(f"{source}: `sweep.{key}` must be one of {', '.join(allowed)}, found: {found!r}")
    return str(found)


def _whole(table: dict[str, Any], key: str, least: int, most: int, default: int, source: str) -> int:
    found = table.get(key, default)
    if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
        raise JobFileError(f"{source}: `sweep.{key}` must be a whole number, {least} to {most}, found: {found!r}")
    return found


def _require_keys(table: Mapping[str, Any], allowed: Sequence[str], where: str) -> None:
    for key in table:
        if key not in allowed:
            close = difflib.get_close_matches(key, allowed, n=1)
            guess = f" (did you mean `{close[0]}`?)" if close else ""
            raise JobFileError(f"{where}: unknown key `{key}`{guess}; allowed: {', '.join(allowed)}")
