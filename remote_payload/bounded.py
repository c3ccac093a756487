"""A child that is given a deadline, and that nobody waits for when it cannot even be killed."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence

KILL_WAIT_S = 0.5
"""A killed child ends at once, or hangs in the kernel (uninterruptible sleep) for nobody knows how long."""


class BoundedChild:
    """A program whose whole output is wanted within a deadline. Raises OSError at construction if it cannot be run."""

    def __init__(self, command: Sequence[str]) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - not a pipe, so nobody has to read while it runs
        try:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            self._output.close()
            raise

    def finish(self, until_s: float) -> tuple[int, str] | None:
        """Exit code and output; None when it was not done at `until_s` (monotonic) and was killed with its group."""
        try:
            with self._output:
                code = self._child.wait(max(0.0, until_s - time.monotonic()))
                self._output.seek(0)
                return code, self._output.read().decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(KILL_WAIT_S)
            return None
