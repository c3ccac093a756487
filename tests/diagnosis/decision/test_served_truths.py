"""What was served, in every combination of what may be wrong and what is known: no cause is named that is not there.

Truth by construction: the drafter is sound, or mis-wired, or without its head; it generalises; the engine loses drafts
on some prompts or on none; the server is faster or slower. What is known varies: rows, capture, predictions.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.decision import Decision
from orchestrator.diagnosis.decision.economics import economics
from orchestrator.diagnosis.decision.inputs import Known, Offline, Predicted, Served
from tests.diagnosis.decision.scenes import EACH, FED_WRONG, TRAINED, fed, offline, offline_of, predicted, served
from tests.diagnosis.decision.test_decide import NO_HEAD, dead, halved
from tests.support.made_measured import LATER, Made, Rows, made_measured

Change = Callable[[Any], Any]
ENGINES: dict[str, Change] = {
    "sound": lambda some: some,
    "loses": halved,
    "loses held-out": lambda some: halved(some, EACH),
    "loses train": lambda some: tuple(halved(some)[:EACH]) + tuple(some[EACH:]),
    "dead": dead,
    "dead held-out": lambda some: tuple(some[:EACH]) + tuple(dead(some[EACH:])),
}
SPEEDS = {"faster": (119.0, 120.0, 121.0), "slower": (60.0, 60.1, 59.9), "slowest": (25.0, 25.1, 24.9)}
DRAFTERS = ("sound", "mis-wired", "no head")
PREDICTIONS = ("both", "train", "none")
PARTS = list(
    itertools.product(DRAFTERS, ENGINES, SPEEDS, PREDICTIONS, ("test", "no held-out rows", "no test"), (True, False))
)
"""Drafter, engine, speed, what was foretold, the standalone test, whether the server was asked what it feeds."""


@functools.cache
def headless(heldout: bool) -> Offline:
    readings = (Made((0.01, 0.01, 0.01)), Made((0.008, 0.01, 0.01), LATER))
    rows = Rows(count=EACH, steps=3)
    return offline_of(
        made_measured(
            readings, rows=rows, heldout=replace(rows, seed="held-out") if heldout else None, checkpoint_shared=NO_HEAD
        )
    )


@functools.cache
def ran(drafter: str, engine: str, speed: str) -> Served:
    """What was served: of a drafter without its head nothing is accepted, whatever the engine does."""
    label = "embed_story_wrong" if drafter == "mis-wired" else "embed_right"
    return served(label, spec=SPEEDS[speed], change=dead if drafter == "no head" else ENGINES[engine])


@functools.cache
def foretold(drafter: str) -> tuple[Predicted, ...]:
    told = predicted("wrong" if drafter == "mis-wired" else "right")
    if drafter != "no head":
        return told
    return tuple(
        replace(item, requests=tuple(replace(one, histogram=(one.verifies + one.accepted,)) for one in item.requests))
        for item in told
    )


def standalone(drafter: str, test: str) -> Offline | None:
    heldout = test == "test"
    if test == "no test":
        return None
    return (
        headless(heldout)
        if drafter == "no head"
        else offline("wrong" if drafter == "mis-wired" else "right", heldout=heldout)
    )


def known(parts: tuple[Any, ...]) -> Known:
    drafter, engine, speed, told, test, asked = parts
    states = FED_WRONG if drafter == "mis-wired" else TRAINED
    test_of = standalone(drafter, test)
    walks = () if test_of is None or told == "none" else foretold(drafter)
    return Known(
        offline=test_of,
        served=ran(drafter, engine, speed),
        predicted=tuple(item for item in walks if told == "both" or item.split == "train"),
        fed=fed(states) if asked else None,
    )


@functools.cache
def judged(every: int) -> tuple[tuple[tuple[Any, ...], Known, Decision], ...]:
    """Every so manieth combination: they are many, and alike."""
    made = [(parts, known(parts)) for parts in PARTS[::every]]
    return tuple((parts, one, decide(one)) for parts, one in made)


HOW_MANY = pytest.mark.parametrize("every", [17, pytest.param(1, marks=pytest.mark.slow)])


def loses(parts: tuple[Any, ...]) -> bool:
    return parts[1] != "sound" and parts[0] != "no head"


def broken(every: int) -> Iterator[tuple[tuple[Any, ...], Known, Decision]]:
    yield from (item for item in judged(every) if item[0][0] != "sound" or item[0][1] != "sound")


@HOW_MANY
def test_no_cause_is_named_that_is_not_there(every: int) -> None:
    for parts, _, found in judged(every):
        truth = {"mis-wired": {"wiring"}, "no head": {"loading"}, "sound": set[str]()}[parts[0]]
        truth |= {"engine"} if loses(parts) else set()
        assert {*found.causes} <= truth | {"economics"}, (parts, found.headline)
        assert found.verdict not in ("healthy", "sound") or not truth, (parts, found.headline)


@HOW_MANY
def test_text_is_never_blamed_for_what_the_engine_loses(every: int) -> None:
    assert any(found.place["heldout"] == "untold" for _, _, found in judged(every))
    for parts, _, found in judged(every):
        assert "generalization" not in found.causes, (parts, found.headline)


@HOW_MANY
def test_slower_is_a_cause_beside_a_fault_only_where_a_mended_length_is_surely_below(every: int) -> None:
    seen = set()
    for parts, one, found in broken(every):
        balance = economics(one)
        assert balance is not None
        seen.add(found.place["pays"])
        if "economics" not in found.causes:
            continue
        low, ceiling, length = balance.load.pairing.step_cost_low, balance.draft.ceiling, balance.mending.length
        assert low is not None
        impossible = ceiling is not None and low >= ceiling
        measured = length is not None and length.high is not None and length.high < low
        unknown = parts[4] == "no test" or not parts[5] or parts[3] != "both"  # the fault is not seen, and that is told
        assert impossible or measured or (unknown and not found.certain), (parts, found.headline)
    assert {"until_mended", "mend_open", "mendable", "cannot"} <= seen


@pytest.mark.parametrize(("speed", "answer"), [("slower", "loses"), ("slowest", "cannot")])
def test_a_sound_pair_that_is_slower_is_still_named(speed: str, answer: str) -> None:
    found = decide(known(("sound", "sound", speed, "both", "test", True)))
    assert (found.causes, found.place["pays"]) == (("economics",), answer)
    assert found.certain


@HOW_MANY
def test_faults_that_are_seen_are_named(every: int) -> None:
    for parts, _, found in judged(every):
        drafter, _, _, told, test, asked = parts
        if test == "no test" or not asked:
            continue
        if drafter != "sound":
            assert ("wiring" if drafter == "mis-wired" else "loading") in found.causes, (parts, found.headline)
        if drafter == "no head":  # what a head at random answers leaves the files as broken as they are
            assert found.certain, (parts, found.headline)
        if loses(parts) and told == "both":
            assert "engine" in found.causes, (parts, found.headline)
