"""Standard output that cannot be written: closed by the reader, full, or never there."""

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.store import Store
from tests.support.made_runs import made_run

EAGLE3_REMOTE = [sys.executable, "-m", "orchestrator.cli"]


def shell(script: str, home: Path) -> tuple[int, str]:
    """Run a bash line in which "$@" is the command; returns the code of its first part, and stderr."""
    env = {"PATH": "/usr/bin:/bin", "EAGLE3_REMOTE_HOME": str(home), "PYTHONPATH": str(Path.cwd())}
    line = f"{script}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line, "bash", *EAGLE3_REMOTE], env=env, capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", ["runs list", "runs list --json", "runs show last --json"])
def test_a_reader_that_is_gone_is_no_regression(tmp_path: Path, command: str) -> None:
    Store(tmp_path).begin(made_run())
    assert shell(f'"$@" {command} | true', tmp_path) == (141, "")


@pytest.mark.parametrize(("where", "words"), [(">/dev/full", "No space left on device"), (">&-", "not writable")])
def test_output_that_cannot_be_written(tmp_path: Path, where: str, words: str) -> None:
    code, err = shell(f'"$@" runs list {where}', tmp_path)
    assert (code, err) == (41, f"error: cannot write to standard output: {words}\n")


def test_words_that_stderr_refuses_are_lost_and_the_code_stays(tmp_path: Path) -> None:
    for where in ("2>/dev/full", "2>&-"):
        assert shell(f'"$@" runs show no-such-run {where}', tmp_path) == (6, "")
