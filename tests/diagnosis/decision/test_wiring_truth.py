"""Wiring by construction: what a drafter was trained on and what it is fed are set, and every witness may err.

Of all combinations of rows, labels, rule, source, word and server a decision may say less than the truth, never else.
"""

import functools
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest

from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.decision import Decision
from orchestrator.diagnosis.decision.inputs import Known, Offline, Resolved
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.mis_wired import moved
from orchestrator.diagnosis.sglang_ids import spell
from remote_payload.schema.standalone import CaptureCheck, CaptureSlot
from tests.diagnosis.decision.scenes import fed, offline_of
from tests.support.made_measured import SHIFTED, Made, Rows, made_measured
from tests.support.made_results import made_declared

States = tuple[int, ...]
TARGET, LAYERS = "LlamaForCausalLM", 8
STORY, USUAL, THIRD = (0, 2, 4), (2, 4, 5), (0, 4, 5)
HELD = (0, 2, 4, 5)
ROWS = Rows(count=10, prompt=4, response=24)
GOOD, BAD = (0.75, 0.72, 0.7, 0.7), (0.4, 0.35, 0.35, 0.35)
SHARES = {"well": (GOOD, BAD), "rival": (GOOD, BAD), "poorly": ((0.3,) * 4, (0.12,) * 4)}
"""Of the trained states, and of others."""


@dataclass(frozen=True)
class World:
    """What is so, and what each witness says of it."""

    trained: States
    fed: States
    rule: States
    """By the table; the server's own states where the table is right."""
    source: States | None
    word: States | None
    shift: Literal[0, 1, -1]
    """By how many layers the labels of the rows are off."""
    compared: bool
    """Whether rows were compared to a fresh forward."""
    captured: Literal["none", "all"]
    reading: Literal["well", "rival", "poorly"]
    lacking: bool
    """Whether the rows hold the trained states alone."""

    @property
    def held(self) -> States:
        return self.trained if self.lacking else HELD

    def label(self, states: States) -> tuple[int | None, ...]:
        """What the labels make of states; None = the rows do not hold it, but the embedding is known without them."""
        named = moved(states, self.shift)
        known = [state in self.held or not state for state in states]
        return tuple(name if is_known else None for name, is_known in zip(named, known, strict=True))


@functools.cache
def measured(trained: States, reading: str, held: States) -> Measured:
    """The hits, which no label changes; slots are places among the rows' states."""
    sets = [states for states in (STORY, USUAL, THIRD) if set(states) <= set(held)]
    rival = next((states for states in sets if states != trained), None) if reading == "rival" else None
    readings = []
    for states in sets:
        share = SHARES[reading][states not in (trained, rival)]
        readings.append(Made(share, tuple(held.index(state) for state in states)))
    return made_measured([*readings, SHIFTED], rows=ROWS)


@functools.cache
def test_of(world: World) -> Offline:
    base = measured(world.trained, world.reading, world.held)
    labels = moved(world.held, world.shift)
    slots = tuple(labels.index(state) for state in world.rule) if set(world.rule) <= set(labels) else None
    ids = spell(world.rule, TARGET, LAYERS).ids
    declared = made_declared(world.rule, slots, config_ids=ids)
    slots_of = lambda facts: tuple(labels[slot] for slot in facts.slots)  # noqa: E731
    readings = tuple(replace(facts, states=slots_of(facts)) for facts in base.result.readings)
    result = replace(
        base.result,
        declared=declared,
        readings=readings,
        rows=replace(base.result.rows, states=labels),
        capture=_compared(world, labels) if world.compared else None,
    )
    return offline_of(replace(base, result=result, readings={facts.name: facts for facts in readings}))


test_of.__test__ = False  # type: ignore[attr-defined]


def _compared(world: World, labels: States) -> CaptureCheck:
    slots = tuple(
        CaptureSlot(
            slot=slot, nearest=state, error=0.01, next_error=0.4, labelled_error=0.01 if state == label else 0.4
        )
        for slot, (state, label) in enumerate(zip(world.held, labels, strict=True))
    )
    return CaptureCheck(ran=True, rows=2, tokens=200, slots=slots, final=None, same_answers=199, answers=200)


def known(world: World) -> Known:
    capture = None
    if world.captured == "all":
        capture = replace(fed(world.label(world.fed), world.word), target_class=TARGET, target_layers=LAYERS)
    source = None if world.source is None else Resolved(states=world.source, sglang_version="0.5.23")
    return Known(offline=test_of(replace(world, word=None, captured="none", source=None, fed=STORY)), fed=capture,
                 resolved=source, said=world.word)  # fmt: skip


def worlds() -> Iterator[World]:
    """Every combination in which somebody knows what is fed: the table is believed where nobody else speaks."""
    for trained, given, off, shift, compared, captured, reading, lacking in itertools.product(
        (STORY, USUAL), (STORY, USUAL), (False, True), (0, 1, -1), (False, True), ("none", "all"),
        ("well", "rival", "poorly"), (False, True),
    ):  # fmt: skip
        rule = THIRD if off else given
        for source in (None, given, THIRD):
            if captured == "none" and (off and source != given):
                continue
            for word in (None, trained, moved(trained, -1), given, THIRD):
                values: dict[str, Any] = {"captured": captured, "reading": reading}
                yield World(trained, given, rule, source, word, shift, compared, lacking=lacking, **values)


def wrong_words(world: World, found: Decision) -> Iterator[str]:
    """What the decision says that is not so."""
    ids = (
        None if found.fix is None else found.fix.config.get("eagle_config", {}).get("eagle_aux_hidden_state_layer_ids")
    )
    if found.certain and "wiring" in found.causes and world.fed == world.trained:
        yield "certain wiring of a drafter that is fed as it was trained"
    if found.certain and "engine" in found.causes:
        yield "certain engine"
    right = spell(world.trained, TARGET, LAYERS).ids
    if ids is not None and found.certain and tuple(ids) != right:
        yield f"certain, with ids {ids}"
    if (
        ids is not None
        and found.fix is not None
        and found.fix.rests_on is None
        and world.compared
        and tuple(ids) != right
    ):
        yield f"ids {ids} on compared rows"
    if found.verdict in ("healthy", "sound") and world.fed != world.trained:
        yield f"{found.verdict}, and fed otherwise"


def evident(world: World) -> bool:
    """Whether there is enough to be certain: right labels that somebody bears out, a right rule, nobody who errs."""
    borne_out = world.compared or world.captured == "all"
    two = world.word == world.trained and world.captured == "all"
    measured_both = not world.lacking
    return (
        world.fed != world.trained and world.rule == world.fed and world.source in (None, world.fed)
        and world.word in (None, world.trained) and not world.shift and world.reading == "well" and borne_out
        and (two or measured_both)
    )  # fmt: skip


def hold(some: list[World]) -> None:
    for world in some:
        found = decide(known(world))
        assert list(wrong_words(world, found)) == [], (world, found.headline, found.rows)
        if evident(world):
            assert found.certain, (world, found.headline, found.rows)
            assert found.causes == ("wiring",), (world, found.headline, found.rows)
            assert found.fix is not None, (world, found.rows)
            ids = found.fix.config["eagle_config"]["eagle_aux_hidden_state_layer_ids"]
            assert tuple(ids) == spell(world.trained, TARGET, LAYERS).ids


def test_what_is_evident_is_certain_and_nothing_that_is_not_so_ever_is() -> None:
    every = list(worlds())
    assert sum(map(evident, every)) > 20
    hold([*random.Random(7).sample(every, 60), *[world for world in every if evident(world)][::6]])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_same_of_every_combination() -> None:
    hold(list(worlds()))
