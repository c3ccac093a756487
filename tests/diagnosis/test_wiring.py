import re
from dataclasses import replace

import pytest

from orchestrator.diagnosis.measured import gather
from orchestrator.diagnosis.verdict import WiringVerdict
from orchestrator.diagnosis.wiring import judge as judge_measured
from orchestrator.errors import InvalidRunError
from remote_payload.schema import DeclaredWiring
from remote_payload.schema.standalone import GraphFlag
from tests.support.made_measured import WORSE, Made, Rows, made_measured
from tests.support.made_results import made_declared, made_hits, made_readings, made_result, made_row

STORY = {((0, 1, 2), 1): 0.75, ((1, 2, 3), 1): 0.30, ((0, 2, 1), 1): 0.45}
EMBED = (0, 1, 2)
LATER = (1, 2, 3)


def judge(
    shares: dict[tuple[tuple[int, ...], int], float],
    declared: DeclaredWiring,
    *,
    states: tuple[int, ...] | None = (0, 2, 4, 5),
    rows: int = 12,
) -> WiringVerdict:
    row_facts, hits, readings = made_readings(shares, rows=rows)
    return judge_measured(gather(made_result(readings, declared, states=states, rows=rows), (row_facts, hits)))


def test_the_story_is_mis_wired_and_the_config_line_is_spelled() -> None:
    verdict = judge(STORY, made_declared((2, 4, 5), LATER, config_ids=(1, 3, 4)))
    assert verdict.verdict == "mis_wired"
    assert verdict.best.facts.states == (0, 2, 4)
    assert verdict.declared is not None
    assert verdict.declared.figures.first_step.value == pytest.approx(0.30, abs=0.05)
    assert verdict.best.figures.first_step.value == pytest.approx(0.75, abs=0.05)
    assert verdict.difference is not None
    assert verdict.difference.low is not None
    assert 0.3 < verdict.difference.low < verdict.difference.value < 0.6  # type: ignore[operator]
    assert verdict.ratio is not None
    assert verdict.ratio.low is not None
    assert verdict.ratio.low > 0.5
    assert '"eagle_aux_hidden_state_layer_ids": [-1, 1, 3]' in verdict.fix[0]
    assert "0.5.22" in verdict.fix[1]
    assert "now: ids [1, 3, 4], feeding states 2,4,5" in verdict.fix[2]


def test_the_same_drafter_with_the_right_ids_is_sound() -> None:
    verdict = judge(STORY, made_declared((0, 2, 4), EMBED, config_ids=(-1, 1, 3)))
    assert verdict.verdict == "sound"
    assert verdict.against == "runner-up"
    assert verdict.fix == ()
    assert verdict.spelling is None


def test_kimi_spells_the_embedding_as_zero() -> None:
    declared = made_declared(
        (3, 31, 59), LATER, config_ids=(2, 30, 58), target_class="KimiK25ForConditionalGeneration", layers=61
    )
    verdict = judge(STORY, declared, states=(0, 3, 31, 59))
    assert verdict.verdict == "mis_wired"
    assert "[0, 3, 31]" in verdict.fix[0]
    assert "0.5.15" in verdict.fix[1]


def test_ids_in_vllms_numbering_are_named_and_respelled() -> None:
    declared = made_declared((1, 3, 5), None, config_ids=(0, 2, 4))
    verdict = judge(STORY, declared)
    assert verdict.verdict == "mis_wired"
    assert "vLLM's numbering; SGLang would feed states 1,3,5, the drafter reads best with states embed,2,4" in (
        verdict.headline
    )
    assert '"eagle_aux_hidden_state_layer_ids": [-1, 1, 3]' in verdict.fix[0]
    assert any("states 1,3,5 are not all in these rows" in line for line in verdict.fix)
    other = judge(STORY, replace(declared, config_ids=(0, 2, 5), captured=(1, 3, 6)))
    assert other.verdict == "declared_not_captured"  # the ids are not those of the best reading
    weak = {wiring: share / 3 for wiring, share in STORY.items()}
    assert judge(weak, declared).verdict == "declared_not_captured"


def test_the_same_states_beside_another_token_are_not_called_other_states() -> None:
    shifted = {(LATER, 2): 0.75, (LATER, 1): 0.15}
    verdict = judge(shifted, made_declared((2, 4, 5), LATER, config_ids=(1, 3, 4)))
    assert verdict.verdict == "mis_wired"
    assert "token t+2 beside state t" in verdict.headline
    assert "other states" not in verdict.headline


def test_states_that_the_config_denies_cannot_be_served() -> None:
    declared = replace(
        made_declared((), None, config_ids=(-1, 1, 3)),
        rule="the final state alone (use_aux_hidden_state: false)",
        problem="`use_aux_hidden_state: false` captures no states",
    )
    verdict = judge(STORY, declared)
    assert verdict.verdict == "cannot_serve"
    assert verdict.headline.startswith("cannot be served as configured: `use_aux_hidden_state: false`")
    assert '"use_aux_hidden_state": true, "eagle_aux_hidden_state_layer_ids": [-1, 1, 3]' in verdict.fix[0]
    assert "now: ids [-1, 1, 3], feeding the final state alone (use_aux_hidden_state: false)" in verdict.fix
    assert judge(STORY, declared, states=None).verdict == "cannot_serve"


def test_versions_that_a_sound_config_needs_are_told() -> None:
    needs = replace(made_declared((0, 2, 4), EMBED), valid_for="SGLang 0.5.22 to 0.5.23; earlier ones fail on id -1")
    assert "(SGLang 0.5.22 to 0.5.23; earlier ones fail on id -1)" in judge(STORY, needs).headline


def test_close_readings_cannot_be_separated() -> None:
    close = {((1, 2, 3), 1): 0.50, ((0, 1, 2), 1): 0.50}
    ahead = judge(close, made_declared((0, 2, 4), EMBED))
    assert ahead.best is not ahead.declared
    assert ahead.verdict == "cannot_separate"
    assert "cannot separate" in ahead.headline


def test_a_reading_that_reads_poorly_is_never_called_sound() -> None:
    weak = judge({((0, 1, 2), 1): 0.36, ((0, 2, 1), 1): 0.1}, made_declared((0, 2, 4), EMBED))
    assert weak.verdict == "poor_fit"
    assert weak.best is weak.declared
    assert "no reading fits well: the best one has 3" in weak.headline
    assert "too little to call anything sound" in weak.headline
    assert "states embed,2,4 read best, but change no config" in weak.fix[0]
    assert "loss mask" in weak.fix[0]
    assert "norms swapped" in weak.fix[1]
    assert judge({((0, 1, 2), 1): 0.56, ((0, 2, 1), 1): 0.1}, made_declared((0, 2, 4), EMBED)).verdict == "sound"


def test_no_ids_are_named_for_a_reading_that_reads_poorly() -> None:
    weak = judge({((0, 1, 3), 1): 0.36, (LATER, 1): 0.1}, made_declared((2, 4, 5), LATER))
    assert weak.verdict == "mis_wired"
    assert "nor does any reading fit well (3" in weak.headline
    assert weak.spelling is None
    assert not [line for line in weak.fix if "set in" in line]


def test_no_ids_are_named_while_other_states_read_as_well() -> None:
    near = {((0, 1, 3), 1): 0.59, ((0, 1, 2), 1): 0.59, (LATER, 1): 0.30}
    verdict = judge(near, made_declared((2, 4, 5), LATER))
    assert verdict.verdict == "mis_wired"
    assert verdict.spelling is None
    assert len(verdict.fix) == 2
    assert "capture more rows" in verdict.fix[0]
    assert re.search(r"states embed,2,5 \(.* would be ids \[-1, 1, 4\]\)", verdict.fix[0])
    assert re.search(r"states embed,2,4 \(.* would be ids \[-1, 1, 3\]\)", verdict.fix[0])
    assert not [line for line in verdict.fix if line.startswith("set in")]
    clear = judge(near | {((0, 1, 3), 1): 0.40}, made_declared((2, 4, 5), LATER))
    assert '"eagle_aux_hidden_state_layer_ids": [-1, 1, 3]' in clear.fix[0]


def test_a_tie_counts_for_the_declared_reading() -> None:
    never = {((0, 1, 2), 1): -1.0, ((1, 2, 3), 1): -1.0}
    verdict = judge(never, made_declared((2, 4, 5), LATER))
    assert verdict.best is verdict.declared
    assert verdict.verdict == "nothing_fits"
    assert verdict.spelling is None


def test_the_declared_reading_is_sound_also_where_another_reads_as_well() -> None:
    close = {((1, 2, 3), 1): 0.52, ((0, 1, 2), 1): 0.50}
    verdict = judge(close, made_declared((2, 4, 5), LATER))
    assert verdict.best is verdict.declared
    assert verdict.verdict == "sound"
    assert "the runner-up may read as well" in verdict.headline
    assert "runner-up" not in judge(STORY, made_declared((0, 2, 4), EMBED)).headline


def test_a_certain_difference_of_next_to_nothing_is_no_wiring_fault() -> None:
    mask = [0] * 10 + [1] * 200
    names = {EMBED: "slots 0,1,2 offset +1", LATER: "slots 1,2,3 offset +1"}
    rows = tuple(made_row(row, mask) for row in range(12))
    hits = [made_hits(names[EMBED], row, mask, 3, lambda j, s: j % 2 == 0 or j == 11) for row in range(12)]
    hits += [made_hits(names[LATER], row, mask, 3, lambda j, s: j % 2 == 0) for row in range(12)]
    facts = made_readings({(EMBED, 1): 0.5, (LATER, 1): 0.5})[2]
    verdict = judge_measured(gather(made_result(facts, made_declared((2, 4, 5), LATER)), (rows, hits)))
    assert verdict.difference is not None
    assert (verdict.difference.low or 0.0) > 0  # one position in 200, in every row alike
    assert verdict.verdict == "cannot_separate"


def test_too_few_rows_cannot_tell_however_large_the_difference() -> None:
    verdict = judge(STORY, made_declared((2, 4, 5), LATER), rows=3)
    assert verdict.verdict == "cannot_separate"
    assert "3 rows are too few" in verdict.headline


def test_a_drafter_that_predicts_as_well_without_its_states_fits_nothing() -> None:
    noise = made_measured((Made((0.14, 0.1, 0.1, 0.1)), Made((0.12, 0.1, 0.1, 0.1), LATER)))
    control = replace(noise.result.readings[-1], first_step_hits=40, paired_first_step_hits=28)
    assert control.changes == ("states=zeroed",)
    unlabelled = replace(noise.result.rows, states=None)
    told = replace(noise.result, rows=unlabelled, readings=(*noise.result.readings[:-1], control))
    verdict = judge_measured(replace(noise, result=told))
    assert verdict.verdict == "nothing_fits"
    assert "no more than the drafter has without any states" in verdict.headline
    needed = replace(told, readings=(*told.readings[:-1], replace(control, first_step_hits=20)))
    assert judge_measured(replace(noise, result=needed)).verdict == "unlabelled"


def test_unlabelled_states_give_the_best_alone() -> None:
    verdict = judge(STORY, made_declared((2, 4, 5), None), states=None)
    assert verdict.verdict == "unlabelled"
    assert verdict.declared is None
    assert verdict.best.facts.slots == EMBED
    assert "--states" in verdict.fix[0]


def test_declared_states_that_were_not_captured_are_named() -> None:
    verdict = judge(STORY, made_declared((2, 4, 6), None))
    assert verdict.verdict == "declared_not_captured"
    assert "2,4,6" in verdict.headline
    assert verdict.fix == ("capture rows that also hold the state 6 and run again: only then the two compare",)
    assert verdict.spelling is None


def test_labels_that_are_off_by_one_are_ruled_out_before_ids_are_respelled() -> None:
    later = {(LATER, 1): 0.75, (EMBED, 1): 0.3}
    verdict = judge(later, made_declared((2, 4, 5), None, config_ids=(1, 3, 4)), states=(0, 1, 3, 4))
    assert verdict.verdict == "mis_wired"
    assert "off by one, `--states embed,2,4,5`" in verdict.fix[0]
    assert "[0, 2, 3]" in verdict.fix[1]


@pytest.mark.parametrize("labels", [(0, 1, 3, 4), (0, 3, 5, 6)])
def test_labels_that_are_off_by_one_are_suspected(labels: tuple[int, ...]) -> None:
    verdict = judge(STORY, made_declared((2, 4, 5), None), states=labels)
    assert verdict.verdict == "declared_not_captured"
    assert "off by one, `--states embed,2,4,5`" in verdict.fix[0]
    assert len(judge(STORY, made_declared((2, 4, 8), None), states=labels).fix) == 1


def test_no_weight_is_re_ordered_while_what_serving_feeds_was_not_captured() -> None:
    near = {((0, 2, 1), 1): 0.31, ((0, 1, 2), 1): 0.30}  # a right drafter of embed,2,4 on rows of 2,4,5
    verdict = judge(near, made_declared((0, 2, 4), None, config_ids=(-1, 1, 3)), states=(2, 4, 5))
    assert verdict.verdict == "declared_not_captured"
    assert verdict.fix == ("capture rows that also hold the state embed and run again: only then the two compare",)


@pytest.mark.parametrize("best", [(0, 2, 1), (0, 1, 2)])
def test_a_drafter_of_other_states_is_suspected_where_order_hardly_matters(best: tuple[int, ...]) -> None:
    near = {((0, 2, 1), 1): 0.30, ((0, 1, 2), 1): 0.30, (best, 1): 0.31}
    verdict = judge(near, made_declared((2, 4, 5), EMBED, config_ids=(1, 3, 4)), states=(2, 4, 5))
    assert verdict.verdict == "poor_fit"
    assert "no reading fits well" in verdict.headline
    assert "not captured" in verdict.headline
    assert "`embed`" in verdict.fix[0]
    assert "more rows of states 2,4,5 cannot help" in verdict.fix[0]
    assert verdict.spelling is None


def test_poor_readings_whose_order_matters_are_no_reason_to_capture_other_states() -> None:
    apart = {((0, 1, 2), 1): 0.45, ((0, 2, 1), 1): 0.25}
    sound = judge(apart, made_declared((2, 4, 5), EMBED), states=(2, 4, 5))
    assert sound.verdict == "poor_fit"
    assert "not captured" not in sound.headline
    assert not [line for line in sound.fix if "capture rows" in line]
    assert judge(apart, made_declared((2, 4, 5), (0, 2, 1)), states=(2, 4, 5)).verdict == "mis_wired"


def test_nothing_is_advised_on_a_poor_reading_that_cannot_be_served() -> None:
    near = {((0, 2, 1), 1): 0.31, ((0, 1, 2), 1): 0.30}
    verdict = judge(near, made_declared(None, None, problem="captured 2 of 3"), states=(2, 4, 5))
    assert verdict.verdict == "unknown_rule"
    assert "nor does any reading fit well" in verdict.headline
    assert not [line for line in verdict.fix if "config.json" in line or "fc.weight" in line]


def test_an_order_that_can_be_served_is_preferred_to_one_as_good_that_cannot() -> None:
    near = {((0, 2, 1), 1): 0.76, ((0, 1, 2), 1): 0.75, ((1, 2, 3), 1): 0.30}
    verdict = judge(near, made_declared((2, 4, 5), LATER))
    assert verdict.verdict == "mis_wired"
    assert '"eagle_aux_hidden_state_layer_ids": [-1, 1, 3]' in verdict.fix[0]
    assert not [line for line in verdict.fix if "fc.weight" in line]


def test_weights_are_only_re_ordered_for_a_reading_that_is_clearly_right() -> None:
    declared = made_declared((2, 4, 5), None, problem="captured 2 of 3")
    unsure = judge({((2, 0, 1), 1): 0.60, ((1, 0, 2), 1): 0.595}, declared)
    assert unsure.verdict == "cannot_serve"
    assert len(unsure.fix) == 1
    assert "before changing any weight" in unsure.fix[0]


def test_a_single_row_is_one() -> None:
    assert "1 row is too few" in judge(STORY, made_declared((2, 4, 5), LATER), rows=1).headline


def test_a_config_that_cannot_be_served_says_so() -> None:
    declared = made_declared(
        (2, 30),
        None,
        config_ids=(-1, 2, 30),
        target_class="DeepseekV3ForCausalLM",
        layers=61,
        problem="captured 2 of 3",
    )
    verdict = judge(STORY, declared, states=(0, 2, 30, 58))
    assert verdict.verdict == "cannot_serve"
    assert "captured 2 of 3" in verdict.headline
    assert "[0, 2, 30]" in verdict.fix[0]


def test_an_unknown_target_class_is_not_guessed_at() -> None:
    declared = made_declared(None, None, target_class="MambaForCausalLM", problem="no rule is known for Mamba")
    verdict = judge(STORY, declared)
    assert verdict.verdict == "unknown_rule"
    assert "no ids are known" in verdict.fix[0]


def test_an_order_sglang_cannot_feed_needs_the_fc_reordered() -> None:
    verdict = judge({((2, 0, 1), 1): 0.75, ((1, 2, 3), 1): 0.3}, made_declared((2, 4, 5), LATER))
    assert verdict.verdict == "mis_wired"
    assert "[1, 2, 0]" in verdict.fix[0]
    assert "[-1, 1, 3]" in verdict.fix[1]


def test_another_token_offset_is_beyond_any_config() -> None:
    verdict = judge({((0, 1, 2), 0): 0.75, ((1, 2, 3), 1): 0.3}, made_declared((2, 4, 5), LATER))
    assert verdict.verdict == "mis_wired"
    assert "t+0" in verdict.fix[0]
    assert "trained again" in verdict.fix[0]
    assert len(verdict.fix) == 1


def test_top_level_ids_are_pointed_at() -> None:
    declared = replace(made_declared((2, 4, 5), LATER), ignored_top_level_ids=(-1, 1, 3))
    verdict = judge(STORY, declared)
    assert "no ids, so the defaults hold" in verdict.fix[2]
    assert "never read by SGLang" in verdict.fix[3]


def test_more_rivals_on_all_rows_widen_the_interval_that_decides() -> None:
    declared = made_declared((2, 4, 5), LATER)
    two = judge({(EMBED, 1): 0.75, (LATER, 1): 0.3}, declared)
    four = judge({(EMBED, 1): 0.75, (LATER, 1): 0.3, ((0, 2, 1), 1): 0.2, ((0, 1, 3), 1): 0.2}, declared)
    assert two.difference is not None
    assert four.difference is not None
    assert (two.difference.confidence, four.difference.confidence) == (0.95, pytest.approx(1 - 0.05 / 3))
    assert two.difference.value == four.difference.value
    assert four.difference.low < two.difference.low  # type: ignore[operator]


def test_a_large_difference_on_unlike_rows_is_not_waved_through_as_nothing() -> None:
    mask = [0] * 10 + [1] * 40
    rows = tuple(made_row(row, mask) for row in range(5))
    facts = made_readings({(EMBED, 1): 0.5, (LATER, 1): 0.5})[2]
    hits = [made_hits(facts[0].name, row, mask, 3, lambda j, s: True) for row in range(5)]
    hits += [made_hits(facts[1].name, row, mask, 3, lambda j, s, row=row: row > 0) for row in range(5)]
    verdict = judge_measured(gather(made_result(facts, made_declared((2, 4, 5), LATER), rows=5), (rows, hits)))
    assert verdict.verdict == "cannot_separate"
    assert "looks worse" in verdict.headline
    assert verdict.fix == ("capture more rows and run again",)


def test_a_result_without_a_full_reading_is_no_result() -> None:
    row_facts, hits, readings = made_readings({((0, 1, 2), 1): 0.5})
    screened = [replace(fact, stage="screen") for fact in readings]
    with pytest.raises(InvalidRunError, match="measured on all rows"):
        judge_measured(gather(made_result(screened, made_declared((0, 2, 4), EMBED)), (row_facts, hits)))
    with pytest.raises(InvalidRunError, match="expected hits of the reading"):
        judge_measured(gather(made_result(readings, made_declared((0, 2, 4), EMBED)), (row_facts, ())))


def test_a_computation_that_is_served_otherwise_is_mis_read() -> None:
    readings = (Made(changes=("feedback=normed",)), Made((0.75, 0.35, 0.35, 0.35)), WORSE)
    verdict = judge_measured(made_measured(readings))
    assert verdict.verdict == "mis_read"
    assert verdict.headline == (
        "mis-read: serving would compute feedback=raw, the drafter reads best with feedback=normed"
    )
    assert verdict.against == "declared"
    assert verdict.fix[0] == 'set in the drafter\'s config.json: "norm_output": true'
    (effect,) = verdict.misread
    assert (effect.keys, effect.best, effect.served) == (("feedback",), ("normed",), ("raw",))


def test_what_is_served_is_found_by_its_changes() -> None:
    declared = replace(made_declared((0, 2, 4), EMBED), changes=("residual=raw",))
    served = Made((0.5, 0.4, 0.4, 0.4), changes=("residual=raw",))
    flag = GraphFlag(name="residual", value="normed", source="config", evidence="config.json", served="raw")
    verdict = judge_measured(made_measured((Made(), served, WORSE), declared=declared, checkpoint_graph=(flag,)))
    assert verdict.declared is not None
    assert verdict.declared.facts.name == served.name
    assert verdict.verdict == "mis_read"
    assert "vLLM" in verdict.fix[0]


def test_a_simpler_reading_that_is_as_good_stands() -> None:
    readings = (Made((0.755, 0.72, 0.7, 0.7), changes=("rope=theta 1e+06",)), Made(), WORSE)
    verdict = judge_measured(made_measured(readings))
    assert verdict.verdict == "sound"
    assert verdict.best.facts.changes == ()
    assert verdict.effects == ()


def test_a_large_lead_on_few_rows_is_not_waved_through() -> None:
    readings = (Made(changes=("feedback=normed",)), Made((0.75, 0.35, 0.35, 0.35)), WORSE)
    verdict = judge_measured(made_measured(readings, rows=Rows(count=4)))
    assert verdict.verdict == "cannot_separate"
    assert verdict.best.facts.changes == ("feedback=normed",)


def test_states_are_not_blamed_for_what_the_computation_costs() -> None:
    served = Made((0.5, 0.3, 0.3, 0.3), LATER)  # what the raw residual costs; the inputs are as good
    readings = (
        Made(changes=("residual=normed",)),
        Made((0.75, 0.72, 0.7, 0.7), LATER, 1, ("residual=normed",)),
        served,
    )
    verdict = judge_measured(made_measured(readings, declared=made_declared((2, 4, 5), LATER)))
    assert verdict.verdict != "mis_wired"


def test_a_control_is_never_the_best_reading() -> None:
    verdict = judge_measured(made_measured((Made(changes=("states=zeroed",)), Made((0.7, 0.6, 0.6, 0.6)), WORSE)))
    assert verdict.best.facts.changes == ()


def test_controls_alone_are_no_result() -> None:
    with pytest.raises(InvalidRunError, match="measured on all rows"):
        judge_measured(made_measured((Made(changes=("states=zeroed",)),)))
