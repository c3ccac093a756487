"""`eagle3.toml`: the hosts and the settings a project or a user overlays on the job files.

Found upward from the working directory, then in the user's configuration folder; the first one found is the only one
read. Every unknown key is an error that names file, key and the allowed keys. Read strictly as the wire's records are:
by the records' own reader, and what it refuses pydantic explains, strictly and all at once.
"""

import difflib
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from orchestrator.config.host import DEFAULT_ROOT, HostConfig
from orchestrator.config.notify import NotifyConfig
from orchestrator.config.refused import explain_host, unknown_key
from orchestrator.config.toml import read_toml
from orchestrator.errors import ConfigError
from remote_payload.schema.record import SchemaError, from_value

__all__ = ["DEFAULT_ROOT", "Config", "HostConfig", "NotifyConfig", "find", "here", "load", "read", "read_toml"]

FILE_NAME = "eagle3.toml"
TABLES = ("hosts", "jobs", "baselines", "margins", "notify")
LISTS = ("step_costs",)


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

    notify: NotifyConfig = field(default_factory=NotifyConfig)
    """`[notify]`: who is told when a run ends."""

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
    problems = [unknown_key(key, key, known) for key in sorted(set(raw) - set(known))]
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
            problems += explain_host(name, value) or [f"`hosts.{name}`: {refused}"]
    notify = NotifyConfig()
    try:
        notify = from_value(NotifyConfig, raw.get("notify", {}))
    except SchemaError as refused:
        problems.append(f"`notify`: {str(refused).removeprefix('$').lstrip('.: ')}")
    jobs = raw.get("jobs", {})
    problems += [f"`jobs.{kind}` must be a table, found: {jobs[kind]!r}" for kind in jobs if not _is_table(jobs, kind)]
    if problems:
        raise ConfigError(_listed(path, problems))
    step_costs, folder = tuple(raw.get("step_costs", ())), _baselines(path, raw.get("baselines", {}))
    margins = raw.get("margins", {})
    found = Config(path=path, hosts=hosts, jobs=jobs, step_costs=step_costs, baselines=folder, margins=margins)
    return replace(found, notify=notify)


def _baselines(path: Path, table: dict[str, Any]) -> Path | None:
    """The project's folder of baselines. Raises ConfigError where the table is not what it should be."""
    if unknown := sorted(set(table) - {"directory"}):
        raise ConfigError(f"{path}: {unknown_key(f'baselines.{unknown[0]}', unknown[0], ('directory',))}")
    if "directory" not in table:
        folder = path.parent / "baselines"
        return folder if folder.is_dir() else None
    named = table["directory"]
    if not isinstance(named, str) or not named or "\0" in named:
        raise ConfigError(f"{path}: `baselines.directory`: expected a folder, found: {named!r}")
    try:
        folder = path.parent / Path(named).expanduser()
        is_file = folder.is_file()
    except OSError:
        return folder  # whoever reads or writes there will say why it cannot
    except RuntimeError as error:
        raise ConfigError(f"{path}: `baselines.directory`: expected a folder, found: {named!r} ({error})") from None
    if is_file:
        raise ConfigError(
            f"{path}: `baselines.directory`: expected a folder, found a file: {folder}",
            hint="name another folder there, which is made when it is needed, or move the file away",
        )
    return folder


def _is_table(raw: dict[str, Any], key: str) -> bool:
    return isinstance(raw.get(key, {}), dict)


def _are_tables(raw: dict[str, Any], key: str) -> bool:
    found = raw.get(key, [])
    return isinstance(found, list) and all(isinstance(item, dict) for item in found)


def _listed(path: Path, problems: list[str]) -> str:
    return f"{path}: " + (problems[0] if len(problems) == 1 else "".join(f"\n  {problem}" for problem in problems))
