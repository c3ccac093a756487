"""What is said before anything is served: the asked shape, two config.json, and what a step is known to cost."""

import json
from dataclasses import replace

import pytest

from orchestrator.compare.step_cost import StepCost
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.from_capture import resolved_by
from orchestrator.diagnosis.decision.inputs import Known, Resolved
from orchestrator.diagnosis.decision.planned import EarlierCost, Planned
from orchestrator.diagnosis.installed_ids import Source
from tests.diagnosis.decision.scenes import fed, offline, served, sound, story
from tests.diagnosis.test_effective_capture import LLAMA, rule

ASKED = Planned(num_steps=1, eagle_topk=1, num_draft_tokens=16, is_chain=True, sglang_version="0.5.23",
                forces_draft_tokens=True)  # fmt: skip
STORED = StepCost(base=1.47, per_step=0.16, source="eagle3.toml")


def test_the_override_is_named_before_anything_runs_and_leaves_the_rest_to_be_looked_at():
    found = decide(Known(planned=ASKED))
    assert (found.causes, found.certain) == (("parameters",), False)
    assert "asked for 16 draft tokens, the server will run with 2" in found.named[0].summary
    assert any("--num-steps 5 --eagle-topk 4 --num-draft-tokens 16" in line for line in found.named[0].remedy)
    assert found.fix is not None
    assert [(edit.name, edit.value) for edit in found.fix.server] == [("speculative_num_draft_tokens", "2")]


@pytest.mark.parametrize(
    "sane",
    [
        replace(ASKED, num_draft_tokens=2),
        replace(ASKED, num_draft_tokens=None),
        replace(ASKED, eagle_topk=4, is_chain=False),
        replace(ASKED, forces_draft_tokens=False, sglang_version="0.4.5"),  # takes both as they are given
    ],
)
def test_a_shape_that_is_taken_as_it_is_asked_for(sane):
    assert decide(Known(planned=sane)).causes == ()


def test_where_no_source_was_read_the_versions_that_do_so_are_named():
    (override,) = decide(Known(planned=replace(ASKED, sglang_version=None, forces_draft_tokens=None))).named
    assert "0.4.8 and later" in str(override.evidence[2].value)


def test_the_storys_three_causes_before_a_server_was_started():
    found = decide(Known(offline=offline("wrong"), planned=ASKED, cost=replace(STORED, base=3.5)))
    assert found.causes == ("wiring", "parameters", "economics")
    assert found.certain
    assert "cannot pay below accept length 3.66 at this step cost (eagle3.toml): at most 2 with 1 draft step" in (
        found.named[2].summary
    )


def test_the_version_of_the_server_that_was_asked_is_known():
    unread = replace(ASKED, sglang_version=None, forces_draft_tokens=None)
    (told,) = [item for item in decide(Known(planned=unread, fed=fed())).named if item.cause == "parameters"]
    assert any("0.5.23: not read" in str(item.value) for item in told.evidence)


def test_what_the_server_tells_stands_before_what_was_foreseen():
    assert decide(story(planned=ASKED, cost=STORED)).causes == decide(story()).causes
    told = [item for item in decide(story(planned=ASKED)).named if item.cause == "parameters"]
    assert len(told) == 1
    assert "runs with 2" in told[0].summary


def test_an_earlier_benchmark_says_what_a_step_costs_at_its_own_steps_alone():
    three = replace(ASKED, num_steps=3, num_draft_tokens=4)
    earlier = EarlierCost(run_id="b1", steps=3, ratio=3.95, low=3.7, high=4.1)
    known = Known(offline=offline(), planned=three, earlier=earlier)
    assert decide(known).place["pays"] == "foreseen_loses"
    assert "3.70 to 4.10 at this step cost (run b1)" in decide(known).headline
    r = decide(known).named[0].evidence[0]
    assert (r.name, r.value, r.low, r.high) == ("break-even accept length r at 3 draft steps", 3.95, 3.7, 4.1)
    assert decide(replace(known, earlier=replace(earlier, low=1.2, high=1.4))).place["pays"] == "foreseen_pays"
    assert decide(replace(known, earlier=replace(earlier, low=2.5, high=3.0))).place["pays"] == "unknown"
    assert decide(replace(known, earlier=replace(earlier, steps=2))).place["pays"] == "unknown"


def configs(draft, target):
    return replace(ASKED, num_draft_tokens=2, draft_config=json.dumps(draft), target_config=json.dumps(target))


def test_another_targets_drafter_is_told_by_its_width():
    found = decide(Known(planned=configs({"hidden_size": 4096}, {"text_config": {"hidden_size": 7168}})))
    assert found.causes == ("loading",)
    assert "states of 4096 numbers, this target's have 7168" in found.headline
    for draft in ({"hidden_size": 4096, "target_hidden_size": 7168}, {"transformer_layer_config": {}}, [], {}):
        assert decide(Known(planned=configs(draft, {"hidden_size": 7168}))).causes == ()


def test_a_source_by_which_the_server_ends_at_its_start():
    fails = Resolved(states=None, sglang_version="0.5.10", problem="before layer 0 there is no residual", fails=True)
    found = decide(Known(resolved=fails))
    assert "the server does not come up with this drafter: before layer 0" in found.headline
    assert "does not come up" not in decide(sound(resolved=fails)).headline  # it came up


@pytest.mark.parametrize(
    ("columns", "ids", "told"),
    [
        (192, None, None),
        (128, None, "SGLang makes its fc for 192, 3 states of 64, as the config names none"),
        (192, [1, 3], "SGLang makes its fc for 128, 2 states of 64 by the ids of `eagle_config`"),
        (200, None, "no multiple of the 64"),
    ],
)
def test_an_fc_that_takes_other_states_than_are_captured_is_named_before_a_server_is_started(columns, ids, told):
    named = {} if ids is None else {"eagle_config": {"eagle_aux_hidden_state_layer_ids": ids}}
    draft = {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 64, **named}
    pair = configs(draft, {"architectures": [LLAMA], "hidden_size": 64, "num_hidden_layers": 8})
    read = replace(rule("0.5.23", LLAMA), counts_states=True)
    resolved = resolved_by(read, pair.draft_config, pair.target_config)
    planned = replace(pair, fc_shape=(64, columns))
    known = Known(planned=planned, resolved=resolved, source=Source(rule=read, target_config=pair.target_config))
    found = decide(known)
    assert found.causes == (() if told is None else ("loading",))
    assert (told or "as many as are captured") in " ".join(item.summary for item in found.checks)
    assert decide(replace(known, fed=fed())).causes == ()  # it came up


def test_an_fc_of_one_state_is_named_before_a_server_and_beside_one_that_runs():
    """SGLang applies fc only where its input is another width than the drafter's: the server comes up and skips it."""
    named = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [3]}}
    draft = {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 64, **named}
    pair = configs(draft, {"architectures": [LLAMA], "hidden_size": 64, "num_hidden_layers": 8})
    read = replace(rule("0.5.23", LLAMA), counts_states=True)
    resolved = resolved_by(read, pair.draft_config, pair.target_config)
    planned = replace(pair, fc_shape=(64, 64))
    known = Known(planned=planned, resolved=resolved, source=Source(rule=read, target_config=pair.target_config))
    for told in (decide(known), decide(replace(known, fed=fed()))):
        assert told.causes == ("loading",)
        assert "the server comes up with this drafter and does not use its fc" in told.headline
        assert "does not come up" not in told.headline


def test_a_sound_pair_whose_speed_decides_nothing_is_sound():
    found = decide(sound(served=served(spec=(60.0,))))
    assert (found.verdict, found.certain, found.is_sound) == ("sound", False, True)
    slower = decide(sound(served=served(spec=(60.0, 61.0, 59.0))))
    assert (slower.verdict, slower.is_sound) == ("economics", True)
    assert not decide(story()).is_sound
