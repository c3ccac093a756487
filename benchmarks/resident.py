"""A process that has loaded everything and measures a round whenever asked: loading is not part of the time."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.interleave import Cost


class DriverError(Exception):
    """The process did not load, or ended in the middle; its own last words."""


@dataclass(frozen=True)
class Resident:
    """Speaks a line each way: `ready` once loaded, then for every empty line it gets one JSON object."""

    child: "subprocess.Popen[str]"

    def ask(self, line: str = "") -> dict[str, float]:
        """One round: `seconds` (wall), `cpu_seconds`, `tokens`. Raises DriverError."""
        assert self.child.stdin is not None
        self.child.stdin.write(f"{line}\n")
        self.child.stdin.flush()
        found: dict[str, float] = json.loads(_line(self.child))
        return found

    def cost(self, line: str = "") -> Cost:
        """As `ask`, as a cost."""
        found = self.ask(line)
        return Cost(wall_s=found["seconds"], cpu_s=found["cpu_seconds"])


@contextmanager
def resident(argv: Sequence[str], environment: Mapping[str, str]) -> Iterator[Resident]:
    """Start it and wait until it has loaded; it ends when its stdin does. Raises DriverError."""
    child = subprocess.Popen(
        argv,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while _line(child).strip() != "ready":  # libraries print what they like while they load
            continue
        yield Resident(child)
    finally:
        child.communicate(timeout=60)


def _line(child: "subprocess.Popen[str]") -> str:
    assert child.stdout is not None
    assert child.stderr is not None
    line = child.stdout.readline()
    if not line:
        words = child.stderr.read().strip().splitlines()
        raise DriverError(words[-1] if words else "it ended without a word")
    return line
