"""The rule of ten SGLang versions, by the deciding pieces of their own source.

`capture_rules.json.gz` holds those pieces as the payload cuts them out of the wheels of PyPI: a few statements each of
SGLang (https://github.com/sgl-project/sglang), which is under the Apache License 2.0.
"""

import dataclasses
import functools
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.diagnosis.effective_capture import Effective, resolve
from orchestrator.diagnosis.sglang_ids import spell
from remote_payload.schema.capture_rule import CaptureRule, SourcePiece
from remote_payload.schema.record import from_value

LLAMA, KIMI, QWEN, MOE = (
    "LlamaForCausalLM",
    "KimiK25ForConditionalGeneration",
    "Qwen3ForCausalLM",
    "Qwen3MoeForCausalLM",
)
OSS = "GptOssForCausalLM"
VERSIONS = ("0.4.5", "0.4.10", "0.5.3", "0.5.5", "0.5.9", "0.5.12", "0.5.15", "0.5.21", "0.5.22", "0.5.23")


@functools.cache
def rules() -> Any:
    return json.loads(gzip.decompress((Path(__file__).parent / "capture_rules.json.gz").read_bytes()))


def rule(version: str, target_class: str) -> CaptureRule:
    return from_value(CaptureRule, rules()[version][target_class])


def config(ids: object = None, **more: object) -> str:
    nested = {} if ids is None else {"eagle_config": {"eagle_aux_hidden_state_layer_ids": ids, **more}}
    return json.dumps(nested)


def target(target_class: str, layers: int) -> str:
    return json.dumps({"architectures": [target_class], "text_config": {"num_hidden_layers": layers}})


def effective(version: str, target_class: str, layers: int, ids: object = None) -> Effective:
    return resolve(rule(version, target_class), config(ids), target(target_class, layers))


def test_there_are_ten_versions() -> None:
    assert tuple(sorted(rules(), key=lambda text: [int(part) for part in text.split(".")])) == VERSIONS


@pytest.mark.parametrize(
    ("version", "target_class", "layers", "ids", "states", "fails"),
    [
        ("0.4.5", LLAMA, 8, [0, 1, 2], (2, 4, 5), False),  # takes no ids at all
        ("0.4.10", LLAMA, 8, None, (2, 4, 5), False),
        ("0.5.23", LLAMA, 8, [1, 3, 4], (2, 4, 5), False),
        ("0.5.21", LLAMA, 8, [-1, 1, 3], None, True),
        ("0.5.22", LLAMA, 8, [-1, 1, 3], (0, 2, 4), False),
        ("0.5.23", LLAMA, 8, [4, 1, 3], (2, 4, 5), False),  # joined in layer order
        ("0.5.23", LLAMA, 8, [1, 3, 7], (2, 4), True),
        ("0.5.23", LLAMA, 8, [1, 1, 3], (2, 4), True),
        ("0.5.9", KIMI, 61, [2, 30, 58], None, True),  # the class has no hook yet
        ("0.5.12", KIMI, 61, [2, 30, 58], (3, 31, 59), False),
        ("0.5.15", KIMI, 61, [2, 30, 58], (2, 30, 58), False),
        ("0.5.12", KIMI, 61, [1, 29, 57], (2, 30, 58), False),
        ("0.5.23", KIMI, 61, [1, 29, 57], (2, 30, 58), False),
        ("0.5.12", KIMI, 61, [-1, 2, 30], None, True),
        ("0.5.23", KIMI, 61, [-1, 2, 30], (2, 30), True),
        ("0.5.23", KIMI, 61, [0, 3, 31], (0, 3, 31), False),
        ("0.5.23", KIMI, 61, [30, 1, 57], (1, 30, 57), False),  # seen: the rule looks at the first one alone
        ("0.4.10", QWEN, 36, [-1, 2, 30], (0, 3, 31), False),
        ("0.5.23", QWEN, 36, [-1, 2, 30], (0, 3, 31), False),
        ("0.4.10", MOE, 48, [1, 20, 90], (2, 21), True),
        ("0.5.23", MOE, 48, [1, 20, 90], None, True),
        ("0.5.15", OSS, 36, [24, 30, 36], (25, 31), True),
        ("0.5.21", OSS, 36, [24, 30, 36], (24, 30, 36), False),
        ("0.5.23", OSS, 36, [1, 17, 33], (2, 18, 34), False),
        ("0.5.23", "MiniMaxM3SparseForConditionalGeneration", 60, None, None, False),  # its loop is not found: unknown
    ],
)
def test_what_a_version_captures(
    version: str, target_class: str, layers: int, ids: object, states: tuple[int, ...] | None, fails: bool
) -> None:
    found = effective(version, target_class, layers, ids)
    assert (found.states, found.fails) == (states, fails), found
    assert found.version == version


def test_the_chain_names_each_step() -> None:
    chain = effective("0.5.12", KIMI, 61, [2, 30, 58]).reasoning
    assert chain[0].startswith("SGLang 0.5.12")
    assert "61 layers" in chain[1]
    assert "[2, 30, 58]" in chain[2]
    assert "DeepseekV2ForCausalLM (srt/models/deepseek_v2.py): id + 1" in chain[3]
    assert chain[-1] == "so the drafter is fed [layer 3, layer 31, layer 59]"


@pytest.mark.parametrize("version", VERSIONS[-3:])
@pytest.mark.parametrize(
    ("target_class", "layers", "states"), [(LLAMA, 8, (2, 4, 5)), (KIMI, 61, (0, 3, 31)), (OSS, 36, (24, 30, 36))]
)
def test_ids_that_this_tool_spells_are_captured_as_meant(
    version: str, target_class: str, layers: int, states: tuple[int, ...]
) -> None:
    spelled = spell(states, target_class, layers).ids
    assert spelled is not None
    assert effective(version, target_class, layers, list(spelled)).states == states


@pytest.mark.parametrize("ids", ["0,3,31", [1.5], [True, 2], []])
def test_ids_that_are_no_list_of_numbers_are_not_guessed(ids: object) -> None:
    found = effective("0.5.23", LLAMA, 8, ids)
    assert found.states is None
    assert "must be a list of whole numbers" in str(found.problem)


def test_ids_at_the_top_level_are_not_read() -> None:
    draft = json.dumps({"eagle_aux_hidden_state_layer_ids": [-1, 1, 3]})
    found = resolve(rule("0.5.23", LLAMA), draft, target(LLAMA, 8))
    assert found.states == (2, 4, 5)
    assert any("top level" in line for line in found.reasoning)


def test_a_drafter_that_uses_the_final_state_alone() -> None:
    found = resolve(rule("0.5.23", LLAMA), config([1, 3, 4], use_aux_hidden_state=False), target(LLAMA, 8))
    assert found.states is None
    assert "final state alone" in str(found.problem)


def test_pipeline_stages_are_not_guessed() -> None:
    found = resolve(rule("0.5.23", LLAMA), config([1, 3, 4]), target(LLAMA, 8), pipeline_stages=2)
    assert found.states is None
    assert "only the last" in str(found.problem)


SHAPES = {
    "val + 1": "val + offset",
    "self.model.layers_to_capture = [2": "self.model.other = [2",
    "if layer_ids is None": "if layer_ids < 3",
}


@pytest.mark.parametrize("known", SHAPES)
def test_a_shape_that_is_not_known_is_unknown(known: str) -> None:
    good = rule("0.5.23", LLAMA)
    (piece,) = good.setters
    assert known in piece.text
    odd = dataclasses.replace(piece, text=piece.text.replace(known, SHAPES[known]))
    ids = None if known.startswith("self") else [1, 3, 4]
    found = resolve(dataclasses.replace(good, setters=(odd,)), config(ids), target(LLAMA, 8))
    assert found.states is None
    assert "not known here" in str(found.problem)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i in self.layers_to_capture", "i + 1 in self.layers_to_capture"),
        ("range(self.start_layer, self.end_layer)", "range(1, self.end_layer)"),
    ],
)
def test_layers_counted_otherwise_are_unknown(old: str, new: str) -> None:
    good = rule("0.5.23", LLAMA)
    assert good.forward is not None
    assert old in good.forward.text
    forward = dataclasses.replace(good.forward, text=good.forward.text.replace(old, new))
    found = resolve(dataclasses.replace(good, forward=forward), config([1, 3, 4]), target(LLAMA, 8))
    assert found.states is None
    assert "counts its layers" in str(found.problem)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"found": None}, "no model class"),
        ({"path": None}, "no SGLang's source"),
        ({"forward": None}, "was not found"),
        ({"reader": ()}, "where the drafter's ids are read"),
        ({"boundary": ()}, "is not told by it"),
        ({"setters": (SourcePiece(file="a.py", owner="A", name="f", text="def ("),)}, "no Python"),
    ],
)
def test_what_was_not_found_is_no_statement(changes: dict[str, Any], words: str) -> None:
    found = resolve(dataclasses.replace(rule("0.5.23", LLAMA), **changes), config([-1, 1, 3]), target(LLAMA, 8))
    assert found.states is None
    assert words in str(found.problem)


@pytest.mark.parametrize("text", [None, "", "[]", "{", '{"eagle_config": 3}', "[" * 5000])
def test_a_config_that_is_none(text: str | None) -> None:
    found = resolve(rule("0.5.23", LLAMA), text, target(LLAMA, 8))
    assert (found.states is None) is (text != '{"eagle_config": 3}')
    assert resolve(rule("0.5.23", LLAMA), config(), text).states is None


GEMMA = """num_layers = len(self.layers)
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        aux_hidden_states.append(hidden_states)
    layer_outputs = layer(positions=positions, hidden_states=hidden_states)
    hidden_states = layer_outputs[0]
if num_layers in self.layers_to_capture:
    aux_hidden_states.append(hidden_states)"""
MOE_VL = """for layer_idx, layer in enumerate(self.layers[self.start_layer:self.end_layer]):
    layer_idx += self.start_layer
    if layer_idx in self.layers_to_capture:
        aux_hidden_states.append(hidden_states + residual if residual is not None else hidden_states)
    hidden_states, residual = layer(positions, hidden_states, forward_batch, residual)"""


@pytest.mark.parametrize(
    ("text", "ids", "states"),
    [
        (GEMMA, [-1, 3, 7], (0, 4, 8)),
        (GEMMA.replace("len(self.layers)", "self.config.num_hidden_layers"), [1, 3, 7], (2, 4, 8)),
        (GEMMA.replace("len(self.layers)", "len(self.layers) - 1"), [1, 3, 4], None),
        (GEMMA.replace("num_layers = len(self.layers)\n", ""), [1, 3, 4], None),  # nobody says what it is
        (f"{GEMMA}\nnum_layers = 3", [1, 3, 4], None),
        (GEMMA.replace("append(hidden_states)", "append(normed)"), [-1, 3, 4], None),
        (MOE_VL, [-1, 3, 4], (0, 4, 5)),
        (MOE_VL.replace("layer_idx += self.start_layer", "layer_idx += 1"), [1, 3, 4], None),
    ],
)
def test_loops_that_say_themselves_how_they_count(text: str, ids: list[int], states: tuple[int, ...] | None) -> None:
    """As SGLang 0.5.15 writes them: gemma3_causal.py, qwen3_vl_moe.py."""
    piece = SourcePiece(file="srt/models/x.py", owner="X", name="forward", text=text)
    read = dataclasses.replace(rule("0.5.23", LLAMA), forward=piece)
    assert resolve(read, config(ids), target(LLAMA, 8)).states == states
