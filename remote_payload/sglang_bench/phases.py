"""Where a starting server is, read off its log: imports -> weights -> cache -> graphs -> warm-up.

With a draft model the server goes through weights, cache and graphs twice; a phase's seconds are the sum.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from remote_payload.schema.bench import ServerPhase
from remote_payload.sglang_bench.rules import rank_of

FIRST = "imports"
_BEGINS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("weights", re.compile(r"Load weight begin|Load draft weight begin|Loading (?:safetensors|pt) checkpoint shards")),
    ("cache", re.compile(r"Load weight end|Capture [\w -]*graphs? end|Capture [\w -]*extend end")),
    ("graphs", re.compile(r"Capture [\w -]*(?:graphs?|extend) begin|Capturing batches|Capture (?:cuda|cpu) graph")),
    ("warm-up", re.compile(r"max_total_num_tokens=\d+|Application startup complete|Uvicorn running on")),
)
_LOAD = re.compile(r"Load (?:draft )?weight begin")
_BAR = re.compile(r"(?P<what>[\w ()=.-]+?):?\s+\d+%.*?(?P<done>\d+)/(?P<total>\d+)\b")


@dataclass(frozen=True)
class Bar:
    """A progress bar's state: what is counted, done and total."""

    what: str
    done: int
    total: int


class PhaseClock:
    """Times the phases of one start. `tell(name, whose)` is called when one begins; see `Models.whose`."""

    def __init__(self, now_s: float, tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self._models = Models()
        self._seconds: dict[str, float] = {}
        self.name: str | None = FIRST
        self.since_s = now_s
        tell(FIRST, "")

    def read(self, line: str, now_s: float) -> None:
        """Take one line of the log."""
        if self.name is None:
            return
        begun = phase_of(line)
        self._models.read(line)
        if begun is not None and begun != self.name and not (self.name == "warm-up" and begun == "cache"):
            self._end(now_s)
            self.name = begun
            self._tell(begun, self._models.whose(begun, line))

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


class Models:
    """Whose weights are being loaded: every rank loads the target, then the drafter. The first rank's lines tell."""

    def __init__(self) -> None:
        self._rank: str | None = None
        self._loads = 0

    def read(self, line: str) -> None:
        """Take one line of the log."""
        found = _LOAD.search(line)
        if found is None:
            return
        rank = rank_of(line)
        self._rank = rank if self._rank is None else self._rank
        self._loads += rank == self._rank

    def whose(self, phase: str, line: str) -> str:
        """The model that the phase works on; empty where that is both, or not told."""
        if phase == "graphs":
            return "drafter" if "draft" in line else ""
        if phase not in ("weights", "cache") or not self._loads:
            return ""
        return "target" if self._loads == 1 else "drafter"


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
