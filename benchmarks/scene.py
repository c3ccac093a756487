"""A laptop and a host for measurements: a real sshd on loopback and our installed command."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.interleave import Cost, process
from tests.support.sshd import SshClientFiles, SshServer, running_sshd

COMMAND = Path(sys.executable).with_name("eagle3-remote")
HOST = "gpu1"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """`folder` is the laptop's home; `environment` is what every command of it gets."""

    folder: Path
    environment: dict[str, str]
    ssh_config: Path
    server: SshServer | None = None

    def ours(self, *arguments: str) -> Cost:
        """One `eagle3-remote ARGUMENTS`, the whole process."""
        return process([COMMAND, *arguments], self.environment, self.folder)


def laptop(folder: Path) -> Scene:
    """A laptop with a store of its own and no host. Raises RuntimeError where the command is not installed."""
    if not COMMAND.exists():
        raise RuntimeError(f"expected the installed command beside this Python (pip install -e .): {COMMAND}")
    client = SshClientFiles(folder / "ssh")
    # Compiled sources must be written and used, as for any installed program.
    without = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "EAGLE3_REMOTE_", "SSH_AUTH_SOCK", "VIRTUAL_ENV")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(without)}
    environment = {
        **kept,
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "EAGLE3_REMOTE_HOME": str(folder / "store"),
        "EAGLE3_REMOTE_SSH_CONFIG": str(client.ssh_config),
    }
    return Scene(folder=folder, environment=environment, ssh_config=client.ssh_config)


@contextmanager
def laptop_and_host(folder: Path) -> Iterator[Scene]:
    """A laptop that knows the host `gpu1`, a real sshd that runs while the block lasts."""
    alone = laptop(folder)
    with running_sshd(folder / "server") as server:
        SshClientFiles(folder / "ssh").add_host(HOST, server)
        yield Scene(folder=folder, environment=alone.environment, ssh_config=alone.ssh_config, server=server)
