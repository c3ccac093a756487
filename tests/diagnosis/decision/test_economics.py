"""Slower than plain decoding: a cause of its own only where nothing is left to be mended that would change it."""

from dataclasses import replace

import pytest

from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known
from tests.diagnosis.decision.scenes import fed, offline_of, predicted, served, served_of, sound
from tests.diagnosis.decision.test_decide import NO_HEAD, dead
from tests.diagnosis.decision.test_same_weights import pair
from tests.support.made_measured import LATER, SHIFTED, Made, Rows, made_measured

SLOW = (60.0, 60.1, 59.9)


def loaded_as(name, run):
    """The same servers, whose log tells another class of drafter."""
    servers = tuple(replace(one, draft_class=name) if one.side == "spec" else one for one in run.result.servers)
    requests = tuple(item for load in run.figures.loads for item in load.requests)
    return served_of(replace(run.result, servers=servers), requests)


def headless():
    """A drafter without its head: no reading is good, whatever it is fed."""
    readings = (Made((0.01, 0.01, 0.01)), Made((0.008, 0.01, 0.01), LATER))
    return offline_of(made_measured(readings, rows=Rows(steps=3), checkpoint_shared=NO_HEAD))


def nothing_told():
    """What a drafter without its head is foretold to accept: nothing."""
    return tuple(
        replace(item, requests=tuple(replace(one, histogram=(one.verifies,)) for one in item.requests))
        for item in predicted()
    )


@pytest.mark.parametrize(
    ("known", "cause", "what"),
    [
        (lambda: Known(offline=headless(), served=served(change=dead, spec=SLOW), predicted=nothing_told(), fed=fed()),
         "loading", "the drafter's files"),
        (lambda: Known(offline=headless(), served=served(change=dead, spec=SLOW), fed=fed()),
         "loading", "the drafter's files"),
        (lambda: sound(served=loaded_as("LlamaForCausalLM", served(change=dead, spec=(25.0, 25.1, 24.9)))),
         "loading", "which drafter the server loads"),
        (lambda: pair(sound(served=served("embed_story_wrong", spec=SLOW)), digests=("aa", "bb")),
         "parameters", "which weights are served"),
    ],
    ids=["missing head, walked", "missing head", "the target as its own drafter", "another drafter"],
)  # fmt: skip
def test_slower_beside_what_no_walk_mends_is_no_cause_until_it_is_mended(known, cause, what):
    found = decide(known())
    assert (found.verdict, found.place["pays"]) == (cause, "until_mended")
    assert "economics" not in found.causes
    (told,) = [text for text in found.also if "whether speculation pays is not known until this is mended" in text]
    assert what in told
    assert "again" in [run.step for run in found.next_runs]


def test_a_sound_pair_of_which_nothing_is_accepted_is_slow_by_the_engine():
    found = decide(sound(served=served(change=dead, spec=SLOW), predicted=()))
    assert (found.causes, found.place["pays"]) == (("engine",), "mend_open")
    assert any("whether it pays once mended (what the server loses) is open" in text for text in found.also)


def test_a_rival_a_hair_ahead_is_nothing_to_be_mended_of_a_pair_that_is_fed_as_trained():
    tie = (Made((0.75, 0.72, 0.7, 0.7)), Made((0.751, 0.72, 0.7, 0.7), LATER), SHIFTED)
    slow = {"served": served(spec=(80.0, 80.1, 79.9))}
    test = offline_of(made_measured(tie, rows=Rows(count=12)))
    assert test.wiring.verdict == "cannot_separate"
    found = decide(sound(offline=test, **slow))
    assert (found.causes, found.place["pays"]) == (("economics",), "loses")
    unsaid = decide(sound(offline=test, fed=None, **slow))  # which of the two is fed, and which is right, nobody says
    assert (unsaid.causes, unsaid.place["pays"]) == ((), "mend_open")
    computed = tuple(replace(item, changes=("norm_before_fc=on",)) if item is tie[1] else item for item in tie)
    other = decide(sound(offline=offline_of(made_measured(computed, rows=Rows(count=12))), **slow))
    assert other.causes == ()
