"""One measured line, and the table of all of them as Markdown."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.interleave import Cost, Spread
from tests.support.laptop import CHECKOUT

SGLANG_PYTHON = CHECKOUT / ".sglang-venv" / "bin" / "python"
"""Where `make test-sglang` puts it."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the command line asked for. Paths of peers are None where they are not there: their lines are skipped."""

    runs: int
    data: Path
    peers_python: Path | None = None
    ansible: Path | None = None
    pyinfra: Path | None = None
    sglang_python: Path = SGLANG_PYTHON


@dataclass(frozen=True, kw_only=True)
class Line:
    """`what` compared with `against` in one run."""

    what: str
    against: str
    ratio: Spread
    aim: tuple[Literal["<=", ">="], float] | None = None
    ours: str
    theirs: str


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A line that could not be measured here, and why."""

    what: str
    why: str


def cost_words(costs: Sequence[Cost]) -> str:
    """Wall and CPU time of one subject, medians in milliseconds, the wall time's range in brackets."""
    wall, cpu = Spread.of([cost.wall_s for cost in costs]), Spread.of([cost.cpu_s for cost in costs])
    low, high = f"{1e3 * wall.low:.0f}", f"{1e3 * wall.high:.0f}"
    return f"{1e3 * wall.median:.0f} ms ({low}-{high}), CPU {1e3 * cpu.median:.0f} ms"


def table(lines: Sequence[Line | Skipped]) -> str:
    """A Markdown table; what was skipped stands below it with the reason."""
    rows = [
        "| what | against | ratio, median (min-max) | n | aim | met | this project | the other |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        if isinstance(line, Line):
            ratio = f"{line.ratio.median:.2f} ({line.ratio.low:.2f}-{line.ratio.high:.2f})"
            cells = (line.what, line.against, ratio, str(line.ratio.n), *_aim(line), line.ours, line.theirs)
            rows.append(f"| {' | '.join(cells)} |")
    skipped = [f"- not measured: {line.what}: {line.why}" for line in lines if isinstance(line, Skipped)]
    return "\n".join([*rows, *(["", *skipped] if skipped else [])])


def _aim(line: Line) -> tuple[str, str]:
    if line.aim is None:
        return "-", "-"
    sign, bound = line.aim
    met = line.ratio.median <= bound if sign == "<=" else line.ratio.median >= bound
    return f"{sign} {bound:g}", "yes" if met else "no"


def machine_words() -> str:
    """Where and how busy: ratios travel between machines, milliseconds do not."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load average {load}"
    return f"{machine}, Python {platform.python_version()}"
