"""Where a starting server is, read off its log: imports -> weights -> cache -> graphs -> warm-up.

With a draft model the server goes through weights, cache and graphs twice; a phase's seconds are the sum.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from remote_payload.schema.bench import ServerPhase

FIRST = "imports"
_BEGINS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("weights", re.compile(r"Load weight begin|Load draft weight begin|Loading (?:safetensors|pt) checkpoint shards")),
    ("cache", re.compile(r"Load weight end|Capture [\w -]*graphs? end|Capture [\w -]*extend end")),
    ("graphs", re.compile(r"Capture [\w -]*(?:graphs?|extend) begin|Capturing batches|Capture (?:cuda|cpu) graph")),
    ("warm-up", re.compile(r"max_total_num_tokens=\d+|Application startup complete|Uvicorn running on")),
)
_BAR = re.compile(r"(?P<what>[\w ()=.-]+?):?\s+\d+%.*?(?P<done>\d+)/(?P<total>\d+)\b")


@dataclass(frozen=True)
class Bar:
    """A progress bar's state: what is counted, done and total."""

    what: str
    done: int
    total: int


class PhaseClock:
    """Times the phases of one start. `tell(name)` is called when one begins."""

    def __init__(self, now_s: float, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._seconds: dict[str, float] = {}
        self.name: str | None = FIRST
        self.since_s = now_s
        tell(FIRST)

    def read(self, line: str, now_s: float) -> None:
        """Take one line of the log."""
        if self.name is None:
            return
        begun = phase_of(line)
        if begun is not None and begun != self.name and not (self.name == "warm-up" and begun == "cache"):
            self._end(now_s)
            self.name = begun
            self._tell(begun)

    def finish(self, now_s: float) -> None:
        """The server is ready (or gone)."""
        self._end(now_s)
        self.name = None

    def phases(self) -> tuple[ServerPhase, ...]:
        """What was timed so far, in order of their beginning."""
        return tuple(ServerPhase(name=name, seconds=seconds) for name, seconds in self._seconds.items())

    def _end(self, now_s: float) -> None:
        if self.name is not None:
            self._seconds[self.name] = self._seconds.get(self.name, 0.0) + now_s - self.since_s
            self.since_s = now_s


def phase_of(line: str) -> str | None:
    """The phase that begins with this line, if any."""
    for name, pattern in _BEGINS:
        if pattern.search(line):
            return name
    return None


def bar_of(line: str) -> Bar | None:
    """The progress bar on this line, e.g. `Loading safetensors checkpoint shards:  50% Completed | 1/2`."""
    found = _BAR.search(line) if "%" in line else None
    return Bar(found["what"].strip(), int(found["done"]), int(found["total"])) if found else None
