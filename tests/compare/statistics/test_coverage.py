"""Made worlds whose truth is known: a 95 % interval holds it in 95 of 100, and not for the wrong reason."""

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.compare.statistics import compare_series
from orchestrator.compare.stats import Estimate
from tests.support.made_series import LENGTH, THROUGHPUT, prompts, runs

WORLDS = 1000
TRUE = 0.08


def holds(change: Estimate) -> bool:
    assert change.low is not None
    assert change.high is not None
    return change.low <= TRUE <= change.high


def answers(generator: np.random.Generator, prompts_: int, turns: int = 1) -> list[np.ndarray]:
    """Tokens and verify steps of both sides; prompts are hard or easy for both, turns of one prompt alike."""
    ease = np.repeat(generator.normal(0, 0.25, prompts_), turns)
    gain = np.repeat(generator.normal(0.06**2 / 2, 0.06, prompts_), turns)  # so that the mean of exp(-gain) is 1
    tokens = np.full(prompts_ * turns, 256.0)
    noise = generator.normal(0, 0.02, (2, prompts_ * turns))
    theirs = tokens / np.exp(0.7 + ease + noise[0])
    ours = tokens / (np.exp(0.7 + ease + gain + noise[1]) * (1 + TRUE))
    return [tokens, ours, tokens, theirs]


@pytest.mark.parametrize("count", [6, 40])
def test_paired_prompts(count: int) -> None:
    generator, held = np.random.default_rng(21), 0
    for _ in range(WORLDS):
        y, x, other_y, other_x = answers(generator, count)
        held += holds(compare_series(LENGTH, prompts(y, x), prompts(other_y, other_x)).change)
    assert 930 <= held <= 970  # by normal quantiles 6 prompts would hold it in 89 of 100


def test_turns_of_a_conversation_need_their_cluster() -> None:
    generator, held, naive = np.random.default_rng(22), 0, 0
    clusters = [f"c{index}" for index in range(15) for _ in range(4)]
    for _ in range(WORLDS // 2):
        y, x, other_y, other_x = answers(generator, 15, turns=4)
        theirs = prompts(other_y, other_x)
        held += holds(compare_series(LENGTH, prompts(y, x, clusters=clusters), theirs).change)
        naive += holds(compare_series(LENGTH, prompts(y, x), theirs).change)
    assert 463 <= held <= 487
    assert naive < 400


@pytest.mark.parametrize(("ours", "theirs"), [(3, 3), (5, 3)])
def test_runs(ours: int, theirs: int) -> None:
    generator, held = np.random.default_rng(23), 0
    for _ in range(WORLDS):
        a = 90 * (1 + TRUE) * np.exp(generator.normal(0, 0.03, ours))
        b = 90 * np.exp(generator.normal(0, 0.01, theirs))
        held += holds(compare_series(THROUGHPUT, runs(*a), runs(*b)).change)
    assert 930 <= held <= 975  # Welch's interval is a little wide for runs this few


def test_where_nothing_changed_one_in_twenty_is_a_false_alarm() -> None:
    generator, alarms = np.random.default_rng(24), 0
    for _ in range(WORLDS):
        a, b = 90 * np.exp(generator.normal(0, 0.01, (2, 5)))
        alarms += compare_series(THROUGHPUT, runs(*a), runs(*b), margin=0).verdict in {"improved", "regressed"}
    assert 30 <= alarms <= 66


def test_repeats_of_one_start_raise_no_alarm_and_starts_one_in_twenty() -> None:
    generator, alarms, naive = np.random.default_rng(25), 0, 0
    for _ in range(WORLDS // 2):
        sides = []
        for name in "ab":  # three starts that differ by 1.5 %, five repeats on each that differ by 0.3 %
            values = 90 * np.exp(np.repeat(generator.normal(0, 0.015, 3), 5) + generator.normal(0, 0.003, 15))
            clusters = tuple(f"{name}{index // 5}" for index in range(15))
            sides.append(replace(runs(*values), clusters=clusters))
        found = compare_series(THROUGHPUT, *sides, margin=0)
        alarms += found.verdict in {"improved", "regressed"}
        each = (replace(one, clusters=()) for one in sides)  # a start of its own for each repeat
        naive += compare_series(THROUGHPUT, *each, margin=0).verdict in {"improved", "regressed"}
        lone = (replace(one, keys=one.keys[:5], clusters=one.clusters[:5], y=one.y[:5]) for one in sides)
        assert compare_series(THROUGHPUT, *lone, margin=0).verdict == "single run"
    assert 10 <= alarms <= 33
    assert naive > 200
