"""How the cost grows: of one reading with the length of rows, of the full sweep with the number of captured states.

Made-up rows of a made-up drafter. Every length has the same number of tokens in all, so that a ratio of times is one of
costs a token and a linear cost gives 1. n captured states have n (n - 1) (n - 2) ordered wirings of three.
"""

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import made_up
from benchmarks.drafter import compare
from benchmarks.evaluations import ours
from benchmarks.interleave import Subject, interleaved, ratios
from benchmarks.lines import Line, Options, Skipped, cost_words
from benchmarks.resident import DriverError
from benchmarks.sweep import phase_words

HIDDEN, VOCAB, DRAFT_VOCAB = 256, 4096, 2048
LENGTHS = (512, 1024, 2048, 4096, 8192)
AGAINST_PEERS = 4096
"""Longer rows would take speculators' eager attention more memory than an ordinary machine has."""
STATES = (3, 4, 8, 16, 62)
STATES_ROWS = (512,) * 8
SWEEP_AIM = 8.0


def measure(options: Options) -> list[Line | Skipped]:
    """By length of row, alone and against the peers, then by states."""
    runs = max(3, options.runs // 3)
    with tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as name:
        lines = _with_length(Path(name), runs)
        if options.peers_python is not None:
            tiny = made_up.sizes(hidden=HIDDEN, vocab=VOCAB, draft_vocab=DRAFT_VOCAB)
            data = made_up.write(Path(name) / "long", tiny, (AGAINST_PEERS,))
            what = f"one reading, hidden {HIDDEN}, a row of {AGAINST_PEERS}"
            lines += compare(what, data, Path(name) / "speculators", replace(options, runs=runs))
        return lines + [line for states in STATES for line in _with_states(Path(name), states, runs)]


def _with_length(folder: Path, runs: int) -> list[Line | Skipped]:
    tiny, shortest, tokens = made_up.sizes(hidden=HIDDEN, vocab=VOCAB, draft_vocab=DRAFT_VOCAB), LENGTHS[0], LENGTHS[-1]
    with ExitStack() as stack:
        subjects: dict[str, Subject] = {}
        for length in LENGTHS:
            data = made_up.write(folder / f"length{length}", tiny, (length,) * (tokens // length))
            subjects[_rows(length)] = partial(stack.enter_context(ours(data, "float32")).cost, "one")
        costs = interleaved(subjects, runs)
    return [
        Line(
            what=f"one reading, cost a token, {_rows(length)}",
            against=_rows(shortest),
            ratio=ratios(costs, _rows(length), _rows(shortest)),
            ours=cost_words(costs[_rows(length)]),
            theirs=cost_words(costs[_rows(shortest)]),
        )
        for length in LENGTHS[1:]
    ]


def _rows(tokens: int) -> str:
    return f"rows of {tokens} tokens"


def _with_states(folder: Path, states: int, runs: int) -> list[Line | Skipped]:
    """The full sweep over one reading; a job that refuses so many states is told as such."""
    tiny = made_up.sizes(hidden=HIDDEN, vocab=VOCAB, draft_vocab=DRAFT_VOCAB, captured=states)
    data = made_up.write(folder / f"states{states}", tiny, STATES_ROWS)
    what = f"full sweep, {states} captured states"
    try:
        with ours(data, "float32") as driver:
            found = driver.ask("full")
            costs = interleaved({"one": partial(driver.cost, "one"), "full": partial(driver.cost, "full")}, runs)
    except DriverError as error:
        return [Skipped(what=what, why=str(error))]
    return [
        Line(
            what=f"{what}: {found['readings']:.0f} readings, {found['tokens']:.0f} tokens",
            against="one reading on all rows",
            ratio=ratios(costs, "full", "one"),
            aim=("<=", SWEEP_AIM),
            ours=f"{cost_words(costs['full'])} ({phase_words(found)})",
            theirs=cost_words(costs["one"]),
        )
    ]
