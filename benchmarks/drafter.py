"""The drafter test of one wiring against the peers' own evaluations: same rows, steps, threads; loading is not timed.

Once on the rows of the data and once on made-up ones of a larger drafter, where the arithmetic is all that counts. The
peers run in bfloat16, so those lines are the comparison; float32 is what the job does unless told otherwise. Ratios are
of CPU times of one thread, because a busy machine gives each process another share.
"""

import tempfile
from functools import partial
from pathlib import Path

from benchmarks import example_data, made_up
from benchmarks.evaluations import OURS, PEERS, THREADS, everyone
from benchmarks.interleave import cpu_ratios, interleaved
from benchmarks.lines import Line, Options, Skipped, cost_words

LARGER = made_up.sizes(hidden=512, vocab=32000, draft_vocab=8000)
LENGTHS = (1024,)


def measure(options: Options) -> list[Line | Skipped]:
    """tokens/s of the test over tokens/s of each peer, in bfloat16 and in float32."""
    if options.peers_python is None:
        return [Skipped(what="drafter test, one wiring, tokens/s", why="needs a Python with the peers: --peers PYTHON")]
    with tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as name:
        folder = Path(name)
        real, larger = example_data.find(options.data), made_up.write(folder / "larger", LARGER, LENGTHS)
        lines = compare("one wiring", real, folder / "real", options)
        return lines + compare("one wiring, hidden 512, vocabulary 32000", larger, folder / "speculators", options)


def compare(what: str, data: example_data.ExampleData, folder: Path, options: Options) -> list[Line | Skipped]:
    """The test against each peer on one drafter and its rows; `folder` is for what speculators needs written."""
    assert options.peers_python is not None
    with everyone(data, options.peers_python, folder) as (loaded, failed):
        found = {name: one.ask("one") for name, one in loaded.items()}
        costs = interleaved({name: partial(one.cost, "one") for name, one in loaded.items()}, options.runs, warm_ups=0)
    tokens = {one["tokens"] for one in found.values()}
    assert len(tokens) == 1, f"not the same rows: {found}"
    return [
        Line(
            what=f"{what}, tokens/s, {dtype} ({tokens.copy().pop():.0f} tokens)",
            against=f"{peer}, bfloat16, {THREADS} thread",
            ratio=cpu_ratios(costs, peer, name),  # of times: the peer's over ours is ours over the peer's in tokens/s
            aim=(">=", 1.0) if dtype == "bfloat16" else None,
            ours=f"{cost_words(costs[name])}; step 1 {found[name]['accuracy']:.3f}",
            theirs=f"{cost_words(costs[peer])}; step 1 {found[peer]['accuracy']:.3f}",
        )
        if peer in loaded
        else Skipped(what=f"{what}, against {peer}", why=failed[peer])
        for peer in PEERS
        for dtype, name in OURS.items()
    ]
