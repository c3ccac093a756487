"""The drafter test of one wiring against SpecForge's own evaluation: same rows, steps, threads; loading is not timed.

Both read the rows from disk in every round. SpecForge runs in bfloat16, so that line is the comparison; float32 is what
the job does unless told otherwise. What differs: SpecForge judges every position and computes its loss as well, the
test judges the response positions.
"""

import os
import sys
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from benchmarks import example_data
from benchmarks.interleave import interleaved, ratios
from benchmarks.lines import Line, Options, Skipped, cost_words
from benchmarks.resident import DriverError, Resident, resident
from tests.support.laptop import CHECKOUT

THREADS = 1
OURS = {"bfloat16": "ours, bfloat16", "float32": "ours, float32"}
PEER = "SpecForge's evaluation, bfloat16"


def measure(options: Options) -> list[Line | Skipped]:
    """tokens/s of the test over tokens/s of SpecForge, in bfloat16 and in float32."""
    what = "drafter test, one wiring, tokens/s"
    if options.specforge_python is None:
        return [Skipped(what=what, why="needs a Python that has SpecForge: --peers PYTHON")]
    try:
        with ExitStack() as stack:
            residents: dict[str, Resident] = {
                name: stack.enter_context(our_process(options, dtype)) for dtype, name in OURS.items()
            }
            residents[PEER] = stack.enter_context(_specforge(options, options.specforge_python))
            found = {name: one.ask("one") for name, one in residents.items()}
            subjects = {name: lambda one=one: one.cost("one") for name, one in residents.items()}
            costs = interleaved(subjects, options.runs)
    except DriverError as error:
        return [Skipped(what=what, why=f"a driver did not load: {error}")]
    tokens = {one["tokens"] for one in found.values()}
    assert len(tokens) == 1, f"not the same rows: {found}"
    return [
        Line(
            what=f"{what}, {dtype} ({found[PEER]['tokens']:.0f} tokens)",
            against=f"{PEER}, {THREADS} thread",
            ratio=ratios(costs, PEER, name),  # of times: the peer's over ours is ours over the peer's in tokens/s
            aim=(">=", 1.0) if dtype == "bfloat16" else None,
            ours=f"{cost_words(costs[name])}; step 1 {found[name]['accuracy']:.3f}",
            theirs=f"{cost_words(costs[PEER])}; step 1 {found[PEER]['accuracy']:.3f}",
        )
        for dtype, name in OURS.items()
    ]


def our_process(options: Options, dtype: str, rows: Path | None = None) -> AbstractContextManager[Resident]:
    """Our driver as a process that has loaded the drafter; `rows` instead of those of the data."""
    data = example_data.find(options.data)
    argv = [sys.executable, "-m", "benchmarks.our_driver", "--draft", str(data.draft), "--target", str(data.target)]
    argv += ["--rows", str(rows or data.rows), "--dtype", dtype, "--threads", str(THREADS)]
    return resident(argv, {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", str(CHECKOUT))})


def _specforge(options: Options, python: Path) -> AbstractContextManager[Resident]:
    data = example_data.find(options.data)
    argv = [str(python), str(Path(__file__).with_name("specforge_driver.py"))]
    argv += ["--draft", str(data.draft), "--target", str(data.target), "--rows", str(data.rows)]
    argv += ["--wiring", ",".join(map(str, example_data.WIRING)), "--steps", str(example_data.STEPS)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return resident([*argv, "--threads", str(THREADS)], environment)
