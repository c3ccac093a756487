"""A set of states that a word or a label names is no proof: what nobody measured is never certain."""

from dataclasses import replace as replaced

import pytest

from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known, Offline, Resolved
from tests.diagnosis.decision.scenes import EACH, FED_WRONG, TRAINED, fed, offline_of, predicted, served, sound
from tests.diagnosis.decision.test_decide import NO_HEAD, dead
from tests.support.made_measured import LATER, SHIFTED, WORSE, Made, Rows, made_measured
from tests.support.made_results import made_declared

WRONG = made_declared(FED_WRONG, LATER, config_ids=(1, 3, 4))
NEAR = (Made(), Made((0.745, 0.72, 0.7, 0.7), (0, 1, 3)), WORSE, SHIFTED)
"""Two sets of states that these rows do not tell apart, and the served one, surely behind."""


def story_export() -> Offline:
    """Rows of the trained states alone, [embed, layer 2, layer 4]: of what is fed they lack layer 5."""
    return offline_of(made_measured((Made(), SHIFTED), declared=made_declared(FED_WRONG, None, config_ids=(1, 3, 4))))


@pytest.mark.parametrize("word", [(0, 2, 5), (1, 3, 4), FED_WRONG])
def test_a_wrong_word_beside_rows_that_read_well_is_a_contradiction_though_what_is_fed_is_in_no_row(word):
    found = decide(Known(offline=story_export(), fed=fed(FED_WRONG, word)))
    assert (found.place["trainer"], found.certain, found.fix) == ("contradicts", False, None)


def test_a_right_word_on_the_usual_export_of_the_story_is_a_verdict():
    found = decide(Known(offline=story_export(), fed=fed(FED_WRONG, TRAINED)))
    assert (found.causes, found.certain) == (("wiring",), True)
    assert found.fix is not None
    assert found.fix.config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [-1, 1, 3]
    assert found.fix.rests_on is None  # read well, on those very states


def test_without_a_word_the_replay_of_what_was_served_measures_what_is_fed():
    alone = decide(Known(offline=story_export(), fed=fed(FED_WRONG, None)))
    assert (alone.place["fed"], alone.causes) == ("open", ())
    walked = decide(Known(offline=story_export(), fed=fed(FED_WRONG, None), predicted=predicted("wrong")))
    assert (walked.place["fed"], walked.causes, walked.certain) == ("other", ("wiring",), True)
    assert walked.fix is not None
    assert walked.fix.config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [-1, 1, 3]


def test_a_word_alone_names_the_wiring_and_proves_nothing():
    capture = replaced(fed(FED_WRONG, TRAINED), target_class="LlamaForCausalLM", target_layers=8)
    found = decide(Known(fed=capture))
    assert (found.causes, found.certain) == (("wiring",), False)
    assert "by its trainer's word alone" in found.headline
    assert next(run.step for run in found.next_runs if run.decides) == "standalone"
    assert found.fix is not None
    assert "the trainer's word for [embed, layer 2, layer 4] alone" in str(found.fix.rests_on)


def test_states_that_are_read_as_well_are_no_other_states():
    tie = offline_of(made_measured((Made(), Made(slots=LATER), SHIFTED)))
    assert tie.wiring.verdict == "sound"
    found = decide(Known(offline=tie, fed=fed(FED_WRONG, None)))
    assert (found.place["fed"], found.causes, found.certain, found.fix) == ("alike", (), False, None)
    assert "more_rows" in [run.step for run in found.next_runs if run.decides]


@pytest.mark.parametrize(
    "witness", [{"fed": fed(TRAINED, None)}, {"resolved": Resolved(states=TRAINED, sglang_version="0.5.12")}]
)
def test_what_is_really_fed_is_held_against_what_reads_best_though_a_rival_reads_as_well(witness):
    test = offline_of(made_measured(NEAR, declared=WRONG))
    assert decide(Known(offline=test)).causes == ("wiring",)
    found = decide(Known(offline=test, **witness))
    assert (found.causes, found.certain, found.fix) == ((), False, None)
    assert found.headline.startswith("cannot tell yet: contradiction: the rule by table captures [layer 2")


def test_labels_a_layer_off_look_like_vllms_numbering_and_only_a_comparison_tells():
    """Ids 1,3,4 and labels 1,3,4: SGLang feeds 2,4,5. Either ids count as vLLM does, or labels as SGLang."""
    declared = made_declared((2, 4, 5), None, config_ids=(1, 3, 4))
    readings = (Made(slots=(1, 2, 3)), Made((0.45, 0.4, 0.4, 0.4)), SHIFTED)
    base = made_measured(readings, declared=declared, capture=None, rows_states=(0, 1, 3, 4))
    labelled = tuple(
        replaced(facts, states=tuple((0, 1, 3, 4)[slot] for slot in facts.slots)) for facts in base.result.readings
    )
    test = offline_of(
        replaced(base, result=replaced(base.result, readings=labelled), readings={one.name: one for one in labelled})
    )
    alone = decide(Known(offline=test))
    assert (alone.place["labels"], alone.certain, alone.fix) == ("doubtful", False, None)
    assert {run.step for run in alone.next_runs if run.decides} == {"check_rows", "capture"}
    asked = decide(Known(offline=test, fed=fed((1, 3, 4), None)))
    assert (asked.causes, asked.certain, asked.fix) == ((), False, None)
    assert asked.next_runs[0].step == "check_rows"
    said = decide(Known(offline=test, fed=fed((1, 3, 4), (2, 4, 5))))
    assert (said.causes, said.certain, said.fix) == ((), False, None)
    assert "fed well, and word or labels are off" in said.headline


def test_ids_by_a_rule_that_the_server_refutes_are_no_fix():
    for known in (
        sound(fed=fed(FED_WRONG), served=None, predicted=()),
        Known(offline=offline_of(made_measured(declared=WRONG)), fed=fed((0, 4, 5))),
    ):
        found = decide(known)
        assert (found.causes, found.certain, found.fix) == (("wiring",), False, None)
        assert not any("eagle_config" in line for item in found.named for line in item.remedy)


def test_a_word_for_what_is_fed_against_rivals_that_read_better_is_the_words_contradiction():
    test = offline_of(made_measured(NEAR, declared=WRONG))
    found = decide(Known(offline=test, fed=fed(FED_WRONG, FED_WRONG)))
    assert (found.place["trainer"], found.place["rule"]) == ("contradicts", "agrees")
    assert "contradiction: `--trained` says [layer 2, layer 4, layer 5]" in found.headline
    assert found.next_runs[0].step == "check_rows"


def test_the_word_decides_between_rivals():
    test = offline_of(made_measured(NEAR, declared=WRONG, rows=Rows(count=12)))
    found = decide(Known(offline=test, fed=fed(FED_WRONG, (0, 2, 5))))
    assert (found.causes, found.certain) == (("wiring",), True)
    assert found.fix is not None
    assert found.fix.config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [-1, 1, 4]
    assert found.fix.rests_on == (
        "the trainer's word for [embed, layer 2, layer 5]: [embed, layer 2, layer 4] read as well on these rows"
    )
    best = decide(Known(offline=test, fed=fed(FED_WRONG, TRAINED)))
    assert best.fix is not None
    assert best.fix.rests_on is None  # word and reading name the same
    assert "[-1, 1, 3]" in best.named[0].remedy[0]  # not to look up which


@pytest.mark.parametrize("ids", [(-1, 1, 3), TRAINED])
def test_ids_that_config_json_holds_for_what_reads_best_speak_against_a_word_for_its_rival(ids):
    declared = replaced(WRONG, config_ids=None, ignored_top_level_ids=ids)
    test = offline_of(made_measured(NEAR, declared=declared, rows=Rows(count=12)))
    found = decide(Known(offline=test, fed=fed(FED_WRONG, (0, 2, 5))))
    assert (found.place["trainer"], found.causes, found.certain, found.fix) == (
        "contradicts",
        ("wiring",),
        False,
        None,
    )
    right = decide(Known(offline=test, fed=fed(FED_WRONG, None)))
    assert (right.causes, right.certain) == (("wiring",), True)
    assert right.fix is not None
    assert right.fix.config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [-1, 1, 3]


def test_states_that_lie_a_token_off_were_held_against_nothing():
    """Of what is fed nobody knows more than its place; by the rule alone nothing is certain, and nothing changed."""
    off = replaced(fed((None, None, None), None), token_offset=1, exact=False, worst_error=None)
    found = decide(Known(offline=offline_of(made_measured(declared=WRONG)), fed=off))
    assert (found.place["fed"], found.certain, found.fix) == ("shifted", False, None)
    assert found.next_runs[0].step == "check_rows"
    assert "contradiction: each served state is that of the next token in the rows" in found.headline


def test_what_a_head_at_random_answers_no_walk_foretells():
    """One request of twelve has a draft accepted by chance, another one less."""

    def by_chance(requests):
        ways = {3: (0, 1), 14: (0, 1)}
        return tuple(
            one
            if one.histogram is None or one.prompt not in ways
            else replaced(one, histogram=(one.verify_steps - 1, 1), correct_drafts=1)
            for one in dead(requests)
        )

    readings = (Made((0.01, 0.01, 0.01)), Made((0.008, 0.01, 0.01), LATER))
    rows = Rows(count=EACH, steps=3)
    test = offline_of(made_measured(readings, rows=rows, heldout=replaced(rows, seed="h"), checkpoint_shared=NO_HEAD))
    nothing = tuple(
        replaced(
            one,
            requests=tuple(replaced(item, histogram=(item.verifies + item.accepted, 0, 0, 0)) for item in one.requests),
        )
        for one in predicted()
    )
    found = decide(Known(offline=test, served=served(change=by_chance), predicted=nothing, fed=fed(TRAINED, None)))
    assert (found.causes, found.certain) == (("loading",), True)
    assert not [item for item in found.findings if item.cause == "engine"]


def test_a_table_of_another_version_is_no_word_against_server_and_source():
    """The installed source names what the server feeds, and that is what it reads best: fed well."""
    test = offline_of(made_measured(declared=WRONG))
    told = Resolved(states=TRAINED, sglang_version="0.5.12")
    found = decide(sound(offline=test, resolved=told))
    assert (found.place["rule"], found.place["feeding"], found.place["fed"]) == ("stale", "as_trained", "as_trained")
    assert found.causes == ()
    other = decide(Known(offline=offline_of(made_measured()), fed=fed(FED_WRONG, None), resolved=resolved_wrong()))
    assert (other.place["rule"], other.causes, other.certain) == ("stale", ("wiring",), True)


def resolved_wrong() -> Resolved:
    return Resolved(states=FED_WRONG, sglang_version="0.5.12")
