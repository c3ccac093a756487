"""TOML -> job: the job file, overlaid by eagle3.toml, a job file of the user's own, and flags.

Every value keeps its source, so that a result can say what was used and where it came from.
"""

import dataclasses
import difflib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orchestrator
from orchestrator.config import Config, read_toml
from orchestrator.errors import JobFileError
from orchestrator.flags import flag_of, is_flag, settings_in, with_flags
from orchestrator.secret_settings import require_no_secret
from orchestrator.split_files import require_apart
from remote_payload.schema import JOB_KINDS, Job, SchemaError, Setting
from remote_payload.schema.record import from_value

EXPECT = "expect."
"""What the settings are called that hold expectations: a JSON list of conditions a metric."""
MAX_DIGITS = 6
"""Of a layer's number: far more than any model has, far less than Python refuses to read."""
ADDED = ("server_args", "server_environment")
"""Settings whose flags, a word each, come after the words of the layers below instead of in their place."""
OF_RESUMING = ("kind", "resume", "or_anew")
"""What a job that takes over an earlier one's work does not take from it."""
FOLDERS = ("model", "draft", "target")
"""Settings that a `/` at their end makes no other: `~/target/` is `~/target`, in every list and comparison."""
BUNDLED = "jobs/"
"""How the sources of the tool's own defaults begin."""
UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
MOST_BYTES = 2**63 - 1
"""What a size can be on a host."""
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?) ?([A-Za-z]*)")


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


@dataclass(frozen=True, kw_only=True)
class EarlierRun:
    """A run whose work is taken over, and with it the job it was asked to do."""

    run_id: str
    job_json: str


def plan(
    kind: str,
    config: Config,
    own_file: Path | None,
    flags: Mapping[str, object],
    earlier: EarlierRun | None = None,
    *,
    shared: tuple[str, Mapping[str, Any]] | None = None,
) -> PlannedJob:
    """Overlay the layers and check the result. Raises JobFileError naming the source, the key and what is allowed.

    `shared`: the settings that all points of a sweep have, and where they stand; between the files and the flags.
    """
    bundled = bundled_folder() / f"{kind}.toml"
    layers: list[tuple[str, Mapping[str, Any]]] = [(f"{BUNDLED}{kind}.toml", _read(bundled, kind))]
    if kind in config.jobs:
        layers.append((f"{config.path} [jobs.{kind}]", config.jobs[kind]))
    if earlier is not None:
        asked = json.loads(earlier.job_json)
        layers.append((f"run {earlier.run_id}", {key: asked[key] for key in asked if key not in OF_RESUMING}))
    if own_file is not None:
        layers.append((str(own_file), _read(own_file, kind)))
    if shared is not None:
        layers.append(shared)
    layers.append(("flag", {key: value for key, value in flags.items() if value is not None}))
    _refuse_unknown_kinds(config)
    return _overlay(kind, layers)


def expectations_in(path: Path) -> tuple[Setting, ...]:
    """The `[expect]` of a job file of any kind, as settings. Raises JobFileError."""
    raw = read_toml(path, JobFileError)
    if raw.get("kind") not in JOB_KINDS:
        raise _kind_missing(path, raw.get("kind"), JOB_KINDS)
    found = _expected(raw.get("expect", {}), str(path))
    if not found:
        raise JobFileError(f'{path}: expected a table [expect], e.g. accept_length_pooled = ">= 2.4", found none')
    return found


def expectations_for(kind: str, config: Config) -> tuple[Setting, ...]:
    """The `[jobs.KIND.expect]` of eagle3.toml, as settings; none where it has none. Raises JobFileError."""
    return _expected(config.jobs.get(kind, {}).get("expect", {}), f"{config.path} [jobs.{kind}]")


def _kind_missing(path: Path, found: object, kinds: Collection[str]) -> JobFileError:
    told = "no such line" if found is None else f"kind = {found!r}"
    lines = " or ".join(f'`kind = "{kind}"`' for kind in kinds)
    return JobFileError(
        f"{path}: expected a line that says which job this is, {lines}, found: {told}",
        hint="it stands before the first [table]; a line below one belongs to that table",
    )


def _expected(table: object, source: str, prefix: str = "") -> tuple[Setting, ...]:
    """A setting a metric; `declared.x = ...` is a table within the table, as TOML has it."""
    if not isinstance(table, dict):
        raise JobFileError(f"{source}: `expect` must be a table, METRIC = CONDITION, found: {str(table)[:80]}")
    found: list[Setting] = []
    for key, value in table.items():
        if isinstance(value, dict):
            found += _expected(value, source, f"{prefix}{key}.")
            continue
        conditions = value if isinstance(value, list) else [value]
        if not conditions or not all(isinstance(item, str) for item in conditions):
            raise JobFileError(f"{source}: `expect.{prefix}{key}`: expected a condition, found: {str(value)[:80]}")
        found.append(Setting(key=f"{EXPECT}{prefix}{key}", value=json.dumps(conditions), source=source))
    return tuple(found)


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


def parse_size(text: str, source: str) -> int:
    """`20GiB`, `20 GB`, `512MiB`, `4096B` -> bytes. A number without its unit is refused: 20 bytes are never meant."""
    found = _SIZE.fullmatch(text.strip())
    unit = UNITS.get(found.group(2).upper()) if found else None
    if found is None or unit is None:
        raise JobFileError(
            f"{source}: expected a size with its unit, like `20GiB`, `512MiB` or `16GB`, found: {text[:40]!r}"
        )
    size = int(float(found.group(1)) * unit)
    if size > MOST_BYTES:
        raise JobFileError(f"{source}: no machine has so much: {text[:40]}")
    return size


def _read(path: Path, kind: str) -> dict[str, Any]:
    raw = read_toml(path, JobFileError)
    found = raw.pop("kind", None)
    if found != kind:
        raise _kind_missing(path, found, (kind,))
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
    expected: dict[str, Setting] = {}
    for source, layer in layers:
        for key, value in layer.items():
            if key == "expect":
                expected |= {setting.key: setting for setting in _expected(value, source)}
                continue
            origin = flag_of(key) if source == "flag" else source
            check_key(key, allowed, origin)
            read = parsed(key, value, origin)
            if source == "flag" and key in ADDED and isinstance(read, list) and isinstance(values.get(key), list):
                read, origin = [*values[key], *read], f"{sources[key]}, then {origin}"
            values[key], sources[key] = read, origin
    try:
        job = from_value(record, {"kind": kind, **values})
    except SchemaError as error:
        raise JobFileError(_explain(str(error), allowed, sources)) from None
    require_no_secret(job, sources)
    require_apart(job, sources)
    return PlannedJob(job=job, settings=(*_settings(job, allowed, sources), *expected.values()))


def parsed(key: str, value: object, source: str) -> object:
    """A setting as a job has it: some are written in words of their own. Raises JobFileError."""
    if key in ("states", "trained") and value is not None:
        return parse_states(value, source)
    if key == "max_memory_bytes" and isinstance(value, str):
        return parse_size(value, source)
    if key in FOLDERS and isinstance(value, str):
        return value.rstrip("/") or value
    return value


def check_key(key: str, allowed: list[str], source: str) -> None:
    """Raises JobFileError with the closest name where a job of this kind has no such setting."""
    if key in allowed:
        return
    close = difflib.get_close_matches(key, allowed, n=1)
    guess = f" (did you mean `{close[0]}`?)" if close else ""
    raise JobFileError(f"{source}: unknown key `{key}`{guess}; allowed: {', '.join(allowed)}")


def _explain(message: str, allowed: list[str], sources: Mapping[str, str]) -> str:
    """`$.steps: expected int, ...` -> the same with the source in front; a missing key says which flag sets it.

    What no file of the user's has set is called by its flag.
    """
    path, _, rest = message.removeprefix("$").partition(": ")
    key = path.lstrip(".").split("[")[0].split(".")[0]
    if rest.startswith("missing key"):
        return f"`{key}` is not set; give {flag_of(key)} or set it in eagle3.toml or a job file"
    if key:
        return f"{sources.get(key, 'job')}: `{key}`: {rest}"
    filed = [name for name, source in sources.items() if not is_flag(source) and not source.startswith(BUNDLED)]
    words = with_flags(rest, [name for name in allowed if name not in filed])
    named = next((name for name in settings_in(rest, allowed) if name in filed), None)
    return words if named is None else f"{sources[named]}: {words}"


def _settings(job: Job, allowed: list[str], sources: Mapping[str, str]) -> tuple[Setting, ...]:
    return tuple(
        Setting(key=key, value=json.dumps(getattr(job, key)), source=sources.get(key, "default")) for key in allowed
    )
