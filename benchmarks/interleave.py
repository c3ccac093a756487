"""Time whole processes, or anything else, in turn, so that a busy machine is busy for all of them."""

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 300.0


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one round of one subject cost. cpu_s: user and system time of the process and its children."""

    wall_s: float
    cpu_s: float


Subject = Callable[[], Cost]


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Median, smallest and largest of n values."""

    median: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of at least one value."""
        return cls(median=statistics.median(values), low=min(values), high=max(values), n=len(values))


def interleaved(subjects: Mapping[str, Subject], runs: int, *, warm_ups: int = 1) -> dict[str, list[Cost]]:
    """Every subject `runs` times, round by round, after `warm_ups` rounds that do not count.

    The order changes from round to round, the same way each time: a process that follows another kind of process finds
    the caches cold, which costs a command of ours up to 60 ms more than following itself.
    """
    order = list(subjects)
    dice = random.Random(1)
    costs: dict[str, list[Cost]] = {name: [] for name in subjects}
    for number in range(-warm_ups, runs):
        dice.shuffle(order)
        for name in order:
            cost = subjects[name]()
            if number >= 0:
                costs[name].append(cost)
        sys.stderr.write(".")
        sys.stderr.flush()
    sys.stderr.write("\n")
    return costs


def ratios(costs: Mapping[str, list[Cost]], of: str, to: str) -> Spread:
    """Wall time of one subject as a multiple of another's, round by round."""
    return Spread.of([a.wall_s / b.wall_s for a, b in zip(costs[of], costs[to], strict=True)])


def cpu_ratios(costs: Mapping[str, list[Cost]], of: str, to: str) -> Spread:
    """CPU time instead: for work of one thread the wall time of a machine that does nothing else."""
    return Spread.of([a.cpu_s / b.cpu_s for a, b in zip(costs[of], costs[to], strict=True)])


def process(
    argv: Sequence[str | os.PathLike[str]], environment: Mapping[str, str], folder: Path, *, stdin: int | None = None
) -> Cost:
    """Run a command to its end and say what it cost. Raises RuntimeError with its words when it fails."""
    begun = time.perf_counter()
    child = subprocess.Popen(
        words_of(argv),
        env=dict(environment),
        cwd=folder,
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert child.stdout is not None
    with child.stdout as pipe:
        words = pipe.read().decode(errors="replace")
    _, status, used = os.wait4(child.pid, 0)
    wall_s = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"`{' '.join(words_of(argv))}` ended with {child.returncode}:\n{words}")
    return Cost(wall_s=wall_s, cpu_s=used.ru_utime + used.ru_stime)


def words_of(argv: Sequence[str | os.PathLike[str]]) -> list[str]:
    """The words of a command, paths among them."""
    return [os.fspath(word) for word in argv]


def together(steps: Sequence[Subject]) -> Cost:
    """Several processes, one after the other, as one cost."""
    costs = [step() for step in steps]
    return Cost(wall_s=sum(cost.wall_s for cost in costs), cpu_s=sum(cost.cpu_s for cost in costs))
