"""A child that is given a deadline, and that nobody waits for when it cannot even be killed."""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO

from remote_payload.subreaper import dying_with_us

KILL_WAIT_S = 0.5
"""A killed child ends at once, or hangs in the kernel (uninterruptible sleep) for nobody knows how long."""
LONGEST_BYTES = 16 << 20
"""What is read of an output: one without end answers no question."""
LOOK_S = 0.25
"""How often there is something to do while a child is waited for."""


class BoundedChild:
    """A program whose whole output is wanted within a deadline. Raises OSError at construction if it cannot be run.

    Whoever kills this process alone leaves no such child behind, unless it has threads.
    """

    def __init__(self, command: Sequence[str], *, without_errors: bool = False) -> None:
        """`without_errors`: the output is what stands on stdout alone; `errors` is there once it is finished."""
        self.errors = ""
        self._errors = tempfile.TemporaryFile() if without_errors else None  # noqa: SIM115 - as the output
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - not a pipe, so nobody has to read while it runs
        try:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT if self._errors is None else self._errors,
                cwd="/",
                start_new_session=True,
                preexec_fn=dying_with_us() if threading.active_count() == 1 else None,  # noqa: PLW1509 - no threads
            )
        except OSError:
            self._close()
            raise

    def finish(self, until_s: float, meanwhile: Callable[[], None] | None = None) -> tuple[int, str] | None:
        """Exit code and output; None when it was not done at `until_s` (monotonic) and was killed with its group.

        `meanwhile` is called now and then while it is waited for; what it raises ends the child, too.
        """
        try:
            code = self._wait(until_s, meanwhile)
            if self._errors is not None:
                self.errors = _text(self._errors)
            return code, _text(self._output)
        except subprocess.TimeoutExpired:
            self._kill()
            return None
        except BaseException:
            self._kill()
            raise
        finally:
            self._close()

    def _wait(self, until_s: float, meanwhile: Callable[[], None] | None) -> int:
        """Raises subprocess.TimeoutExpired."""
        while meanwhile is not None and (left_s := until_s - time.monotonic()) > LOOK_S:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._child.wait(min(LOOK_S, left_s))
            meanwhile()
        return self._child.wait(max(0.0, until_s - time.monotonic()))

    def _close(self) -> None:
        self._output.close()
        if self._errors is not None:
            self._errors.close()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(KILL_WAIT_S)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(LONGEST_BYTES).decode("utf-8", "replace")
