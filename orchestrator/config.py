"""`eagle3.toml`: the hosts and the settings a project or a user overlays on the job files.

Found upward from the working directory, then in the user's configuration folder; the first one found is the only one
read. Every unknown key is an error that names file, key and the allowed keys.
"""

import difflib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from platformdirs import user_config_path
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from orchestrator.errors import ConfigError

FILE_NAME = "eagle3.toml"
DEFAULT_ROOT = "~/.eagle3-remote"

EnvironmentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
RemotePath = Annotated[str, StringConstraints(pattern=r"^(~|~/[^\x00]*|/[^\x00]*)$")]


class HostConfig(BaseModel):
    """`[hosts.NAME]`: one server reached by SSH."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    ssh: str
    """An alias of ssh's own configuration, or `[user@]address[:port]`."""
    python: RemotePath | None = None
    """Interpreter on the server; None = probe for one that has torch and safetensors."""
    root: RemotePath = DEFAULT_ROOT
    """Folder on the server that holds payloads and runs."""
    environment: dict[EnvironmentName, str] = Field(default_factory=dict)
    """Environment variables of the job (no secrets: these are written into the run's spec)."""
    secrets: list[EnvironmentName] = Field(default_factory=list)
    """Names of variables whose values are taken from this laptop's environment, sent on stdin and never stored."""
    connect_timeout_s: float = Field(default=10.0, gt=0, le=300)
    deadline_s: float | None = Field(default=None, gt=0)
    """Longest run time of a job on this host, seconds."""
    reconnect_s: float = Field(default=900.0, ge=0)
    """How long a broken link is retried before this laptop gives up looking (the job goes on), seconds."""


class _File(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    hosts: dict[str, HostConfig] = Field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = Field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Config:
    """What `eagle3.toml` says; empty when there is none."""

    path: Path | None = None
    hosts: dict[str, HostConfig] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Overlays by job kind, checked by `jobfile` against the job's own record."""

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
    for folder in (start, *start.parents):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    own = user_config_path("eagle3-remote") / FILE_NAME
    return own if own.is_file() else None


def load(start: Path) -> Config:
    """Read the configuration. Raises ConfigError naming file, key, what was expected and what was found."""
    path = find(start)
    return Config() if path is None else read(path)


def read(path: Path) -> Config:
    """Read one file; see `load`."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} must be UTF-8, found: byte {error.object[error.start]:#04x}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    try:
        file = _File.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(_explain(path, error)) from None
    return Config(path=path, hosts=file.hosts, jobs=file.jobs)


def _explain(path: Path, error: ValidationError) -> str:
    lines = [_explain_one(item["loc"], item["type"], item["msg"], item.get("input")) for item in error.errors()]
    return f"{path}: " + ("; ".join(lines) if len(lines) == 1 else "".join(f"\n  {line}" for line in lines))


def _explain_one(location: Sequence[int | str], kind: str, message: str, found: object) -> str:
    key = ".".join(str(part) for part in location)
    if kind == "extra_forbidden":
        allowed = list(HostConfig.model_fields) if location[0] == "hosts" else list(_File.model_fields)
        close = difflib.get_close_matches(str(location[-1]), allowed, n=1)
        guess = f" (did you mean `{close[0]}`?)" if close else ""
        return f"unknown key `{key}`{guess}; allowed: {', '.join(allowed)}"
    if kind == "missing":
        return f"`{key}` is missing"
    return f"`{key}`: {message[0].lower()}{message[1:]}, found: {found!r}"
