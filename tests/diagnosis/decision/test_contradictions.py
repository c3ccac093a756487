"""Two proofs that speak against each other, and faults that hide each other: neither is believed, none is lost."""

from dataclasses import replace

import pytest

from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.foretold import ONE_WAY, compare
from orchestrator.diagnosis.decision.inputs import Known, Resolved
from tests.diagnosis.decision.scenes import (
    FED_WRONG,
    TRAINED,
    answers,
    fed,
    offline,
    offline_of,
    predicted,
    served,
    sound,
    story,
)
from tests.diagnosis.decision.test_decide import dead, halved
from tests.support.made_measured import LATER, Made, made_measured
from tests.support.made_results import made_declared

WRONG = {"declared": made_declared(FED_WRONG, LATER, config_ids=(1, 3, 4))}


def slow(spec, **changes):
    """The mis-wired pair with three steps, as slow as is said."""
    wrong = {"served": served("embed_story_wrong", spec=spec, **changes), "predicted": predicted("wrong", 3)}
    return story(**wrong)


def shaved(requests):
    """Each answer accepted one draft less."""

    def less(item):
        if item.histogram is None:
            return item
        histogram = list(item.histogram)
        last = max(place for place, count in enumerate(histogram) if count)
        histogram[last] -= 1
        histogram[last - 1] += 1
        return replace(item, histogram=tuple(histogram), correct_drafts=sum(a * b for a, b in enumerate(histogram)))

    return tuple(less(item) for item in requests)


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(lambda: sound(fed=fed(TRAINED, FED_WRONG)), id="served so"),
        pytest.param(lambda: Known(offline=offline(), fed=fed(TRAINED, FED_WRONG)), id="not served"),
        pytest.param(lambda: sound(fed=fed(TRAINED, (1, 3, 4))), id="ids for indices"),
        pytest.param(lambda: sound(fed=fed(TRAINED, (4, 2, 0))), id="the other way round"),
        pytest.param(lambda: sound(fed=fed(TRAINED, (2, 0, 4))), id="another order"),
        pytest.param(lambda: Known(offline=offline("wrong"), fed=fed(FED_WRONG, FED_WRONG)), id="fed as the word says"),
        pytest.param(lambda: Known(offline=offline("wrong"), said=FED_WRONG), id="no capture"),
        pytest.param(lambda: Known(offline=offline(), said=(1, 3, 4)), id="no capture, sound by the rule"),
    ],
)
def test_a_trainers_word_against_what_is_read_is_told_as_a_contradiction(known):
    found = decide(known())
    assert (found.verdict, found.causes, found.certain, found.fix) == ("cannot_tell", (), False, None)
    assert found.place["trainer"] == "contradicts"
    assert "contradiction: `--trained` says" in found.headline
    assert "reads [embed, layer 2, layer 4] best, and well" in found.headline
    assert "rule against server" not in found.rows  # which of the two it is fed as is not known
    assert found.next_runs[0].step == "check_rows"


def test_what_both_words_call_wrong_is_wrong_and_the_ids_stay_open():
    found = decide(Known(offline=offline("wrong"), fed=fed(FED_WRONG, (0, 2, 5))))
    assert (found.causes, found.certain, found.fix) == (("wiring",), False, None)
    assert "instead of [embed, layer 2, layer 5], by its trainer, or of [embed, layer 2, layer 4]" in found.headline


def test_a_word_for_what_rows_hold_only_poorly_or_wrongly_contradicts_nothing():
    poor = offline_of(made_measured((Made((0.3, 0.3, 0.3, 0.3)), Made((0.12, 0.1, 0.1, 0.1), LATER))))
    assert decide(Known(offline=poor, said=FED_WRONG)).place["trainer"] == "agrees"
    assert decide(Known(offline=offline(), said=TRAINED)).place["trainer"] == "agrees"


def test_answers_of_the_trained_states_against_a_capture_of_others():
    found = decide(sound(fed=fed(FED_WRONG)))
    assert (found.causes, found.certain, found.fix) == ((), False, None)
    assert found.place["served_train"] == "as_other"
    assert "36 of 36 requests identical, of a drafter fed [embed, layer 2, layer 4]; the capture says" in found.headline
    none = sound(fed=fed(FED_WRONG), served=served(change=dead))
    assert decide(none).place["served_train"] == "dead"  # of answers that accept nothing all states are alike


def test_answers_of_the_trained_states_against_the_installed_source():
    found = decide(sound(fed=None, resolved=Resolved(states=FED_WRONG, sglang_version="0.5.23")))
    assert (found.causes, found.certain, found.fix) == ((), False, None)
    assert "source against answers" in found.rows


@pytest.mark.parametrize("change", [halved, dead])
def test_a_server_that_loses_half_or_all_is_named_beside_the_wiring(change):
    found = decide(slow((119.0, 120.0, 121.0), change=change))
    assert set(found.causes) == {"wiring", "engine"}
    assert found.certain
    assert found.place["served_train"] == "below"


def test_what_a_fault_explains_of_nothing_accepted_is_asked():
    found = decide(story(served=served(change=dead), predicted=()))
    assert found.causes[0] == "wiring"
    assert "predict" in [run.step for run in found.next_runs]


@pytest.mark.parametrize(
    ("speeds", "answer"),
    [
        ((78.0, 78.1, 77.9), "mendable"),
        ((49.0, 52.0, 55.0, 50.0, 53.0), "mend_open"),
        ((25.0, 25.1, 24.9), "cannot"),
        ((40.0, 40.1, 39.9), "loses"),
    ],
)
def test_slower_is_a_cause_only_where_mending_surely_does_not_help(speeds, answer):
    found = decide(slow(speeds))
    assert found.place["pays"] == answer
    assert ("economics" in found.causes) == (answer in ("cannot", "loses"))
    assert found.causes[0] == "wiring"
    assert found.certain


def test_slower_beside_a_fault_that_was_not_walked_or_beside_lost_drafts_is_open():
    unwalked = decide(Known(served=served("embed_story_wrong", spec=(60.0, 61.0, 59.0)), fed=fed(FED_WRONG)))
    assert (unwalked.place["pays"], unwalked.causes) == ("mend_open", ("wiring",))
    lossy = decide(sound(served=served(change=halved, spec=(60.0, 61.0, 59.0))))
    assert lossy.causes == ("engine",)
    assert lossy.place["pays"] in ("mendable", "mend_open")


def test_requests_that_all_fall_short_in_float32_are_a_finding_however_little():
    found = decide(sound(served=served(change=shaved)))
    assert found.place["served_train"] == "little_below"
    assert (found.verdict, found.certain) == ("engine", False)
    assert "the server accepts less by 0.044 than" in found.named[0].summary
    assert "again" in [run.step for run in found.next_runs]
    rounded = decide(sound(served=served(change=shaved, dtype="bfloat16")))
    assert rounded.verdict == "healthy"


def test_the_sign_test_counts_prompts():
    told = next(item for item in predicted() if item.part == "as served" and item.split == "train")
    found = compare(told, shaved(answers("embed_right", 0, 100.0)), 3, exact=True)
    assert (found.falling, found.rising) == (12, 0)
    assert found.one_way == pytest.approx(2 / 2**12)
    assert [replace(found, falling=n, rising=0).one_way < ONE_WAY for n in (5, 6)] == [False, True]
    assert [replace(found, falling=n, rising=1).one_way < ONE_WAY for n in (7, 8)] == [False, True]
    assert replace(found, falling=3, rising=3).one_way == 1


def test_a_reading_that_is_better_and_not_good_is_a_suspicion():
    readings = (Made((0.45, 0.4, 0.4, 0.4)), Made((0.2, 0.15, 0.1, 0.1), LATER))
    test = offline_of(made_measured(readings, **WRONG))
    assert test.wiring.verdict == "mis_wired"
    found = decide(Known(offline=test))
    assert (found.causes, found.certain, found.fix) == (("wiring",), False, None)
    assert found.place["feeding"] == "suspected"
    asked = decide(Known(offline=test, fed=fed(FED_WRONG, FED_WRONG)))
    assert (asked.causes, asked.certain) == ((), False)


def test_what_no_number_of_rows_tells_asks_for_no_rows():
    test = offline_of(made_measured(declared=made_declared((1, 4, 5), None, config_ids=(0, 3, 4))))
    assert test.wiring.verdict == "declared_not_captured"
    found = decide(Known(offline=test))
    assert found.place["feeding"] == "uncompared"
    steps = [run.step for run in found.next_runs]
    assert {"capture", "other_rows"} <= set(steps)
    assert "more_rows" not in steps
