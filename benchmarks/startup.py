"""How long commands that need no host take, against a Python that does nothing."""

import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.interleave import Subject, interleaved, process, ratios
from benchmarks.lines import Line, Options, Skipped, cost_words
from benchmarks.scene import Scene, laptop
from orchestrator.store import Store
from tests.support.made_runs import made_run, put_many

BARE = "python -c pass"
RUNS_IN_STORE = 20
MANY_RUNS = 10_000
COMMANDS = {"--help": ("--help",), "runs list": ("runs", "list")}
MANY = f"runs list, {MANY_RUNS:,} runs"


def measure(options: Options) -> list[Line | Skipped]:
    """`--help`, and `runs list` with twenty runs in the store; then with ten thousand."""
    with tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as name:
        scene = laptop(Path(name))
        store = Store(Path(scene.environment["EAGLE3_REMOTE_HOME"]))
        for number in range(RUNS_IN_STORE):
            store.begin(made_run(f"standalone-{number:02d}", created_unix_s=time.time() - 3600 * number))
        bare = [sys.executable, "-c", "pass"]
        subjects: dict[str, Subject] = {BARE: lambda: process(bare, scene.environment, scene.folder)}
        for words, arguments in COMMANDS.items():
            subjects[words] = partial(scene.ours, *arguments)
        costs = interleaved(subjects, 3 * options.runs, warm_ups=3)
        many = _many(Path(name) / "many", scene, options)
    return [
        Line(
            what=f"eagle3-remote {words}",
            against=BARE,
            ratio=ratios(costs, words, BARE),
            aim=("<=", 6.0),
            ours=cost_words(costs[words]),
            theirs=cost_words(costs[BARE]),
        )
        for words in COMMANDS
    ] + [many]


def _many(home: Path, scene: Scene, options: Options) -> Line:
    """A listing of many runs against one of few; the first of them makes the index and does not count."""
    put_many(home, MANY_RUNS)
    other = replace(scene, environment={**scene.environment, "EAGLE3_REMOTE_HOME": str(home)})
    few = f"runs list, {RUNS_IN_STORE} runs"
    subjects = {MANY: partial(other.ours, "runs", "list"), few: partial(scene.ours, "runs", "list")}
    costs = interleaved(subjects, 2 * options.runs, warm_ups=1)
    return Line(
        what=f"eagle3-remote {MANY}",
        against=few,
        ratio=ratios(costs, MANY, few),
        ours=cost_words(costs[MANY]),
        theirs=cost_words(costs[few]),
    )
