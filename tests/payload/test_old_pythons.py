"""The payload must run on Python 3.10 and on what comes after the one we develop with."""

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

import remote_payload
from orchestrator.remote.payload import PYTHON_TOO_OLD_EXIT_CODE
from remote_payload.schema import to_json
from tests.payload.rig import Rig, of_kind

SOURCES = sorted(Path(remote_payload.__file__).parent.rglob("*.py"))


def find(version: str) -> str:
    """An interpreter of that version on this machine that really is one; skips the test otherwise."""
    known = map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    for python in (*known, shutil.which(f"python{version}") or ""):
        if python and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return python
    pytest.skip(f"no Python {version} on this machine")


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_the_oldest_python_can_read_every_source(source: Path) -> None:
    ast.parse(source.read_text(encoding="utf-8"), feature_version=(3, 10))


@pytest.mark.parametrize("version", ["3.10", "3.12", "3.13", "3.14"])
def test_a_whole_run_on_another_python(tmp_path: Path, version: str) -> None:
    rig = Rig(tmp_path / "root", python=find(version))
    frames = rig.launch(rig.spec("r1"), follow=True)
    assert of_kind(frames, "state")[-1].state.phase == "succeeded"
    assert rig.cancel("r1").was_terminal
    assert [state.run_id for state in rig.status().states] == ["r1"]


@pytest.mark.parametrize("version", ["3.6", "3.9"])
def test_a_python_that_is_too_old_says_so(rig: Rig, version: str) -> None:
    rig.python = find(version)
    with rig.start("launch", to_json(rig.launch_request(rig.spec("r1"))).encode()) as child:
        stdout, stderr = child.communicate(timeout=60)
    assert (child.returncode, stdout) == (PYTHON_TOO_OLD_EXIT_CODE, b"")
    assert stderr.startswith(b"eagle3-remote needs Python >= 3.10 on the host, found: ")
    assert version.encode() in stderr
