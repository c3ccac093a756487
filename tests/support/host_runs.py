"""What a run on a test's host is at, and a way to keep it from ending while a test looks at it."""

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.support.patience import wait_for
from tests.support.sshd import SshServer


def state_file(server: SshServer, run_id: str) -> Path:
    """Where the run's state is written."""
    return server.home / ".eagle3-remote" / "runs" / run_id / "state.json"


def phase(server: SshServer, run_id: str) -> str:
    """The run's phase, `none` where there is no run."""
    path = state_file(server, run_id)
    return str(json.loads(path.read_text())["phase"]) if path.exists() else "none"


def wait_for_phase(server: SshServer, run_id: str, wanted: str) -> None:
    """Until the run is there. Raises AssertionError where that takes too long."""
    wait_for(lambda: phase(server, run_id) == wanted, f"run {run_id} to be {wanted}")


@contextlib.contextmanager
def kept_running(server: SshServer, run_id: str) -> Iterator[None]:
    """Stop the worker once it runs, and let it go on afterwards: its run does not end in between."""
    wait_for_phase(server, run_id, "running")
    worker = int(json.loads(state_file(server, run_id).read_text())["worker_pid"])
    os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(worker, signal.SIGCONT)
