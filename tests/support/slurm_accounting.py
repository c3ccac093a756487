"""A data base for a test's Slurm: mariadbd and slurmdbd under the cluster's own folder, stopped with it."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.slurm import SEARCH_PATH, Slurm, spawn, until
from tests.support.sshd import free_port

TOOLS = ("mariadbd", "mariadb-install-db", "mariadb", "slurmdbd", "sacctmgr")
_SETTINGS = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={storage}
StorageUser=slurm
StoragePass=x
StorageLoc=slurm
"""


def needs_accounting() -> None:
    """Skip the test where the data base's programs are missing."""
    missing = [tool for tool in TOOLS if shutil.which(tool, path=SEARCH_PATH) is None]
    if missing:
        pytest.skip(f"needs apt-get install slurmdbd mariadb-server; not found: {', '.join(missing)}")


def start_accounting(slurm: Slurm) -> tuple[str, Callable[[], None]]:
    """For `running_slurm`: the lines for slurm.conf, and what makes the cluster known to the data base."""
    needs_accounting()
    folder, storage, port = slurm.folder, free_port(), free_port()
    _start_mariadb(slurm, folder / "data", storage)
    settings = folder / "slurmdbd.conf"
    settings.write_text(_SETTINGS.format(folder=folder, port=port, storage=storage))
    settings.chmod(0o600)
    slurm.daemons["slurmdbd"] = spawn(["slurmdbd", "-D"], folder)
    lines = "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=localhost\n"
    lines += f"AccountingStoragePort={port}\nAccountingStoragePass={folder}/munge.sock\n"
    return lines, lambda: until(lambda: _is_known(slurm), "the data base's answer")


def _is_known(slurm: Slurm) -> bool:
    """The controller is refused by a data base that does not know its cluster."""
    environment = {**os.environ, **slurm.environment}
    command = ["sacctmgr", "-i", "add", "cluster", "test"]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=30, check=False)
    return done.returncode == 0


def _start_mariadb(slurm: Slurm, data: Path, port: int) -> None:
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root", "--skip-test-db"]
    subprocess.run([*install, "--auth-root-authentication-method=normal"], capture_output=True, check=True)
    socket = data.parent / "m.sock"
    command = ["mariadbd", "--no-defaults", f"--datadir={data}", "--user=root", f"--socket={socket}"]
    command += [f"--port={port}", "--bind-address=127.0.0.1", f"--pid-file={data}/m.pid", "--skip-log-bin"]
    slurm.daemons["mariadbd"] = spawn(command, data.parent)
    until(socket.exists, "the data base's socket")
    make = "create database slurm; create user slurm@'127.0.0.1' identified by 'x'; "
    make += "create user slurm@localhost identified by 'x'; "
    make += "grant all on slurm.* to slurm@'127.0.0.1'; grant all on slurm.* to slurm@localhost;"
    subprocess.run(["mariadb", "--no-defaults", "-S", str(socket), "-u", "root", "-e", make], check=True)
