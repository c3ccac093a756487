"""TOML -> job: the job file, overlaid by eagle3.toml, a job file of the user's own, and flags.

Every value keeps its source, so that a result can say what was used and where it came from.
"""

import dataclasses
import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orchestrator
from orchestrator.config import Config, read_toml
from orchestrator.errors import JobFileError
from remote_payload.schema import JOB_KINDS, Job, SchemaError, Setting
from remote_payload.schema.record import from_value

MAX_DIGITS = 6
"""Of a layer's number: far more than any model has, far less than Python refuses to read."""


@dataclass(frozen=True, kw_only=True)
class PlannedJob:
    """A job and where each of its settings came from."""

    job: Job
    settings: tuple[Setting, ...]


def bundled_folder() -> Path:
    """The job files that come with the tool: inside an installed copy, beside the packages in a checkout."""
    package = Path(orchestrator.__file__).parent
    installed = package / "jobs"
    return installed if installed.is_dir() else package.parent / "jobs"


def plan(kind: str, config: Config, own_file: Path | None, flags: Mapping[str, object]) -> PlannedJob:
    """Overlay the layers and check the result. Raises JobFileError naming the source, the key and what is allowed."""
    bundled = bundled_folder() / f"{kind}.toml"
    layers: list[tuple[str, Mapping[str, Any]]] = [(f"jobs/{kind}.toml", _read(bundled, kind))]
    if kind in config.jobs:
        layers.append((f"{config.path} [jobs.{kind}]", config.jobs[kind]))
    if own_file is not None:
        layers.append((str(own_file), _read(own_file, kind)))
    layers.append(("flag", {key: value for key, value in flags.items() if value is not None}))
    _refuse_unknown_kinds(config)
    return _overlay(kind, layers)


def parse_states(text: object, source: str) -> list[int]:
    """`0,2,4,5` or `embed,2,4,5` (or a TOML list of the same) -> HF hidden_states indices; `embed` is 0."""
    items = text.split(",") if isinstance(text, str) else text
    if not isinstance(items, list) or not items:
        raise JobFileError(f"{source}: `states` must be a list like `0,2,4,5` or `embed,2,4,5`, found: {text!r}")
    states = []
    for item in items:
        word = str(item).strip()
        if word == "embed":
            states.append(0)
        elif word.isascii() and word.isdigit() and len(word) <= MAX_DIGITS:
            states.append(int(word))
        else:
            raise JobFileError(
                f"{source}: each of `states` must be a hidden_states index (0 = embedding output, i = output of "
                f"layer i-1) or `embed`, found: {word[:40]!r}"
            )
    return states


def _read(path: Path, kind: str) -> dict[str, Any]:
    raw = read_toml(path, JobFileError)
    found = raw.pop("kind", None)
    if found != kind:
        raise JobFileError(f"{path}: `kind` must be {kind!r}, found: {found!r}")
    return raw


def _refuse_unknown_kinds(config: Config) -> None:
    for kind in config.jobs:
        if kind not in JOB_KINDS:
            raise JobFileError(f"{config.path}: unknown table [jobs.{kind}]; allowed: {', '.join(JOB_KINDS)}")


def _overlay(kind: str, layers: list[tuple[str, Mapping[str, Any]]]) -> PlannedJob:
    record = JOB_KINDS[kind]
    allowed = [field.name for field in dataclasses.fields(record) if field.name != "kind"]
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for source, layer in layers:
        for key, value in layer.items():
            origin = f"--{key.replace('_', '-')}" if source == "flag" else source
            _check_key(key, allowed, origin)
            values[key] = parse_states(value, origin) if key == "states" else value
            sources[key] = origin
    try:
        job = from_value(record, {"kind": kind, **values})
    except SchemaError as error:
        raise JobFileError(_explain(str(error), sources)) from None
    return PlannedJob(job=job, settings=_settings(job, allowed, sources))


def _check_key(key: str, allowed: list[str], source: str) -> None:
    if key in allowed:
        return
    close = difflib.get_close_matches(key, allowed, n=1)
    guess = f" (did you mean `{close[0]}`?)" if close else ""
    raise JobFileError(f"{source}: unknown key `{key}`{guess}; allowed: {', '.join(allowed)}")


def _explain(message: str, sources: Mapping[str, str]) -> str:
    """`$.steps: expected int, ...` -> the same with the source in front; a missing key says which flag sets it."""
    path, _, rest = message.removeprefix("$").partition(": ")
    key = path.lstrip(".").split("[")[0].split(".")[0]
    if rest.startswith("missing key"):
        return f"`{key}` is not set; give --{key.replace('_', '-')} or set it in eagle3.toml or a job file"
    if key:
        return f"{sources.get(key, 'job')}: `{key}`: {rest}"
    named = next((name for name in sources if f"`{name}`" in rest), None)
    return f"{sources[named]}: {rest}" if named else rest


def _settings(job: Job, allowed: list[str], sources: Mapping[str, str]) -> tuple[Setting, ...]:
    return tuple(
        Setting(key=key, value=json.dumps(getattr(job, key)), source=sources.get(key, "default")) for key in allowed
    )
