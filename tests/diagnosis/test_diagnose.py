"""Findings ranked, several faults all named, what is sound left alone, and no fact so empty that a check breaks."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.compare.stats import Estimate
from orchestrator.diagnosis.checks import CHECKS
from orchestrator.diagnosis.checks.k02_config import NESTED_TEXT
from orchestrator.diagnosis.diagnose import TOLD, Diagnosis, diagnose
from orchestrator.diagnosis.measured import Measured, gather
from orchestrator.diagnosis.verdict import Effect
from orchestrator.diagnosis.wiring import judge
from remote_payload.schema import StandaloneResult
from remote_payload.schema.standalone import (
    ConfigNote,
    MapReading,
    SharedTensorFacts,
    TensorProblem,
    TensorStatistics,
    WeightFile,
)
from tests.support.made_measured import (
    BEST,
    LATER,
    SHIFTED,
    WORSE,
    Made,
    Rows,
    made_measured,
    sound_checkpoint,
    sound_lint,
    sound_slots,
    sound_vocabulary,
)
from tests.support.made_results import made_declared

WRONG_IDS: dict[str, Any] = {"declared": made_declared((2, 4, 5), LATER, config_ids=(1, 3, 4))}
NO_HEAD = (SharedTensorFacts(name="lm_head", stored=False, used="target", served="random"),)


def diagnosed(measured: Measured) -> Diagnosis:
    return diagnose(measured, judge(measured))


@pytest.mark.parametrize("heldout", [None, Rows(seed="held-out"), Rows(seed="held-out", lift=-0.05)])
@pytest.mark.parametrize("count", [8, 12, 24])
@pytest.mark.parametrize("greedy", [(1.0,), (1.0, 0.6), (0.7,)])
def test_a_sound_drafter_has_no_finding_at_all(heldout, count, greedy):
    rows = Rows(count=count, greedy=greedy)
    measured = made_measured(rows=rows, heldout=heldout and replace(heldout, count=count, greedy=greedy))
    diagnosis = diagnosed(measured)
    assert [(item.check, item.summary) for item in diagnosis.findings] == []
    assert diagnosis.verdict == "sound"
    assert diagnosis.headline.startswith("wiring is sound")
    assert diagnosis.fix == ()
    assert diagnosis.cause is None


def test_every_check_answers_and_what_cannot_be_told_says_what_it_needs():
    diagnosis = diagnosed(made_measured())
    checks = {result.check for result in diagnosis.results}
    assert checks == {
        *("K1", "K2", "K3", "K4", "K5", "K7", "K8", "K9", "K10", "K11", "K20"),
        *("teacher", "folder", "capture", "gap"),
    }
    unknown = [result for result in diagnosis.results if result.outcome == "cannot_tell"]
    assert {result.title for result in unknown} == {"accuracy by position", "train against held-out"}
    for result in diagnosis.results:
        assert (result.needs is not None) == (result.outcome == "cannot_tell")
        assert result.summary
    passed = next(result for result in diagnosis.results if result.check == "K8")
    assert passed.evidence[0].value == pytest.approx((180 - 240) / 200)
    assert passed.evidence[0].n == 200


def test_the_story_is_named_on_top_with_its_config_line():
    diagnosis = diagnosed(made_measured(**WRONG_IDS))
    assert diagnosis.verdict == "mis_wired"
    assert [item.check for item in diagnosis.findings] == ["K5"]
    assert '"eagle_aux_hidden_state_layer_ids": [-1, 1, 3]' in diagnosis.fix[0]
    (finding,) = diagnosis.findings
    assert finding.effect == pytest.approx(1.93 - 0.70, abs=0.15)
    assert finding.evidence[0].value == pytest.approx(0.75, abs=0.03)
    assert finding.evidence[1].value == pytest.approx(0.45, abs=0.03)


def test_two_faults_at_once_are_both_named_and_fixed():
    measured = made_measured(**WRONG_IDS, checkpoint_shared=NO_HEAD)
    diagnosis = diagnosed(measured)
    assert [item.check for item in diagnosis.findings] == ["K1", "K5"]  # fatal before serious
    assert diagnosis.verdict == "mis_wired"
    assert "also: the drafter has no lm_head" in diagnosis.headline
    assert any("eagle_aux_hidden_state_layer_ids" in line for line in diagnosis.fix)
    assert any("target_head" in line for line in diagnosis.fix)


def test_a_wiring_fault_and_a_reading_fault_are_both_named():
    changed = "feedback=normed"
    readings = (
        Made(changes=(changed,)),
        Made((0.75, 0.3, 0.3, 0.3)),  # right states, raw feedback
        Made((0.45, 0.4, 0.4, 0.4), LATER, 1, (changed,)),
        Made((0.45, 0.2, 0.2, 0.2), LATER),
        SHIFTED,
    )
    diagnosis = diagnosed(made_measured(readings, **WRONG_IDS))
    assert diagnosis.verdict == "mis_wired"
    assert {item.check for item in diagnosis.findings} == {"K5", "K8"}
    assert "mis-read" in diagnosis.headline
    assert any('"norm_output": true' in line for line in diagnosis.fix)
    assert any("[-1, 1, 3]" in line for line in diagnosis.fix)


def test_rows_that_are_not_what_they_claim_come_before_the_wiring_and_spare_the_config():
    slots = tuple(replace(slot, equals_slot=2 if slot.slot == 3 else None) for slot in sound_slots())
    diagnosis = diagnosed(made_measured(rows_slots=slots, **WRONG_IDS))
    assert diagnosis.verdict == "data_fault"
    assert diagnosis.headline.startswith("slots 2 and 3 hold the same numbers")
    assert diagnosis.headline.endswith("; on such rows the wiring cannot be judged")
    assert "mis-wired" not in diagnosis.headline
    assert not [line for line in diagnosis.fix if "eagle_config" in line]
    (wiring,) = (item for item in diagnosis.findings if item.check == "K5")
    assert wiring.summary.startswith("on these rows, which are not to be trusted: mis-wired")
    assert wiring.remedy == ("mend the rows and run again before any change of config",)
    assert {item.check for item in diagnosis.findings} == {"K7", "K5"}


@pytest.mark.parametrize(("keys", "told"), [(("vocabulary",), 0), (("feedback",), 1)])
def test_a_vocabulary_map_that_the_wiring_speaks_of_is_not_said_twice(keys, told):
    offset = MapReading(reading="offset", in_range=400, distinct=400, increasing=True)
    absolute = MapReading(reading="absolute", in_range=640, distinct=640, increasing=True)
    measured = made_measured(checkpoint_vocabulary=sound_vocabulary(readings=(offset, absolute)))
    sure = Estimate(value=1.9, low=1.8, high=2.0, rows=12)
    effect = Effect(keys=keys, best=("a",), served=("b",), reverted=None, difference=sure)
    wiring = replace(judge(measured), verdict="mis_read", headline="mis-read: so and so", effects=(effect,))
    diagnosis = diagnose(measured, wiring)
    assert diagnosis.headline.count("d2t holds target ids") == told
    assert diagnosis.headline.startswith("mis-read: so and so")
    assert any("d2t - torch.arange" in line for line in diagnosis.fix)


def test_no_more_than_three_findings_share_the_top_line():
    problems = tuple(
        TensorProblem(problem="not_finite", name=f"layers.0.{name}.weight", expected="finite numbers", found="3 NaN")
        for name in ("fc", "norm", "lm_head", "hidden_norm")
    )
    diagnosis = diagnosed(made_measured(checkpoint_shared=NO_HEAD, checkpoint_problems=problems))
    assert diagnosis.headline.count("; also: ") == TOLD - 1
    assert len(diagnosis.findings) == len(problems) + 1


def test_an_overriding_file_comes_before_what_it_breaks():
    random = TensorStatistics(name="fc.weight", mean=0.0, std=0.02, spectral_excess=0.98, row_norm_spread=1.05)
    statistics = (*sound_checkpoint().statistics[1:], random)
    file = WeightFile(
        name="model.safetensors", size_bytes=9, used=True, role="weights", problem="zz.safetensors overrides it",
        overridden_by="zz.safetensors",
    )  # fmt: skip
    poor = (Made((0.16, 0.1, 0.1, 0.1)), Made((0.15, 0.1, 0.1, 0.1), LATER))
    diagnosis = diagnosed(made_measured(poor, checkpoint_files=(file,), checkpoint_statistics=statistics))
    assert diagnosis.headline.startswith("model.safetensors: zz.safetensors overrides it; also: tensor `fc.weight`")
    assert "no reading fits" not in diagnosis.headline
    assert diagnosis.fix[0].startswith("move zz.safetensors out of the folder")
    fed = [item for item in diagnosis.findings if item.check == "K5"]
    assert all(item.remedy == ("mend the weights and run again before any change of config",) for item in fed)


def test_a_nested_config_is_said_in_words_with_a_whole_one_to_copy():
    inner = {"hidden_size": 128, "model_type": "llama", "rope_theta": 10000.0, "tie_word_embeddings": True}
    text = json.dumps({"transformer_layer_config": inner, "speculators_model_type": "eagle3", "draft_vocab_size": 640})
    note = ConfigNote(key="transformer_layer_config", problem="it is nested", remedy="-")
    nested = {"checkpoint_notes": (note,), "checkpoint_config_json": text}
    sound = diagnosed(made_measured(**nested))
    assert sound.headline == (f"{NESTED_TEXT}; the wiring is sound: serving feeds the drafter the states it reads best")
    start = "for SGLang, write as the drafter's config.json: "
    assert sound.fix[0].startswith(start)
    written = json.loads(sound.fix[0].removeprefix(start))
    assert (written["hidden_size"], written["architectures"]) == (128, ["LlamaForCausalLMEagle3"])
    assert written["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [-1, 1, 3]
    assert not {"transformer_layer_config", "tie_word_embeddings", "speculators_model_type"} & set(written)
    wrong = diagnosed(made_measured(**nested, **WRONG_IDS))
    assert wrong.verdict == "mis_wired"
    assert wrong.headline.startswith(f"{NESTED_TEXT}; mis-wired: ")
    assert [line for line in wrong.fix if "eagle_config" in line] == [sound.fix[0]]


def test_a_loading_fault_takes_the_top_line_from_a_sound_wiring():
    diagnosis = diagnosed(made_measured(checkpoint_shared=NO_HEAD))
    assert diagnosis.verdict == "loading_fault"
    assert diagnosis.headline == (
        "the drafter has no lm_head, and SGLang leaves it at random values: accept length 1.00; "
        "the wiring is sound: serving feeds the drafter the states it reads best"
    )
    assert diagnosis.fix == diagnosis.findings[0].remedy


def test_small_findings_leave_the_top_line_alone_and_come_last():
    note = ConfigNote(key="max_position_embeddings", problem="it is 2048", remedy="raise it")
    measured = made_measured(checkpoint_notes=(note,), rows_lint=sound_lint(with_nan=3))
    diagnosis = diagnosed(measured)
    assert diagnosis.verdict == "data_fault"
    assert [item.severity for item in diagnosis.findings] == ["serious", "minor"]
    alone = diagnosed(made_measured(checkpoint_notes=(note,)))
    assert alone.verdict == "sound"
    assert [item.check for item in alone.findings] == ["K2"]


def test_a_generalization_gap_is_the_verdict_where_the_wiring_is_sound():
    measured = made_measured(rows=Rows(count=24), heldout=Rows(count=24, lift=-0.3, seed="held-out"))
    diagnosis = diagnosed(measured)
    assert diagnosis.verdict == "generalization_gap"
    assert [item.check for item in diagnosis.findings] == ["gap"]


def test_what_is_uncertain_about_the_wiring_stays_beside_another_cause():
    measured = made_measured((Made(), replace(WORSE, shares=(0.74, 0.72, 0.7, 0.7))), **WRONG_IDS)
    measured = replace(
        measured,
        result=replace(measured.result, checkpoint=replace(measured.result.checkpoint, shared=NO_HEAD)),
    )
    diagnosis = diagnosed(measured)
    assert diagnosis.verdict == "loading_fault"
    assert "the wiring: cannot" in diagnosis.headline


def emptied(result: StandaloneResult, names: tuple[str, ...]) -> StandaloneResult:
    """The result with some of its facts as an older one has them: absent."""
    absent: dict[str, Any] = {
        "checkpoint": {"tensors": (), "dialect": None, "graph": (), "notes": (), "statistics": (), "vocabulary": None,
                       "shared": (), "files": (), "problems": (), "target": None},
        "rows": {"slots": (), "teacher": None, "lint": None, "states": None, "embedding_slots": None},
        "declared": {"captured": None, "slots": None, "target_layers": None, "changes": ("rope=theta 5e+05",)},
        "result": {"self_fed": None, "zones": (), "capture": None, "heldout": None, "skipped_readings": ()},
    }  # fmt: skip
    for name in names:
        part, _, key = name.partition(".")
        if part == "result":
            result = replace(result, **{key: absent[part][key]})
        else:
            result = replace(result, **{part: replace(getattr(result, part), **{key: absent[part][key]})})
    return result


FACTS = [
    *(f"checkpoint.{name}" for name in ("tensors", "dialect", "graph", "statistics", "vocabulary", "shared", "files")),
    *(f"rows.{name}" for name in ("slots", "teacher", "lint", "states", "embedding_slots")),
    *(f"declared.{name}" for name in ("captured", "slots", "target_layers", "changes")),
    *(f"result.{name}" for name in ("self_fed", "zones", "capture", "heldout", "skipped_readings")),
]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.sets(st.sampled_from(FACTS)), st.sampled_from([0, 1, 3, 12]), st.booleans())
def test_no_check_breaks_on_facts_that_are_not_there(names, count, split):
    rows = Rows(count=count)
    readings = (BEST, WORSE) if count else ()
    measured = made_measured(readings, rows=rows, heldout=replace(rows, seed="held-out") if split else None)
    result = emptied(measured.result, tuple(sorted(names)))
    measured = gather(result, (measured.train.rows, measured.train.hits))
    for check in CHECKS:
        for answer in check(measured):
            assert answer.outcome in ("passed", "finding", "cannot_tell")


@pytest.mark.parametrize(
    ("names", "check"),
    [
        (("checkpoint.tensors", "checkpoint.statistics"), "K1"),
        (("checkpoint.dialect", "checkpoint.graph"), "K2"),
        (("checkpoint.shared",), "K4"),
        (("rows.slots",), "K7"),
        (("checkpoint.files",), "folder"),
        (("rows.teacher",), "teacher"),
        (("result.capture",), "capture"),
        (("rows.lint",), "K20"),
    ],
)
def test_what_was_not_measured_never_passes(names, check):
    measured = made_measured()
    measured = gather(emptied(measured.result, names), (measured.train.rows, measured.train.hits))
    outcomes = {item.outcome for item in diagnosed(measured).results if item.check == check}
    assert outcomes == {"cannot_tell"}


def test_a_fatal_problem_outranks_a_measured_cost():
    problem = TensorProblem(problem="missing", name="fc.weight", expected="[128, 384]", found="nothing")
    diagnosis = diagnosed(made_measured(checkpoint_problems=(problem,), **WRONG_IDS))
    assert [item.check for item in diagnosis.findings] == ["K1", "K5"]
