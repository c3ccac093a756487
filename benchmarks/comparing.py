"""Comparing stored runs, two of 10,000 requests and 300 of 24, against a script with scipy alone.

By CPU time: all of it is work of one thread, and a busy machine makes the wall time of two processes a matter of luck.
"""

import random
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.interleave import Cost, Subject, cpu_ratios, interleaved, process
from benchmarks.lines import Line, Options, Skipped, cost_words
from benchmarks.scene import Scene, laptop
from orchestrator.store import Store
from remote_payload.schema.bench import BenchResult, RequestSample
from tests.support.made_bench import chain_histogram, made_bench, made_paired, made_point, made_request, made_server
from tests.support.made_sets import put_bench

REPEATS, PROMPTS, STEPS = 5, 2000, 20
RUNS = 300
SCRIPT = Path(__file__).with_name("plain_scipy.py")
BIG, MANY = f"diff, two runs of {REPEATS * PROMPTS:,} requests", f"diff, {RUNS} runs of 24 requests"
PAGE = f"report, {RUNS} runs, one HTML page"
FIRST = ", never read before"
PLAIN = "a script with scipy alone: "


def measure(options: Options) -> list[Line | Skipped]:
    """Whole processes; every first reading of a run is measured apart, for its figures are kept."""
    with tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as name:
        scene = laptop(Path(name))
        store = Store(Path(scene.environment["EAGLE3_REMOTE_HOME"]))
        for run_id, accept in (("big-a", 0.6), ("big-b", 0.65)):
            put_bench(store, run_id, _big(accept))
        many = [f"run-{number:03d}" for number in range(RUNS)]
        for number, run_id in enumerate(many):
            put_bench(store, run_id, made_paired(spec_tok_s=56.8 + 0.01 * number), created=float(number + 1))
        page, plain_page = (str(Path(name) / f"{side}.html") for side in ("ours", "plain"))
        two = ("big-a", "big-b")
        subjects: dict[str, Subject] = {
            BIG: partial(scene.ours, "diff", *two),
            BIG + FIRST: partial(_forgotten, store, scene, two),
            PLAIN + BIG: partial(_scipy, store, scene, two),
            MANY: partial(scene.ours, "diff", *many),
            MANY + FIRST: partial(_forgotten, store, scene, many),
            PLAIN + MANY: partial(_scipy, store, scene, many),
            PAGE: partial(scene.ours, "report", *many, "--out", page),
            PLAIN + PAGE: partial(_scipy, store, scene, many, "--page", plain_page),
        }
        costs = interleaved(subjects, options.runs, warm_ups=1)
    pairs = (
        *((BIG + suffix, PLAIN + BIG) for suffix in ("", FIRST)),
        *((MANY + suffix, PLAIN + MANY) for suffix in ("", FIRST)),
        (PAGE, PLAIN + PAGE),
    )
    return [
        Line(
            what=what,
            against=other,
            ratio=cpu_ratios(costs, what, other),
            ours=cost_words(costs[what]),
            theirs=cost_words(costs[other]),
        )
        for what, other in pairs
    ]


def _forgotten(store: Store, scene: Scene, run_ids: Sequence[str]) -> Cost:
    """A diff that has to read every request, because what was made of them is gone."""
    for run_id in run_ids:
        (store.run_dir(run_id).path / "measurements.json").unlink(missing_ok=True)
    return scene.ours("diff", *run_ids)


def _scipy(store: Store, scene: Scene, run_ids: Sequence[str], *options: str) -> Cost:
    folders = [store.run_dir(run_id).result for run_id in run_ids]
    return process([sys.executable, SCRIPT, *options, *folders], scene.environment, scene.folder)


def _big(accept: float) -> tuple[BenchResult, tuple[RequestSample, ...]]:
    """One user, every prompt once a repeat, a verify step a chunk."""
    draws = random.Random(3)
    points, requests = [], []
    for repeat in range(REPEATS):
        some, clock = [], 0.0
        for prompt in range(PROMPTS):
            histogram = chain_histogram(draws, STEPS, (accept, accept, accept))
            tokens = 1 + sum((depth + 1) * count for depth, count in enumerate(histogram))
            seconds = 0.01 * STEPS * (1 + 0.01 * repeat)
            item = made_request(
                repeat, prompt, tokens=tokens, sent_s=clock, seconds=seconds, histogram=histogram, index=prompt
            )
            some.append(item)
            clock = item.chunk_s[-1]
        points.append(made_point(repeat, some, repeat=repeat))
        requests += some
    return made_bench([made_server()], points), tuple(requests)
