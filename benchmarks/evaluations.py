"""Every party's evaluation of one drafter, one wiring, as a resident process; all read their rows from disk each round.

The peers run in bfloat16, SpecForge as it does everywhere, speculators as its trainer's default has it. What differs
from the drafter test: both judge every position (the test those of responses) and compute their loss as well, and
speculators compares within the draft vocabulary alone.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from benchmarks.example_data import STEPS, ExampleData
from benchmarks.resident import DriverError, Resident, resident
from tests.support.laptop import CHECKOUT

THREADS = 1
OURS = {"bfloat16": "ours, bfloat16", "float32": "ours, float32"}
SPECFORGE, SPECULATORS = "SpecForge's evaluation", "speculators' evaluation"
PEERS = (SPECFORGE, SPECULATORS)


@contextmanager
def everyone(data: ExampleData, python: Path, folder: Path) -> Iterator[tuple[dict[str, Resident], dict[str, str]]]:
    """All that could be loaded, by name, and for the others why not. `folder` is for what speculators needs written."""
    parties = {
        **{name: ours(data, dtype) for dtype, name in OURS.items()},
        SPECFORGE: specforge(data, python),
        SPECULATORS: speculators(data, python, folder),
    }
    with ExitStack() as stack:
        loaded: dict[str, Resident] = {}
        failed: dict[str, str] = {}
        for name, party in parties.items():
            try:
                loaded[name] = stack.enter_context(party)
            except DriverError as error:
                failed[name] = f"it did not load: {error}"
        yield loaded, failed


def ours(data: ExampleData, dtype: str) -> AbstractContextManager[Resident]:
    """The drafter test."""
    argv = [sys.executable, "-m", "benchmarks.our_driver", *_named(data), "--dtype", dtype, *_work(data)]
    return resident(argv, {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", str(CHECKOUT))})


def specforge(data: ExampleData, python: Path) -> AbstractContextManager[Resident]:
    """SpecForge's, under a Python that has it."""
    return resident([str(python), _script("specforge_driver"), *_named(data), *_work(data)], _environment())


@contextmanager
def speculators(data: ExampleData, python: Path, folder: Path) -> Iterator[Resident]:
    """speculators', under a Python that has it; its form of the data is written into `folder` unless it is there."""
    if not folder.exists():
        wiring = ",".join(map(str, data.wiring))
        argv = [str(python), _script("speculators_data"), *_named(data), "--wiring", wiring, "--into", str(folder)]
        done = subprocess.run(argv, env=_environment(), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise DriverError(done.stderr.strip().splitlines()[-1])
    argv = [str(python), _script("speculators_driver"), "--data", str(folder), "--target", str(data.target)]
    with resident([*argv, "--steps", str(STEPS), "--threads", str(THREADS)], _environment()) as one:
        yield one


def _named(data: ExampleData) -> list[str]:
    return ["--draft", str(data.draft), "--target", str(data.target), "--rows", str(data.rows)]


def _work(data: ExampleData) -> list[str]:
    return ["--wiring", ",".join(map(str, data.wiring)), "--steps", str(STEPS), "--threads", str(THREADS)]


def _script(name: str) -> str:
    return str(Path(__file__).with_name(f"{name}.py"))


def _environment() -> dict[str, str]:
    """A peer's Python must not find this project's modules."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
