"""`[hosts.NAME]`: one server reached by SSH."""

import re
from dataclasses import field
from typing import Literal

from remote_payload.schema.record import Record, require
from remote_payload.schema.slurm import SlurmSettings
from remote_payload.schema.waiting import LEASES

DEFAULT_ROOT = "~/.eagle3-remote"

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
    scheduler: Literal["slurm"] | None = None
    """`slurm`: the server is a login node, runs are submitted to its Slurm; None = they run on the server itself."""
    slurm: SlurmSettings | None = None
    """`[hosts.NAME.slurm]`: how they are submitted."""
    notify_command: tuple[str, ...] = ()
    """Run on the server when a run or a sweep is over, its ending as JSON on stdin: `["~/bin/tell", "gpu"]`."""
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
        require(self.slurm is None or self.scheduler == "slurm", '`slurm` belongs to `scheduler = "slurm"`')
        for word in self.exec_prefix:
            require(bool(word) and "\0" not in word, f"`exec_prefix` must hold words, none empty, found: {word!r}")
        for word in self.notify_command:
            require(bool(word) and "\0" not in word, f"`notify_command` must hold words, none empty, found: {word!r}")
        for name, value in self.environment.items():
            require("\0" not in value, f"`environment.{name}` must not hold a NUL character, found: {value!r}")
        timeout_s, deadline_s, reconnect_s = self.connect_timeout_s, self.deadline_s, self.reconnect_s
        require(0 < timeout_s <= 300, f"`connect_timeout_s` must be above 0 and at most 300, found: {timeout_s}")
        require(
            deadline_s is None or 0 < deadline_s < float("inf"), f"`deadline_s` must be above 0, found: {deadline_s}"
        )
        require(reconnect_s >= 0, f"`reconnect_s` must be 0 or more, found: {reconnect_s}")

    @property
    def submission(self) -> SlurmSettings | None:
        """How a run is submitted to the host's Slurm; None = it runs on the host itself."""
        return None if self.scheduler is None else self.slurm or SlurmSettings()
