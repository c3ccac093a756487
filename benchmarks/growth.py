"""How the cost grows: of one reading with the length of rows, of the full sweep with the number of captured states.

Made-up rows of a made-up drafter. Every length has the same number of tokens in all, so that a ratio of times is one of
costs a token and a linear cost gives 1. n captured states have n (n - 1) (n - 2) ordered wirings of three, and where
nothing fits, as here, none stands out early: the sweep's most expensive case. CPU times of one thread.
"""

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import made_up
from benchmarks.drafter import compare
from benchmarks.evaluations import ours
from benchmarks.interleave import Subject, cpu_ratios, interleaved
from benchmarks.lines import Line, Options, Skipped, cost_words
from benchmarks.sweep import phase_words

HIDDEN, VOCAB, DRAFT_VOCAB = 256, 4096, 2048
LENGTHS = (512, 2048, 8192)
AGAINST_PEERS = 4096
"""Longer rows would take speculators' eager attention more memory than an ordinary machine has."""
STATES = (4, 3, 8, 16, 62)
"""The first is what the others are held against."""
STATES_HIDDEN, STATES_ROWS = 128, (256,) * 8


def measure(options: Options) -> list[Line | Skipped]:
    """By length of row, alone and against the peers, then by states."""
    runs = max(3, options.runs // 3)
    with tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as name:
        lines = [*_with_length(Path(name), runs), *_with_states(Path(name), runs)]
        if options.peers_python is None:
            return lines
        tiny = made_up.sizes(hidden=HIDDEN, vocab=VOCAB, draft_vocab=DRAFT_VOCAB)
        data = made_up.write(Path(name) / "long", tiny, (AGAINST_PEERS,))
        what = f"one reading, hidden {HIDDEN}, a row of {AGAINST_PEERS}"
        return lines + compare(what, data, Path(name) / "speculators", replace(options, runs=runs))


def _with_length(folder: Path, runs: int) -> list[Line | Skipped]:
    tiny, shortest, tokens = made_up.sizes(hidden=HIDDEN, vocab=VOCAB, draft_vocab=DRAFT_VOCAB), LENGTHS[0], LENGTHS[-1]
    with ExitStack() as stack:
        subjects: dict[str, Subject] = {}
        for length in LENGTHS:
            data = made_up.write(folder / f"length{length}", tiny, (length,) * (tokens // length))
            subjects[_rows(length)] = partial(stack.enter_context(ours(data, "float32")).cost, "one")
        costs = interleaved(subjects, runs, warm_ups=0)
    return [
        Line(
            what=f"one reading, cost a token, {_rows(length)}",
            against=_rows(shortest),
            ratio=cpu_ratios(costs, _rows(length), _rows(shortest)),
            ours=cost_words(costs[_rows(length)]),
            theirs=cost_words(costs[_rows(shortest)]),
        )
        for length in LENGTHS[1:]
    ]


def _rows(tokens: int) -> str:
    return f"rows of {tokens} tokens"


def _with_states(folder: Path, runs: int) -> list[Line | Skipped]:
    with ExitStack() as stack:
        found: dict[str, dict[str, float]] = {}
        subjects: dict[str, Subject] = {}
        for states in STATES:
            tiny = made_up.sizes(hidden=STATES_HIDDEN, vocab=VOCAB, draft_vocab=DRAFT_VOCAB, captured=states)
            data = made_up.write(folder / f"states{states}", tiny, STATES_ROWS)
            driver = stack.enter_context(ours(data, "float32"))
            found[_states(states)] = driver.ask("full")
            subjects[_states(states)] = partial(driver.cost, "full")
        costs = interleaved(subjects, runs, warm_ups=0)
    fewest = _states(STATES[0])
    return [
        Line(
            what=f"full sweep, {name}: {found[name]['readings']:.0f} readings on {found[name]['tokens']:.0f} tokens",
            against=fewest,
            ratio=cpu_ratios(costs, name, fewest),
            ours=f"{cost_words(costs[name])} ({phase_words(found[name])})",
            theirs=cost_words(costs[fewest]),
        )
        for name in list(subjects)[1:]
    ]


def _states(number: int) -> str:
    return f"{number} captured states"
