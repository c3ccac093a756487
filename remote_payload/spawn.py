"""Starting the worker: session and process group of its own, logs as files, the run's environment and secrets."""

import os
import signal
from pathlib import Path

from remote_payload import processes
from remote_payload.rundir import RunDir
from remote_payload.schema import RunSpec


def spawn_worker(run: RunDir, spec: RunSpec, secrets: dict[str, str], archive: Path) -> int:
    """Start `spec.python` on the payload's `work` verb; returns its pid. Raises OSError when it cannot be run.

    Moves this process into the run directory, which the worker inherits. Secrets exist only in the two processes.
    """
    python = os.path.expanduser(spec.python)
    environment = {**os.environ, **spec.environment, **secrets}
    environment |= {"EAGLE3_RUN_ID": spec.run_id, processes.MARK: str(run.path)}
    os.chdir(run.path)
    logs = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawnp(
        python,
        [python, "-u", str(archive), "work", str(run.path)],
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(run.stdout), logs, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, str(run.stderr), logs, 0o600),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGHUP, signal.SIGPIPE, signal.SIGINT, signal.SIGXFSZ],
    )
