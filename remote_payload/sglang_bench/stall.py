"""A server that hangs while it is measured: alive, its port open, and no token for minutes.

A request's own deadline does not bound this: on a server that stands still every further request waits for it again.
Quiet alone is no proof, for a long prefill is quiet too; so its health is asked, which takes the server a token.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from remote_payload.failure import JobFailure
from remote_payload.sglang_bench.asking import ask
from remote_payload.sglang_bench.server import Running

STALL_S = 180.0
"""Without any sign of life so long while it is measured, a server hangs. A warm-up, and SGLang's own tool, which makes
its own, get a request's whole deadline: kernels may be compiled for minutes."""
HEALTH_S = 30.0
"""SGLang gives up on its own health after 20 s."""


class Stall:
    """Notices that a server stands still. `signs()`: any number that changes while it works, e.g. tokens so far."""

    def __init__(self, running: Running, signs: Callable[[], Any], limit_s: float) -> None:
        self._running, self._signs, self._limit_s = running, signs, limit_s
        self._last: tuple[Any, float] = (None, time.monotonic())
        self._looking: _Looking | None = None
        self._waiting_for = ""

    def check(self) -> None:
        """Call it a few times a second; costs nothing. Raises JobFailure(server) when the server died, or hangs."""
        self._running.check()
        now_s, signs = time.monotonic(), self._signs()
        if signs != self._last[0]:
            self._lives(signs, now_s)
            return
        quiet_s = now_s - self._last[1]
        if self._looking is not None and not self._looking.is_alive():
            looked, self._looking = self._looking, None
            if looked.waiting_for is None:
                self._lives(signs, now_s)
                return
            self._waiting_for = looked.waiting_for
        if quiet_s >= self._limit_s and self._waiting_for:
            raise self._failure(quiet_s)
        if quiet_s >= self._limit_s / 3 and self._looking is None:
            self._looking = _Looking(self._running)

    def _lives(self, signs: object, now_s: float) -> None:
        self._last, self._looking, self._waiting_for = (signs, now_s), None, ""

    def _failure(self, quiet_s: float) -> JobFailure:
        return self._running.hangs(f"it hangs: no sign of life for {quiet_s:.0f} s; waited for: {self._waiting_for}")


class _Looking(threading.Thread):
    """One look at its health, in a thread of its own: it takes the looker's whole patience."""

    def __init__(self, running: Running) -> None:
        super().__init__(name="look whether the server hangs", daemon=True)
        self._url, self._key = running.url, running.key
        self.waiting_for: str | None = "its health"
        """None = it lives."""
        self.start()

    def run(self) -> None:
        try:
            for path in ("/health_generate", "/health"):  # before 0.4.10 the latter answers whatever the scheduler does
                status, _ = ask(self._url, path, self._key, timeout_s=HEALTH_S)
                if status != 404:
                    break
            self.waiting_for = None if status == 200 else f"{path}, which answers HTTP {status}"
        except OSError as error:
            self.waiting_for = f"{path}: {error}"
