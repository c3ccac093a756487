"""ansible-playbook and pyinfra doing what a warm no-op run does: copy a file, run Python, fetch a file."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from platformdirs import user_cache_path

from benchmarks.interleave import Cost, process
from benchmarks.scene import HOST, Scene

PACKAGES = {"ansible-playbook": "ansible-core", "pyinfra": "pyinfra"}

_PLAYBOOK = """\
- hosts: all
  gather_facts: false
  tasks:
    - copy: {{src: {folder}/up, dest: {home}/up, mode: "0600"}}
    - command: python3 -c pass
    - fetch: {{src: {home}/small, dest: {folder}/down, flat: true}}
"""
_DEPLOY = """\
from pyinfra.operations import files, server

files.put(src="{folder}/up", dest="{home}/up")
server.shell(commands=["python3 -c pass"])
files.get(src="{home}/small", dest="{folder}/down")
"""


class NotInstalledError(Exception):
    """The tool is not here and could not be installed; says why."""


def subject(tool: str, given: Path | None, scene: Scene) -> Callable[[], Cost]:
    """One run of the tool on the scene's host. Raises NotInstalledError."""
    binary = given or _installed(tool)
    if not binary.exists():
        raise NotInstalledError(f"no such file: {binary}")
    assert scene.server is not None
    paths = {"folder": scene.folder, "home": scene.server.home}
    if tool == "pyinfra":
        script = scene.folder / "deploy.py"
        script.write_text(_DEPLOY.format(**paths))
        argv: list[str | Path] = [binary, "-y", "--data", f"ssh_config_file={scene.ssh_config}"]
        argv += ["--data", f"ssh_known_hosts_file={scene.ssh_config.with_name('known_hosts')}", HOST, script]
        return lambda: _new_bytes(scene, lambda: process(argv, scene.environment, scene.folder))
    script, inventory = scene.folder / "playbook.yml", scene.folder / "inventory"
    script.write_text(_PLAYBOOK.format(**paths))
    inventory.write_text(f"{HOST} ansible_python_interpreter=/usr/bin/python3\n")
    environment = {
        **scene.environment,
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_PIPELINING": "1",
        # A connection that stays open from one round to the next would be another measurement.
        "ANSIBLE_SSH_ARGS": f"-F {scene.ssh_config} -o ControlMaster=auto -o ControlPersist=no",
        "ANSIBLE_SCP_EXTRA_ARGS": f"-F {scene.ssh_config}",
        "ANSIBLE_SFTP_EXTRA_ARGS": f"-F {scene.ssh_config}",
        "ANSIBLE_LOCALHOST_WARNING": "0",
    }
    return lambda: _new_bytes(scene, lambda: process([binary, "-i", inventory, script], environment, scene.folder))


def _new_bytes(scene: Scene, run: Callable[[], Cost]) -> Cost:
    """Both tools skip a copy or a fetch that would change nothing: give them something to do, outside the clock."""
    (scene.folder / "up").write_bytes(os.urandom((scene.folder / "up").stat().st_size))
    (scene.folder / "down").unlink(missing_ok=True)
    return run()


def _installed(tool: str) -> Path:
    """The tool in a venv of its own under the user's cache folder, made once."""
    venv = user_cache_path("eagle3-remote") / "benchmark-peers"
    binary = venv / "bin" / tool
    if not binary.exists():
        make = [sys.executable, "-m", "venv", str(venv)]
        for argv in (make, [str(venv / "bin" / "pip"), "install", "-q", PACKAGES[tool]]):
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise NotInstalledError(f"pip could not install it: {done.stderr.strip().splitlines()[-1]}")
    return binary
