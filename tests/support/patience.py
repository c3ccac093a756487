"""How long a test waits: long for what only has to happen, and told apart from what must not be waited for.

A busy machine may be ten times slower than an idle one. So a wait for progress has a limit that only a hang reaches,
and a test that something does not wait is written against a wait that is longer still (`sleep 60`, a deadline of a
minute): the limit says which of the two it was, not how quick the machine is.
"""

import time
from collections.abc import Callable

PATIENCE_S = 60.0
SOON_S = 30.0
A_LONG_TIME = "60"  # seconds, as a word for `sleep`: a test that sat through it is beyond SOON_S


def wait_for(condition: Callable[[], object], what: str = "it", patience_s: float = PATIENCE_S) -> None:
    """Until it holds. Raises AssertionError where that takes too long."""
    deadline = time.monotonic() + patience_s
    pause_s = 0.01
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what} in vain for {patience_s:g} s"
        time.sleep(pause_s)
        pause_s = min(0.05, pause_s * 1.2)


class Within:
    """Asserts that a block took no longer than it may: SOON_S where the alternative is A_LONG_TIME."""

    def __init__(self, seconds: float = SOON_S) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        self.start = time.monotonic()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        took_s = time.monotonic() - self.start
        assert kind is not None or took_s < self.seconds, f"took {took_s:.1f} s, expected less than {self.seconds:g} s"
