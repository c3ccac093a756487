"""A laptop: its own store, ssh files and eagle3.toml; runs the real command line as a process."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.sshd import SshClientFiles, SshServer

CHECKOUT = Path(__file__).parent.parent.parent
PATIENCE_S = 120
# By its path, for a test may give the command a PATH without it.
ENV = shutil.which("env") or "env"


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The JSON lines of stdout."""
        return [json.loads(line) for line in self.out.splitlines()]


class Laptop:
    """One laptop in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ssh = SshClientFiles(folder / "ssh")
        self.store = folder / "store"
        self.project = folder / "project"
        self.project.mkdir()
        self.toml = self.project / "eagle3.toml"
        self._started: list[subprocess.Popen[str]] = []

    def add_host(self, name: str, server: SshServer, *, settings: str = "", **more: Any) -> None:
        """An ssh alias for the server and a host of eagle3.toml with this test's own Python."""
        self.ssh.add_host(name, server, **more)
        python = "" if "python" in settings else f"python = {json.dumps(sys.executable)}\n"
        patience = "" if "connect_timeout_s" in settings else "connect_timeout_s = 60.0\n"
        with self.toml.open("a", encoding="utf-8") as file:
            file.write(f"[hosts.{name}]\nssh = {json.dumps(name)}\n{python}{patience}{settings}\n")

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        """Start `eagle3-remote ARGUMENTS` in the project folder."""
        inherited = {key: value for key, value in os.environ.items() if key != "SSH_AUTH_SOCK"}
        process = subprocess.Popen(
            # A shell's background job, as a test run may be, ignores Ctrl-C, and so would its children.
            [ENV, "--default-signal=INT", sys.executable, "-m", "orchestrator.cli", *arguments],
            cwd=self.project,
            env={
                **inherited,
                "PYTHONPATH": str(CHECKOUT),
                "EAGLE3_REMOTE_HOME": str(self.store),
                "EAGLE3_REMOTE_SSH_CONFIG": str(self.ssh.ssh_config),
                "XDG_CONFIG_HOME": str(self.folder / "config"),
                "HOME": str(self.folder),
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def close(self) -> None:
        """End what a failed test left running."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def finish(self, process: "subprocess.Popen[str]") -> Done:
        """Wait for a started command."""
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"still running after {PATIENCE_S} s:\n{out}\n{err}") from None
        assert "Traceback" not in err, err
        return Done(process.returncode, out, err)

    def run(self, *arguments: str, **environment: str) -> Done:
        """Run `eagle3-remote ARGUMENTS` to its end."""
        return self.finish(self.start(*arguments, **environment))
