"""All 24 ordered wirings of three out of four captured states, as a job searches and measures them, against one."""

import tempfile
from pathlib import Path

from benchmarks import example_data
from benchmarks.drafter import our_process
from benchmarks.interleave import interleaved, ratios
from benchmarks.lines import Line, Options, Skipped, cost_words

ROWS = 24
"""At least; fewer are taken several times. The search looks at a few rows, however many there are."""
ONE, ALL = "one wiring on all rows", "all 24 wirings"


def measure(options: Options) -> list[Line | Skipped]:
    """The time of the job's search and measure phases over that of one wiring, float32."""
    rows = example_data.find(options.data).rows
    times = -(-ROWS // len(list(rows.rglob("data_*"))))
    with (
        tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as folder,
        our_process(options, "float32", example_data.repeated(rows, Path(folder), times)) as driver,
    ):
        tokens = driver.ask("one")["tokens"]
        costs = interleaved({ONE: lambda: driver.cost("one"), ALL: lambda: driver.cost("job")}, options.runs)
    return [
        Line(
            what=f"{ALL}: search and measure, {tokens:.0f} tokens",
            against=ONE,
            ratio=ratios(costs, ALL, ONE),
            aim=("<=", 4.0),
            ours=cost_words(costs[ALL]),
            theirs=cost_words(costs[ONE]),
        )
    ]
