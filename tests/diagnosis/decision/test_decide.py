"""Whole decisions over real acceptance: the sound pair, the story, double faults, too little data, and one gap each."""

import dataclasses
import json
from dataclasses import replace

import click
import pytest

from orchestrator.compare.served_acceptance import acceptance
from orchestrator.diagnosis.changed_states import Changed
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.fix import is_outside
from orchestrator.diagnosis.decision.inputs import Known, Resolved
from remote_payload.schema.standalone import SharedTensorFacts
from tests.diagnosis.decision.scenes import (
    EACH,
    FED_WRONG,
    SLOWER,
    TRAINED,
    fed,
    offline,
    offline_of,
    predicted,
    served,
    sound,
    story,
)
from tests.support.made_measured import LATER, Made, Rows, made_measured
from tests.support.made_results import made_declared

NO_HEAD = (SharedTensorFacts(name="lm_head", stored=False, used="target", served="random"),)


def halved(requests, first=0):
    """The engine loses every second accepted draft of the prompts from `first` on."""

    def worse(item):
        if item.prompt < first or item.histogram is None:
            return item
        total = sum(item.histogram)
        deep = [count // 2 for count in item.histogram[1:]]
        histogram = (total - sum(deep), *deep)
        correct = sum(index * count for index, count in enumerate(histogram))
        return replace(item, histogram=histogram, correct_drafts=correct)

    return tuple(worse(item) for item in requests)


def dead(requests):
    return tuple(
        item if item.histogram is None else replace(item, histogram=(item.verify_steps,), correct_drafts=0)
        for item in requests
    )


def with_more_prompts(run):
    """The same with eight prompts for each: the same lengths, and narrower intervals."""

    def many(split):
        requests = tuple(replace(item, prompt=item.prompt + 100 * n) for n in range(8) for item in split.requests)
        return replace(split, requests=requests, acceptance=acceptance(requests))

    return replace(run, splits=tuple(many(split) for split in run.splits))


def test_a_sound_pair_is_healthy_with_its_numbers():
    found = decide(sound())
    assert (found.verdict, found.causes, found.certain) == ("healthy", (), True)
    assert found.next_runs == ()
    assert found.fix is None
    assert "2.83 served, 2.83 predicted on 12 training prompts, 36 of 36 requests identical" in found.headline
    assert "2.74 served, 2.74 predicted on 12 held-out prompts" in found.headline
    assert "120.0 against 90.0 tok/s (1.33x)" in found.headline
    assert "[embed, layer 2, layer 4], exactly those" in found.headline


def test_the_story_names_all_three_and_its_fix():
    found = decide(story())
    assert found.causes == ("wiring", "parameters", "economics")
    assert found.certain
    wiring, override, cost = found.named
    assert wiring.summary == "fc is fed with [layer 2, layer 4, layer 5] instead of [embed, layer 2, layer 4]"
    assert [round(item.value, 3) for item in wiring.evidence[:2]] == [0.779, 0.455]
    assert "asked for 16 draft tokens, the server runs with 2" in override.summary
    assert "cannot pay below accept length 2.2 to 2.6" in cost.summary
    assert "now 1.37, at most 2 with this draft, 1.78 foretold once mended" in cost.summary
    assert found.fix is not None
    assert found.fix.config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [-1, 1, 3]
    assert json.loads(found.fix.patch_json) == found.fix.config
    assert found.fix.can_be_applied
    assert [(edit.name, edit.value) for edit in found.fix.server] == [("speculative_num_draft_tokens", "2")]
    assert any("1.41 served, 1.41 predicted" in text for text in found.also)


@pytest.mark.parametrize("without", ["fed", "predicted", "served", "both"])
def test_the_wiring_is_named_with_less(without):
    less = {
        "fed": {"fed": None},
        "predicted": {"predicted": ()},
        "served": {"served": None, "predicted": (), "fed": None},
        "both": {"fed": None, "predicted": ()},
    }[without]
    found = decide(story(**less))
    assert found.causes[0] == "wiring"
    assert "fc is fed with [layer 2, layer 4, layer 5] instead of [embed, layer 2, layer 4]" in found.named[0].summary
    assert found.fix is not None
    assert found.fix.config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [-1, 1, 3]


def test_the_storys_target_is_spelled_for_its_own_class_without_any_rows():
    capture = replace(fed((3, 31, 59), (0, 3, 31)), target_class="KimiK25ForConditionalGeneration", target_layers=61)
    found = decide(Known(fed=capture))
    assert found.causes == ("wiring",)
    assert (
        found.named[0].summary == "fc is fed with [layer 3, layer 31, layer 59] instead of [embed, layer 3, layer 31], "
        "by its trainer's word alone"
    )
    assert not found.certain  # nobody measured it
    assert found.fix is not None
    assert found.fix.config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [0, 3, 31]
    assert found.fix.can_be_applied
    assert str(found.fix.rests_on).startswith("the trainer's word for [embed, layer 3, layer 31] alone")
    old = decide(Known(fed=replace(capture, sglang_version="0.5.10.post1"))).fix
    assert old is not None
    assert not old.can_be_applied
    assert "SGLang 0.5.15 to 0.5.23 reads these ids as meant, installed is 0.5.10.post1" in str(old.sglang)
    last = decide(Known(fed=replace(capture, trained=(3, 31, 61)))).fix
    assert last is not None
    assert "SGLang must be able to capture the trained states" in str(last.sglang)
    assert "cannot capture state 61" in str(last.sglang)
    assert not last.config


def test_states_in_another_order_need_other_weights_and_no_patch_is_made():
    capture = replace(fed((2, 4, 5), (4, 2, 5)), target_class="LlamaForCausalLM", target_layers=8)
    fix = decide(Known(fed=capture)).fix
    assert fix is not None
    assert not fix.can_be_applied
    assert "re-order fc's column blocks to [1, 0, 2]" in fix.by_hand[0]


@pytest.mark.parametrize(
    ("version", "valid", "outside"),
    [
        ("0.5.14", "SGLang 0.5.15 to 0.5.23", True),
        ("0.5.15", "SGLang 0.5.15 to 0.5.23", False),
        ("0.5.9", "SGLang 0.5.13 to 0.5.23", True),
        ("0.6.0", "SGLang 0.5.15 to 0.5.23", False),
        ("main", "SGLang 0.5.15 to 0.5.23", False),
        ("0.5.14", "no version", False),
    ],
)
def test_versions_are_numbers(version, valid, outside):
    assert is_outside(version, valid) is outside


def test_an_engine_that_loses_drafts_is_named_and_where():
    everywhere = decide(sound(served=served(change=halved)))
    assert everywhere.causes[0] == "engine"
    assert "below everywhere" in everywhere.rows
    assert everywhere.named[0].check == "K12"
    assert everywhere.named[0].effect is not None
    assert everywhere.named[0].effect > 0.5
    assert "from the first draft on" in everywhere.named[0].summary
    assert "request 0 (prompt 0): served" in everywhere.named[0].summary
    only = decide(sound(served=served(change=lambda some: halved(some, EACH))))
    assert only.causes[0] == "engine"
    assert "below on held-out prompts" in only.rows
    assert only.place["served_train"] == "as_predicted"


def test_wiring_and_engine_at_once():
    wrong = served("embed_story_wrong", change=halved)
    found = decide(story(served=wrong, predicted=predicted("wrong")))
    assert found.causes[:2] == ("wiring", "engine")


def test_loading_and_wiring_at_once():
    measured = replace(offline("wrong").measured)
    result = measured.result
    checkpoint = replace(result.checkpoint, shared=NO_HEAD)
    broken = offline_of(replace(measured, result=replace(result, checkpoint=checkpoint)))
    found = decide(story(offline=broken))
    assert found.causes == ("loading", "wiring", "parameters", "economics")


def test_a_generalization_gap_beside_an_override():
    gap = offline_of(made_measured(rows=Rows(count=24), heldout=Rows(count=24, seed="held-out", lift=-0.3)))
    found = decide(Known(offline=gap, served=served("embed_right", asked=(3, 1, 16))))
    assert found.causes == ("parameters", "generalization")
    assert found.place["heldout"] == "gap"


def test_a_drafter_that_pays_nothing_though_all_is_sound():
    found = decide(sound(served=served(spec=(60.0, 61.0, 59.0))))
    assert (found.verdict, found.causes) == ("economics", ("economics",))
    assert "loses" in found.rows


def test_slower_only_because_it_is_mis_fed_is_no_cause_of_its_own():
    wrong = served("embed_story_wrong", spec=(78.0, 78.1, 77.9))
    found = decide(story(served=wrong, predicted=predicted("wrong")))
    assert found.causes == ("wiring",)
    assert found.place["pays"] == "mendable"
    assert any("it would pay once mended" in text for text in found.also)


def test_nothing_accepted_is_named_only_where_it_is_explained():
    alone = decide(Known(served=served(change=dead)))
    assert "engine" not in alone.causes
    assert not alone.certain
    assert [run.step for run in alone.next_runs if run.decides] == ["standalone", "capture"]
    rule = decide(sound(served=served(change=dead), fed=None))
    assert "engine" not in rule.causes
    assert rule.next_runs[0].step == "capture"
    asked = decide(sound(served=served(change=dead)))
    assert asked.causes[0] == "engine"
    assert asked.named[0].severity == "fatal"


def test_a_drafter_that_knows_nothing_on_its_own_states_has_several_causes_and_none_is_named():
    poor = offline_of(made_measured((Made((0.3, 0.3, 0.3, 0.3)), Made((0.12, 0.1, 0.1, 0.1), LATER))))
    assert poor.wiring.verdict == "poor_fit"
    alone = decide(Known(offline=poor))
    assert alone.causes == ()
    assert not alone.certain
    assert {run.step for run in alone.next_runs if run.decides} == {"check_rows", "capture"}
    asked = decide(Known(offline=poor, fed=fed()))
    assert (asked.verdict, asked.causes, asked.certain) == ("cannot_tell", (), False)
    assert asked.next_runs[0].step == "check_rows"
    assert "its trainer's own accuracy tells" in asked.next_runs[0].why
    other = decide(Known(offline=poor, fed=fed(FED_WRONG)))
    assert (other.causes, other.certain, other.fix) == (("wiring",), False, None)
    assert other.next_runs[0].step == "check_rows"


def test_nothing_accepted_on_held_out_prompts_alone():
    some = served(change=lambda requests: requests[:EACH] + dead(requests[EACH:]))
    found = decide(sound(served=some))
    assert "below on held-out prompts" in found.rows
    assert found.causes[0] == "engine"
    assert "nothing that the drafter drafts is accepted" in found.named[0].summary
    untold = decide(sound(served=some, predicted=()))
    assert "dead in a sound place (held-out)" in untold.rows
    assert untold.causes[0] == "engine"
    assert "held-out prompts: accept length 1.00" in untold.named[0].summary


def test_the_running_server_is_right_and_the_rule_is_not():
    served_right = decide(story(fed=fed(TRAINED), served=None))
    assert "wiring" not in served_right.causes
    assert "rule against server" in served_right.rows
    assert not served_right.certain
    served_wrong = decide(sound(fed=fed(FED_WRONG), served=served("embed_story_wrong")))
    assert served_wrong.causes[0] == "wiring"
    assert "server against rule" in served_wrong.rows
    assert served_wrong.place["served_train"] == "untold"  # foretold of other states


def test_states_like_none_are_the_engines_and_never_for_certain():
    found = decide(sound(fed=fed((None,) * 3), served=None))
    assert (found.causes, found.certain) == (("engine",), False)
    assert "[?, ?, ?]" in found.named[0].summary
    assert found.next_runs[0].step == "check_rows"


@pytest.mark.parametrize(
    ("known", "step", "row"),
    [
        (lambda: Known(fed=fed((None,) * 3)), "standalone", "states like none, and nobody read the rows"),
        (lambda: sound(fed=fed((None,) * 3)), "check_rows", "states like none, and yet as foretold"),
        (lambda: sound(fed=fed((0, None, 4)), served=None), "other_rows", "some states like none"),
        (
            lambda: sound(fed=replace(fed(), exact=False, worst_error=0.5)),
            "check_rows",
            "states like none, and yet as foretold",
        ),
    ],
)
def test_states_like_none_name_nothing_where_something_else_may_be_behind_it(known, step, row):
    found = decide(known())
    assert (found.causes, found.certain, found.fix) == ((), False, None)
    assert row in found.rows
    assert step in [run.step for run in found.next_runs if run.decides]


def test_trained_states_in_other_numbers_are_the_engines_unless_they_cost_nothing():
    """A target that is served with a factor or a norm too many: the layers are right, the numbers are not."""
    half = Changed(words="x 0.50", residual=0.003, error=0.5)
    odd = replace(fed(), exact=False, changed=(None, half, None))
    found = decide(sound(fed=odd, served=None))
    assert (found.place["fed"], found.causes, found.certain) == ("changed", ("engine",), True)
    assert "[embed, layer 2 x 0.50, layer 4]: captured states in other numbers" in found.named[0].summary
    assert "leaves 0.3 % unexplained" in found.named[0].summary
    assert decide(Known(fed=odd)).causes == ()  # the rows may be those that are off
    immune = decide(sound(fed=odd))
    assert immune.verdict == "healthy"
    assert any("accepts as much with them" in text for text in immune.also)
    little = replace(odd, changed=(None, replace(half, words="x 0.95", error=0.05), None))
    near = decide(sound(fed=little))
    assert (near.verdict, near.place["fed"]) == ("healthy", "as_trained")
    assert any(item.severity == "minor" and "x 0.95" in item.summary for item in near.findings)
    wrong = decide(sound(fed=replace(fed(FED_WRONG), changed=(half, half, half)), served=None))
    assert set(wrong.causes) == {"wiring", "engine"}


@pytest.mark.parametrize(("error", "answer"), [(0.01, "as_trained"), (0.15, "as_trained"), (0.4, "unlike")])
def test_a_state_is_only_a_captured_one_within_what_formats_differ(error, answer):
    assert decide(sound(fed=replace(fed(), exact=False, worst_error=error))).place["fed"] == answer


def test_without_a_prediction_of_training_prompts_a_sound_pair_is_healthy_all_the_same():
    found = decide(sound(predicted=tuple(item for item in predicted() if item.split == "held-out")))
    assert (found.verdict, found.certain) == ("healthy", True)
    assert [run.step for run in found.next_runs] == ["predict"]
    without = decide(sound(predicted=tuple(item for item in predicted() if item.split == "train")))
    assert (without.verdict, without.certain) == ("cannot_tell", False)


def test_rule_and_server_are_held_against_each_other():
    agree = decide(sound(resolved=Resolved(states=TRAINED, sglang_version="0.5.23")))
    assert agree.verdict == "healthy"
    assert any(item.check == "K6" and item.outcome == "passed" for item in agree.checks)
    differ = decide(sound(resolved=Resolved(states=FED_WRONG, sglang_version="0.5.23")))
    assert differ.verdict == "healthy"  # the server itself is right
    assert any(item.check == "K6" and "but the running server feeds" in item.summary for item in differ.findings)
    untold = decide(sound(resolved=Resolved(states=None, sglang_version=None)))
    assert any(item.check == "K6" and item.outcome == "cannot_tell" for item in untold.checks)


def test_a_loss_is_only_the_engines_where_the_server_feeds_what_was_foretold():
    lossy = served(change=halved)
    alone = decide(sound(served=lossy, fed=None))
    assert "engine" not in alone.causes
    assert not alone.certain
    assert alone.next_runs[0].step == "capture"
    assert any("the server accepts less" in text for text in alone.also)
    by_source = decide(sound(served=lossy, fed=None, resolved=Resolved(states=TRAINED, sglang_version="0.5.23")))
    assert by_source.causes[0] == "engine"
    other = decide(sound(served=lossy, fed=None, resolved=Resolved(states=FED_WRONG, sglang_version="0.5.14")))
    assert other.causes[0] == "wiring"
    assert "engine" not in other.causes
    assert not other.certain
    assert "by the installed source fc is fed with [layer 2, layer 4, layer 5]" in other.named[0].summary


def test_the_installed_source_against_the_rule():
    found = decide(story(fed=None, served=None, resolved=Resolved(states=TRAINED, sglang_version="0.5.14")))
    assert "rule against source" in found.rows
    assert "wiring" not in found.causes
    assert not found.certain


def test_without_held_out_rows_the_served_lengths_stand_for_the_gap():
    test = offline(heldout=False)
    found = decide(sound(offline=test))
    assert found.place["heldout"] == "open"  # 12 prompts of each: 2.83 and 2.74 are not surely within 0.3
    assert (found.verdict, found.certain) == ("cannot_tell", False)
    many = tuple(
        replace(
            item, requests=tuple(replace(one, prompt=one.prompt + 100 * n) for n in range(8) for one in item.requests)
        )
        for item in predicted()
    )
    assert decide(sound(offline=test, served=with_more_prompts(served()), predicted=many)).place["heldout"] == "level"
    few = served(change=lambda some: some[:4] + some[EACH : EACH + 4])
    assert decide(sound(offline=test, served=few)).place["heldout"] == "unknown"
    assert decide(Known(offline=test, served=served(temperature=0.5))).place["heldout"] == "unknown"


def as_dead(item):
    """The prediction of a drafter that reads nothing of this split."""
    requests = tuple(replace(one, histogram=(one.verifies,)) for one in item.requests)
    return replace(item, requests=requests) if item.split == "held-out" else item


def test_a_served_length_tells_of_the_text_only_where_it_came_as_foretold():
    """An engine may lose drafts on held-out prompts alone, and no text mends that."""
    test, lossy = offline(heldout=False), served(change=lambda some: dead(halved(some, EACH))[EACH:] + some[:EACH])
    told = [item for item in predicted() if item.split == "train"]
    gap = decide(sound(offline=test, served=lossy, predicted=tuple(as_dead(item) for item in predicted())))
    assert (gap.place["heldout"], gap.causes, gap.certain) == ("gap", ("generalization",), True)
    assert "accept length 2.83 on training prompts, 1.00 on held-out ones" in gap.headline
    foretold = decide(sound(offline=test, served=lossy))
    assert (foretold.place["heldout"], foretold.causes) == ("open", ("engine",))
    for some in (
        Known(offline=test, served=lossy),
        Known(served=lossy, fed=fed()),
        sound(offline=test, served=served(change=lambda some: halved(some, EACH)), predicted=told),
    ):
        found = decide(some)
        assert (found.place["heldout"], found.causes, found.certain) == ("untold", (), False)
        assert "predict" in [run.step for run in found.next_runs]
        assert any("whether the text is why, or what the server loses, is not known" in text for text in found.also)
    unfound = decide(sound(offline=test, served=lossy, predicted=tuple(told)))
    assert unfound.causes == ("engine",)


def test_where_two_sets_of_states_read_alike_neither_is_called_the_trained_one():
    alike = (Made(), Made(slots=(0, 1, 3)), Made((0.45, 0.4, 0.4, 0.4), LATER))
    wrong = {"declared": made_declared(FED_WRONG, LATER, config_ids=(1, 3, 4))}
    test = offline_of(made_measured(alike, **wrong))
    assert test.wiring.verdict == "mis_wired"
    found = decide(Known(offline=test, fed=fed(FED_WRONG, None)))
    assert found.causes == ("wiring",)
    assert "[embed" not in found.named[0].summary
    assert (found.place["fed"], found.place["rule"], found.certain) == ("open", "agrees", True)  # served as it was read
    assert found.fix is None
    other = decide(Known(offline=test, fed=fed((0, 4, 5), None)))
    assert "[embed, layer 4, layer 5]" in other.headline
    assert not other.certain  # what is fed was neither read nor named by the rule


def test_a_rule_that_nobody_knows_is_made_up_for_by_the_running_server():
    unknown = made_declared(None, None, config_ids=(1, 3, 4), target_class="OddForCausalLM")
    test = offline_of(made_measured(declared=unknown))
    assert decide(Known(offline=test)).causes == ()
    found = decide(Known(offline=test, fed=fed(FED_WRONG, None)))
    assert found.causes == ("wiring",)
    assert "instead of [embed, layer 2, layer 4]" in found.named[0].summary


def test_what_a_wiring_fault_costs_is_told_request_by_request():
    (cost, _) = [item for item in decide(story()).named[0].evidence if "minus foretold of the best" in item.name]
    assert cost.value == pytest.approx(-0.348, abs=0.001)
    assert cost.high is not None
    assert cost.high < 0


def test_nothing_known_says_what_to_run_first():
    found = decide(Known())
    assert (found.verdict, found.causes, found.certain, found.fix) == ("cannot_tell", (), False, None)
    assert found.headline.startswith("cannot tell yet: nothing was measured; next: the standalone test")
    assert found.next_runs[0].step == "standalone"
    assert found.next_runs[0].command[:4] == ("eagle3-remote", "run", "standalone", "--host")
    costs = [run.cost for run in found.next_runs if not run.decides]
    assert costs == sorted(costs, key=("offline", "capture", "serve").index)


@pytest.mark.parametrize(
    "known",
    [
        Known(),
        Known(offline=offline("wrong", heldout=False)),
        Known(served=served("embed_story_wrong")),
        Known(served=served(change=dead)),
        sound(served=served(change=halved), fed=None),
        sound(served=served(plain=(90.0, 118.0, 132.0))),
        Known(offline=offline_of(made_measured(rows=Rows(count=3)))),
    ],
)
def test_what_to_run_next_are_commands_that_there_are(known):
    from orchestrator.cli.run import run as group_of_runs  # noqa: PLC0415

    found = decide(known)
    assert found.next_runs
    for one in found.next_runs:
        program, group, kind, *words = one.command
        assert (program, group) == ("eagle3-remote", "run")
        command = group_of_runs.get_command(click.Context(group_of_runs), kind)
        known_flags = {flag for option in command.params for flag in option.opts}
        flags = [word for word in words if word.startswith("--")]
        assert set(flags) <= known_flags, set(flags) - known_flags
        assert len(flags) == len(set(flags))


def test_the_next_server_is_the_one_that_was_measured():
    asked = [f"--{name}" for name in ("num-steps", "eagle-topk", "num-draft-tokens", "dtype")]
    known = sound(served=served(plain=(90.0, 118.0, 132.0), dtype="bfloat16"))
    of_servers = [run.command for run in decide(known).next_runs if run.cost != "offline"]
    assert of_servers
    for words in of_servers:
        assert [words[words.index(flag) + 1] for flag in asked] == ["3", "1", "4", "bfloat16"]
    nothing = [run.command for run in decide(Known()).next_runs]
    assert not any(flag in words for words in nothing for flag in asked)


def test_few_rows_and_prompts_name_nothing():
    few = offline_of(made_measured(rows=Rows(count=3), heldout=Rows(count=3, seed="held-out")))
    short = served(spec=(119.0,), plain=(90.0,), change=lambda some: some[:3] + some[EACH : EACH + 3])
    found = decide(Known(offline=few, served=short, predicted=predicted()))
    assert found.causes == ()
    assert found.verdict == "cannot_tell"
    assert found.place["served_train"] == "open"
    assert found.place["heldout"] == "open"
    assert found.place["pays"] == "open"
    assert {"more_heldout", "more_prompts", "repeats"} <= {run.step for run in found.next_runs}


@pytest.mark.parametrize("plain", [(90.0, 118.0, 132.0), (110.0, 131.0, 119.5)])
def test_overlapping_speeds_name_no_economics(plain):
    found = decide(sound(served=served(plain=plain)))
    assert found.causes == ()
    assert found.place["pays"] == "open"
    assert not found.certain
    assert [run.step for run in found.next_runs] == ["repeats"]


def test_a_run_that_is_no_measurement_names_nothing_of_the_server():
    failed = served(
        change=lambda some: (*some[:-1], replace(some[-1], error="HTTP 503", histogram=None, verify_steps=None))
    )
    found = decide(sound(served=failed))
    assert found.causes == ()
    assert found.place["served_train"] == "untold"
    assert found.place["pays"] == "open"
    assert any(text.startswith("doubtful: 3") for text in found.also)


def test_rows_that_lie_come_first_and_no_config_is_changed():
    measured = offline("wrong").measured
    slots = tuple(replace(slot, equals_slot=2 if slot.slot == 3 else None) for slot in measured.result.rows.slots)
    result = replace(measured.result, rows=replace(measured.result.rows, slots=slots))
    found = decide(Known(offline=offline_of(replace(measured, result=result))))
    assert found.causes == ("data",)
    assert not found.certain
    assert found.fix is None
    assert found.next_runs[0].step in ("check_rows", "more_rows")


def test_every_finding_can_be_refuted_and_has_a_remedy():
    for known in (story(), sound(served=served(change=halved)), sound(served=served(spec=SLOWER))):
        found = decide(known)
        for item in found.named:
            assert item.refuted_by
            assert item.remedy
            assert len(item.evidence) >= 2
        assert dataclasses.asdict(found)
