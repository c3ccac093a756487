"""Every check names the fault it is for, two faults at once are both named, and what is sound is left alone."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

from tests.standalone.capture.made_target import LABELS, MadeTarget, make_target
from tests.support import broken_checkpoints as checkpoint
from tests.support import broken_rows as rows
from tests.support.broken_scene import Scene, make_scene
from tests.support.diagnosed import diagnosed
from tests.support.tiny import Tiny, write_drafter, write_row

Break = Callable[[Scene], None]


@dataclass(frozen=True)
class Example:
    """A scene broken in one way or more, and what is to be said of it."""

    breaks: tuple[Break, ...]
    says: dict[str, str]
    """Check -> what its finding must say (a regular expression, sought in summary, remedy and evidence)."""
    also: frozenset[str] = field(default_factory=frozenset)
    """Checks that may speak up as well: what the fault does to the rest. Any other finding is a false alarm."""
    drafter: str = "drafter_std"
    heldout: bool = False

    @property
    def name(self) -> str:
        return "+".join(b.args[0] if isinstance(b, partial) else b.__name__ for b in self.breaks)


def one(fault: Break, check: str, text: str, *also: str, **scene) -> Example:
    return Example((fault,), {check: text}, frozenset(also), **scene)


def two(first: Break, second: Break, says: dict[str, str], *also: str, **scene) -> Example:
    return Example((first, second), says, frozenset(also), **scene)


ADAPTED = partial(partial, checkpoint.adapted)
STORY = {"drafter": "drafter_embed"}
HELD = {"heldout": True}

EXAMPLES = [
    one(checkpoint.repeated_head_rows, "K1", r"lm_head.*(duplicate|equal|twice|repeat)", "K3", "K4", "K5"),
    one(checkpoint.random_query, "K1", r"q_proj.*random", "K5", "K9"),
    one(checkpoint.forty_layers, "K2", "num_hidden_layers"),
    one(checkpoint.absolute_map, "K3", "absolute", "K8"),
    one(checkpoint.disagreeing_t2d, "K3", "t2d"),
    one(checkpoint.random_embedding, "K4", "embed_tokens", "K1"),
    one(checkpoint.default_ids, "K5", r"-1, 1, 3", **STORY),
    one(rows.final_state_in_a_slot, "K7", "slot 3.*final", **STORY),
    one(checkpoint.norm_output, "K8", "norm_output", "K2"),
    one(ADAPTED("normed_feedback"), "K8", "feedback"),
    one(checkpoint.other_theta, "K9", "theta", "K2"),
    one(rows.shifted_capture, "K10", "shifted against each other", "K5", "K7", "teacher"),
    one(rows.mask_a_token_late, "K10", "mask"),
    one(ADAPTED("first_step_only"), "K11", "step|recurs"),
    one(rows.nan_rows, "K20", "NaN"),
    one(rows.train_rows_held_out, "K20", "train", **HELD),
    one(rows.teacher_of_another_layer, "teacher", "final state|layer", "K5", "K7", "K11", "K4"),
    one(checkpoint.second_weight_file, "folder", "pytorch_model_old"),
    one(ADAPTED("overfit"), "gap", "held-out", **HELD),
    two(checkpoint.default_ids, checkpoint.norm_output, {"K5": r"-1, 1, 3", "K8": "feedback"}, "K2", **STORY),
    two(ADAPTED("overfit"), rows.nan_rows, {"gap": "held-out", "K20": "NaN"}, **HELD),
]  # fmt: skip
"""One or two for every check, and two faults at once."""
MORE = [
    one(checkpoint.missing_head, "K1", "lm_head", "K4", "K5"),
    one(checkpoint.missing_norm, "K1", "final norm.*ones"),
    one(checkpoint.unused_tensor, "K1", "value_head"),
    one(checkpoint.zero_biases, "K2", "has no biases"),
    one(checkpoint.float_map, "K3", "d2t is stored as floats"),
    one(checkpoint.overwritten_head, "K4", "bit by bit the target's rows", "K5"),
    one(checkpoint.ids_at_the_top, "K2", "eagle_aux_hidden_state_layer_ids"),
    one(checkpoint.zero_map, "K3", "zero|identity", "K4", "K5", "K8", "K11"),
    one(checkpoint.unordered_map, "K3", "increas"),
    one(checkpoint.foreign_head, "K4", "lm_head", "K1", "K3", "K5", "K8", "K11"),
    one(checkpoint.swapped_fc, "K5", "states|order", "K1"),
    one(rows.swapped_slots, "K5", "states|order", "K7"),
    one(rows.same_state_twice, "K7", "slots 2 and 3", **STORY),
    one(checkpoint.norm_before_residual, "K8", "residual"),
    one(checkpoint.norm_before_fc, "K8", "input_norm|norm_before_fc", "K1"),
    one(ADAPTED("normed_residual"), "K8", "residual"),
    one(checkpoint.other_scaling, "K9", "scal", "K2"),
    one(rows.mask_a_token_early, "K10", "mask"),
    one(rows.mask_two_tokens_early, "K10", "two tokens early"),
    one(rows.dead_slot, "K7", "slot 2 holds one and the same vector"),
    one(rows.mask_everything, "K20", "mask", "K10", "teacher"),
    one(checkpoint.shifted_map, "K3", r"d2t.*off by a constant.*lm_head itself is whole", "K5"),
    one(checkpoint.partial_rotary, "K9", 'rope=full.*delete "partial_rotary_factor"', "K2"),
    one(checkpoint.interleaved_heads, "K9", "interleaved.*pairs of neighbours"),
    one(rows.inverted_mask, "K10", "loss mask looks inverted", "K5"),
    one(rows.states_a_token_late, "K10", "one token too late beside tokens and final states"),
    one(rows.cut_rows, "K20", "cut|trunc"),
    one(rows.same_rows_twice, "K20", "copies|duplicates"),
    one(rows.teacher_a_token_late, "teacher", "they alone stand a token too late", "K5", "K7", "K11"),
    one(checkpoint.other_target, "teacher", "head|target", "K3", "K4", "K5", "K7"),
    one(checkpoint.disagreeing_index, "folder", "index", "K1"),
    one(checkpoint.stale_map_file, "folder", "vocab_mapping"),
    two(checkpoint.default_ids, checkpoint.absolute_map, {"K5": r"-1, 1, 3", "K3": "absolute"}, "K8", **STORY),
    two(checkpoint.default_ids, checkpoint.shifted_map, {"K5": "embed,2,4", "K3": "off by a constant"}, **STORY),
    two(checkpoint.norm_before_fc, checkpoint.other_theta, {"K8": "norm_before_fc", "K9": "theta"}, "K1", "K2"),
    two(checkpoint.second_weight_file, rows.mask_a_token_early, {"folder": "old", "K10": "mask"}),
]  # fmt: skip


def told(finding) -> str:
    """Everything a finding says, in one line."""
    evidence = (f"{item.name}: {item.value}" for item in finding.evidence)
    return " | ".join((finding.summary, *finding.remedy, *evidence))


NEED_EVERY_READING = {"K3", "K8", "K9", "K10"}
"""Checks that look at more readings than the wirings."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_fault_is_named(tmp_path, example):
    judge(tmp_path, example, "full" if NEED_EVERY_READING & set(example.says) else "wiring")


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES + MORE, ids=lambda example: example.name)
def test_the_fault_is_named_among_all_readings(tmp_path, example):
    judge(tmp_path, example, "full")


def judge(tmp_path, example, sweep):
    scene = make_scene(tmp_path / "scene", example.drafter, heldout=example.heldout)
    for fault in example.breaks:
        fault(scene)
    diagnosis = diagnosed(tmp_path / "run", **scene.settings, sweep=sweep)
    found = {(finding.check, told(finding)) for finding in diagnosis.findings}
    for check, text in example.says.items():
        assert any(name == check and re.search(text, said, re.IGNORECASE) for name, said in found), (check, text, found)
    allowed = {*example.says, *example.also}
    assert [item for item in sorted(found) if item[0] not in allowed] == []


@pytest.mark.parametrize("heldout", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("drafter", ["drafter_std", "drafter_embed"])
def test_what_is_sound_is_left_alone(tmp_path, drafter, heldout):
    diagnosis = diagnosed(tmp_path / "run", **make_scene(tmp_path / "scene", drafter, heldout=heldout).settings)
    assert [(finding.check, told(finding)) for finding in diagnosis.findings] == []
    assert diagnosis.verdict == "sound"


def test_a_final_state_before_the_norm_is_no_fault(tmp_path):
    scene = make_scene(tmp_path / "scene")
    rows.unnormed_final(scene)
    diagnosis = diagnosed(tmp_path / "run", **scene.settings)
    assert [(finding.check, told(finding)) for finding in diagnosis.findings] == []


def captured(tmp_path, made: MadeTarget):
    """A random drafter of a real, tiny target, on rows that were captured from it: only the capture check matters."""
    tiny = Tiny(hidden=32, target_hidden=32, vocab=64, draft_vocab=48, captured=3)
    for number in range(3):
        row = made.row(number)
        states = row.states.flatten(1)[None]
        write_row(
            tmp_path / "rows",
            number,
            {
                "input_ids": row.tokens,
                "loss_mask": row.loss_mask.long(),
                "aux_hidden_state": states,
                "hidden_state": row.final[None],
            },
        )
    draft = write_drafter(tmp_path / "draft", tiny)
    settings = {"draft": draft, "target": made.folder, "rows": tmp_path / "rows", "states": LABELS}
    diagnosis = diagnosed(tmp_path / "run", **settings)
    return [result for result in diagnosis.results if result.check == "capture"]


def test_a_capture_that_a_fresh_forward_repeats_is_sound(tmp_path):
    results = captured(tmp_path, make_target(tmp_path / "target"))
    assert [result.outcome for result in results] == ["passed"]


def test_a_capture_of_a_target_with_broken_rotary_frequencies_is_named(tmp_path):
    made = make_target(tmp_path / "target")
    made.model.model.rotary_emb.inv_freq.mul_(7.0)
    results = captured(tmp_path, made)
    assert {result.outcome for result in results} == {"finding"}
    assert {result.severity for result in results} == {"serious"}
    assert not any("slot 0 " in result.summary for result in results), "the embedding output is as it was"


def test_a_capture_that_cannot_be_repeated_is_said_to_be_unchecked(tmp_path):
    """The bundled target holds the three tensors alone that a test needs."""
    scene = make_scene(tmp_path / "scene")
    diagnosis = diagnosed(tmp_path / "run", **scene.settings | {"capture_rows": 1})
    (result,) = [result for result in diagnosis.results if result.check == "capture"]
    assert result.outcome == "cannot_tell"
    assert "holds no layer of the model" in told(result)
