"""How long a diagnosis may take, and what is left of it."""

import contextlib
import time
from collections.abc import Iterator

LEAST_S = 1.0
"""With less than this nothing is begun."""


class Budget:
    """Seconds from now on; None = without end. Waiting for GPUs costs nothing of it: who waits knows no duration."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self._until_s = None if seconds is None else time.monotonic() + seconds

    @property
    def left_s(self) -> float | None:
        """Seconds, below 0 where it is used up; None = without end."""
        return None if self._until_s is None else self._until_s - time.monotonic()

    @contextlib.contextmanager
    def unspent(self) -> Iterator[None]:
        """What is done within costs nothing of it."""
        begun_s = time.monotonic()
        try:
            yield
        finally:
            if self._until_s is not None:
                self._until_s += time.monotonic() - begun_s
