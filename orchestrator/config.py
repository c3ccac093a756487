"""`eagle3.toml`: the hosts and the settings a project or a user overlays on the job files.

Found upward from the working directory, then in the user's configuration folder; the first one found is the only one
read. Every unknown key is an error that names file, key and the allowed keys. Read strictly as the wire's records are:
by the records' own reader, and what it refuses pydantic explains, strictly and all at once.
"""

import difflib
import json
import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platformdirs import user_config_path

from orchestrator.errors import ConfigError, UsageError
from remote_payload.schema.record import Record, SchemaError, from_value, require
from remote_payload.schema.waiting import LEASES

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

FILE_NAME = "eagle3.toml"
DEFAULT_ROOT = "~/.eagle3-remote"
TABLES = ("hosts", "jobs", "baselines", "margins")
LISTS = ("step_costs",)
MAX_DEPTH = 20

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REMOTE_PATH = re.compile(r"~|(~/|/)[^\x00]*")


class HostConfig(Record):
    """`[hosts.NAME]`: one server reached by SSH."""

    ssh: str
    """An alias of ssh's own configuration, or `[user@]address[:port]`."""
    python: str | None = None
    """Interpreter on the server; None = probe for one that has torch and safetensors."""
    root: str = DEFAULT_ROOT
    """Folder on the server that holds payloads and runs."""
    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables of the job (no secrets: these are written into the run's spec)."""
    exec_prefix: tuple[str, ...] = ()
    """Words before a server's command on this host: `["docker", "exec", "-i", "sglang"]`, `["srun", ...]`."""
    leases: str = LEASES
    """Folder on the server, on a local disk and writable for all its users, that holds the leases of its GPUs."""
    secrets: tuple[str, ...] = ()
    """Names of variables whose values are taken from this laptop's environment, sent on stdin and never stored."""
    connect_timeout_s: float = 10.0
    deadline_s: float | None = None
    """Longest run time of a job on this host, seconds."""
    reconnect_s: float = 900.0
    """How long a broken link is retried before this laptop gives up looking (the job goes on), seconds."""

    def __post_init__(self) -> None:
        for key, path in (("python", self.python), ("root", self.root)):
            words = f"`{key}` must be an absolute path on the server, or start with `~/`, found: {path!r}"
            require(path is None or _REMOTE_PATH.fullmatch(path) is not None, words)
        for key, names in (("environment", self.environment), ("secrets", self.secrets)):
            for name in names:
                words = f"`{key}` must name environment variables (letters, digits, `_`), found: {name!r}"
                require(_VARIABLE.fullmatch(name) is not None, words)
        require(self.leases.startswith("/"), f"`leases` must be an absolute path on the server, found: {self.leases!r}")
        for word in self.exec_prefix:
            require(bool(word) and "\0" not in word, f"`exec_prefix` must hold words, none empty, found: {word!r}")
        for name, value in self.environment.items():
            require("\0" not in value, f"`environment.{name}` must not hold a NUL character, found: {value!r}")
        timeout_s, deadline_s, reconnect_s = self.connect_timeout_s, self.deadline_s, self.reconnect_s
        require(0 < timeout_s <= 300, f"`connect_timeout_s` must be above 0 and at most 300, found: {timeout_s}")
        require(
            deadline_s is None or 0 < deadline_s < float("inf"), f"`deadline_s` must be above 0, found: {deadline_s}"
        )
        require(reconnect_s >= 0, f"`reconnect_s` must be 0 or more, found: {reconnect_s}")


@dataclass(frozen=True, kw_only=True)
class Config:
    """What `eagle3.toml` says; empty when there is none."""

    path: Path | None = None
    hosts: dict[str, HostConfig] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Overlays by job kind, checked by `jobfile` against the job's own record."""
    step_costs: tuple[dict[str, Any], ...] = ()
    """`[[step_costs]]`, checked by `compare.step_cost` against its own record."""

    baselines: Path | None = None
    """Where the project keeps its baselines: `[baselines] directory`, else `baselines/` beside the file."""
    margins: dict[str, Any] = field(default_factory=dict)
    """`[margins]`, checked by `compare.margins` against the metrics there are."""

    def host(self, name: str) -> HostConfig:
        """The host of that name, or a host made from a bare ssh alias or `user@address[:port]`."""
        return self.hosts.get(name) or HostConfig(ssh=name)

    def known_hosts_hint(self, name: str) -> str:
        """What to try when `name` leads nowhere."""
        where = str(self.path) if self.path else f"no {FILE_NAME} was found"
        if not self.hosts:
            return f"`{name}` is tried as an ssh alias or address; no [hosts.*] is configured ({where})"
        close = difflib.get_close_matches(name, list(self.hosts), n=3)
        return f"configured in {where}: {', '.join(close or sorted(self.hosts))}"


def find(start: Path) -> Path | None:
    """The configuration file that holds for `start`: upward from it, then the user's own; None when there is none."""
    for folder in (start, *start.parents, user_config_path("eagle3-remote")):
        # Also what cannot be read, like a dangling link: to pass it over would silently use other settings.
        if os.path.lexists(folder / FILE_NAME):
            return folder / FILE_NAME
    return None


def here() -> Path:
    """The working directory, where the search begins. Raises ConfigError where it is gone."""
    try:
        return Path.cwd()
    except OSError as error:
        raise ConfigError(f"the working directory cannot be told: {error.strerror}", hint="cd somewhere else") from None


def load(start: Path) -> Config:
    """Read the configuration. Raises ConfigError naming file, key, what was expected and what was found."""
    path = find(start)
    return Config() if path is None else read(path)


def read(path: Path) -> Config:
    """Read one file; see `load`."""
    raw = read_toml(path, ConfigError)
    known = (*TABLES, *LISTS)
    problems = [_unknown(key, key, known) for key in sorted(set(raw) - set(known))]
    problems += [f"`{name}` must be a table, found: {raw[name]!r}" for name in TABLES if not _is_table(raw, name)]
    problems += [
        f"`{name}` must be tables, [[{name}]], found: {raw[name]!r}" for name in LISTS if not _are_tables(raw, name)
    ]
    if problems:
        raise ConfigError(_listed(path, problems))
    hosts: dict[str, HostConfig] = {}
    for name, value in raw.get("hosts", {}).items():
        try:
            hosts[name] = from_value(HostConfig, value)
        except SchemaError as refused:
            problems += _explain(name, value) or [f"`hosts.{name}`: {refused}"]
    jobs = raw.get("jobs", {})
    problems += [f"`jobs.{kind}` must be a table, found: {jobs[kind]!r}" for kind in jobs if not _is_table(jobs, kind)]
    if problems:
        raise ConfigError(_listed(path, problems))
    step_costs, folder = tuple(raw.get("step_costs", ())), _baselines(path, raw.get("baselines", {}))
    margins = raw.get("margins", {})
    return Config(path=path, hosts=hosts, jobs=jobs, step_costs=step_costs, baselines=folder, margins=margins)


def read_toml(path: Path, error: type[UsageError]) -> dict[str, Any]:
    """The tables of a TOML file, nothing in them deeper or larger than settings are. Raises `error`."""
    try:
        if path.exists() and not path.is_file():
            raise error(f"cannot read {path}: expected a file, found a folder, a pipe or a device")
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        _refuse_excess(raw, ())
    except (OSError, RuntimeError) as problem:  # RuntimeError: before Python 3.13 a loop of links
        if isinstance(problem, RecursionError):
            raise error(f"{path}: brackets nested too deep") from None
        raise error(f"cannot read {path}: {getattr(problem, 'strerror', None) or problem}") from None
    except UnicodeDecodeError as problem:
        raise error(f"{path} must be UTF-8, found: byte {problem.object[problem.start]:#04x}") from None
    except ValueError as problem:
        raise error(f"{path} is not TOML: {problem}") from None
    return raw


def _refuse_excess(value: object, keys: tuple[str, ...]) -> None:
    """Raises ValueError: numbers beyond TOML's own 64 bits, and depths, are mistakes that would break far from here."""
    if len(keys) > MAX_DEPTH:
        raise ValueError(f"`{'.'.join(keys[:3])}...` is nested too deep")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"`{'.'.join(keys)}`: expected an integer of 64 bits, found one of {value.bit_length()}")
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_excess(item, (*keys, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_excess(item, (*keys, str(index)))


def _baselines(path: Path, table: dict[str, Any]) -> Path | None:
    """The project's folder of baselines. Raises ConfigError where the table is not what it should be."""
    if unknown := sorted(set(table) - {"directory"}):
        raise ConfigError(f"{path}: {_unknown(f'baselines.{unknown[0]}', unknown[0], ('directory',))}")
    if "directory" not in table:
        folder = path.parent / "baselines"
        return folder if folder.is_dir() else None
    named = table["directory"]
    if not isinstance(named, str) or not named or "\0" in named:
        raise ConfigError(f"{path}: `baselines.directory`: expected a folder, found: {named!r}")
    try:
        return path.parent / Path(named).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{path}: `baselines.directory`: expected a folder, found: {named!r} ({error})") from None


def _is_table(raw: dict[str, Any], key: str) -> bool:
    return isinstance(raw.get(key, {}), dict)


def _are_tables(raw: dict[str, Any], key: str) -> bool:
    found = raw.get(key, [])
    return isinstance(found, list) and all(isinstance(item, dict) for item in found)


def _listed(path: Path, problems: list[str]) -> str:
    return f"{path}: " + (problems[0] if len(problems) == 1 else "".join(f"\n  {problem}" for problem in problems))


def _explain(host: str, value: object) -> list[str]:
    """Everything that is wrong with one host at once; pydantic's import is paid only by whoever needs the answer."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

    try:
        TypeAdapter(HostConfig).validate_json(json.dumps(value, default=str), strict=True)
    except ValidationError as refused:
        return [_explain_one(f"hosts.{host}", item) for item in refused.errors(include_url=False)]
    return []  # the strict reader refuses what JSON cannot hold, e.g. NaN or a date, and says so itself


def _explain_one(host: str, item: "ErrorDetails") -> str:
    key = ".".join((host, *(str(part) for part in item["loc"])))
    if item["type"] == "unexpected_keyword_argument":
        return _unknown(key, str(item["loc"][-1]), [item.name for item in fields(HostConfig)])
    if item["type"] == "missing":
        return f"`{key}` is missing"
    words = item["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    # The invariants' own messages already end with what was found.
    return f"`{key}`: {words}" + ("" if item["type"] == "value_error" else f", found: {item['input']!r}")


def _unknown(key: str, name: str, allowed: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, allowed, n=1)
    guess = f" (did you mean `{close[0]}`?)" if close else ""
    return f"unknown key `{key}`{guess}; allowed: {', '.join(allowed)}"
