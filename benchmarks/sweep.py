"""A whole job's sweep, rows read and results written, against one reading on the same rows; loading is not counted.

`full` varies slots, token offset and the computation (residual, norms, feedback, embedding, vocabulary map, rope);
`wiring` slots and offset alone. CPU times of one thread.
"""

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import example_data
from benchmarks.evaluations import ours
from benchmarks.interleave import Subject, cpu_ratios, interleaved
from benchmarks.lines import Line, Options, Skipped, cost_words

ROWS = 24
"""At least; fewer are taken several times. The sweep screens on a few rows, however many there are."""
ONE = "one reading on all rows"
AIMS = {"full": 8.0, "wiring": 4.0}


def measure(options: Options) -> list[Line | Skipped]:
    """The time of the job's phases over that of one reading, float32, for both sweeps."""
    data = example_data.find(options.data)
    times = -(-ROWS // len(list(data.rows.rglob("data_*"))))
    with tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as folder:
        data = replace(data, rows=example_data.repeated(data.rows, Path(folder), times))
        with ours(data, "float32") as driver:
            found = {name: driver.ask(name) for name in AIMS}
            subjects: dict[str, Subject] = {
                ONE: partial(driver.cost, "one"),
                **{name: partial(driver.cost, name) for name in AIMS},
            }
            costs = interleaved(subjects, options.runs)
    return [
        Line(
            what=f"{name} sweep: {found[name]['readings']:.0f} readings, {found[name]['tokens']:.0f} tokens",
            against=ONE,
            ratio=cpu_ratios(costs, name, ONE),
            aim=("<=", aim),
            ours=f"{cost_words(costs[name])} ({phase_words(found[name])})",
            theirs=cost_words(costs[ONE]),
        )
        for name, aim in AIMS.items()
    ]


def phase_words(found: dict[str, float]) -> str:
    """What each phase of a job took, in milliseconds."""
    phases = {
        name.removeprefix("seconds of "): value for name, value in found.items() if name.startswith("seconds of ")
    }
    return ", ".join(f"{name} {1e3 * seconds:.0f}" for name, seconds in phases.items() if name != "load")
