"""The bundled drafter, written in each dialect's way, is the same drafter; each dialect is recognised."""

import pytest
import torch

from remote_payload.failure import JobFailure
from remote_payload.standalone.checkpoint.load import load_checkpoint
from tests.standalone.checkpoint.writing import (
    DEMO,
    Scene,
    demo_config,
    demo_target,
    demo_tensors,
    flag,
    golden_config,
    notes,
    renamed,
    write_bin,
)
from tests.support.tiny import write_model

IDS = "eagle_aux_hidden_state_layer_ids"
TARGET = DEMO / "target"


def fused(tensors):
    joined = dict(tensors)
    for whole, parts in {"self_attn.qkv_proj": "qkv", "mlp.gate_up_proj": ("gate", "up")}.items():
        stem = whole.partition(".")[0]
        names = [f"layers.0.{stem}.{part}_proj.weight" for part in parts]
        joined[f"layers.0.{whole}.weight"] = torch.cat([joined.pop(name) for name in names])
    return joined


def automodel(tensors):
    plain = renamed(tensors, "midlayer.", "layers.0.")
    return {name if name in ("lm_head.weight", "d2t", "t2d") else f"model.{name}": item for name, item in plain.items()}


def vllm_config():
    return {key: value for key, value in demo_config().items() if key != "eagle_config"} | {IDS: [2, 4, 5]}


def modelopt_config():
    return demo_config() | {"eagle_config": {IDS: [1, 3, 4], "use_last_layernorm": True, "parallel_draft_step": 1}}


def write_specforge(folder, tensors):
    return write_model(folder, demo_config(), tensors)


def write_safeailab(folder, tensors):
    return write_bin(folder, golden_config("std_safeailab"), tensors)


def write_safeailab_old(folder, tensors):
    return write_model(folder, golden_config("std_safeailab") | {"architectures": ["LlamaForCausalLM"]}, tensors)


def write_speculators(folder, tensors):
    own = renamed(tensors, "midlayer.", "layers.0.") | {"embed_tokens.weight": demo_target("embed_tokens.weight")}
    verifier = {"verifier_lm_head.weight": torch.zeros(2, 2), "verifier_norm.weight": torch.zeros(2)}
    return write_model(folder, golden_config("std_speculators_0.9.0"), own | verifier)


def write_speculators_old(folder, tensors):
    newer = (IDS, "norm_before_fc", "fc_norm", "norm_output", "norm_before_residual")
    config = {key: value for key, value in golden_config("std_speculators_0.9.0").items() if key not in newer}
    return write_model(folder, config, renamed(tensors, "midlayer.", "layers.0."))


def write_vllm(folder, tensors):
    return write_model(folder, vllm_config(), renamed(tensors, "midlayer.", "layers.0."))


def write_vllm_dump(folder, tensors):
    own = renamed(renamed(tensors, "midlayer.", "layers.0."), "d2t", "draft_id_to_target_id")
    return write_model(folder, vllm_config(), fused(own))


def write_modelopt(folder, tensors):
    own = renamed(tensors, "midlayer.", "layers.0.")
    return write_model(folder, modelopt_config(), {name: item for name, item in own.items() if name != "t2d"})


def write_automodel(folder, tensors):
    return write_model(folder, demo_config(), automodel(tensors))


DIALECTS = {
    "specforge": write_specforge,
    "safeailab": write_safeailab,
    "safeailab ": write_safeailab_old,
    "speculators": write_speculators,
    "speculators_old": write_speculators_old,
    "vllm": write_vllm,
    "vllm ": write_vllm_dump,
    "modelopt": write_modelopt,
    "automodel": write_automodel,
}


@pytest.fixture(scope="module")
def own():
    return load_checkpoint(DEMO / "drafter_std", TARGET)


@pytest.mark.parametrize("name", DIALECTS)
def test_the_bundled_drafter_in_every_dialect(own, name, tmp_path):
    checkpoint = load_checkpoint(DIALECTS[name](tmp_path / "draft", demo_tensors()), TARGET)
    assert checkpoint.facts.dialect.name == name.strip()
    assert checkpoint.facts.dialect.evidence
    assert checkpoint.weights.keys() == own.weights.keys()
    assert all(torch.equal(checkpoint.weights[key], own.weights[key]) for key in own.weights)
    assert torch.equal(checkpoint.target_ids, own.target_ids)
    assert torch.equal(checkpoint.embeddings["target"], own.embeddings["target"])
    assert (checkpoint.graph, checkpoint.slots, checkpoint.config.attention) == (own.graph, 3, own.config.attention)
    assert checkpoint.facts.problems == ()
    assert {item.name for item in checkpoint.facts.graph} == {
        *("input", "input_norm", "residual", "feedback", "final_norm", "embedding", "vocabulary", "rope"),
        "position_start",
    }
    assert all(item.evidence for item in checkpoint.facts.graph)


def test_a_sound_drafter_is_read_without_a_word(own):
    assert (own.warnings, own.facts.notes, own.facts.problems) == ((), (), ())
    assert own.served == own.graph
    assert [(file.role, file.used, file.problem) for file in own.facts.files] == [("weights", True, None)]


def test_what_sglang_does_not_know_of_a_vllm_dump(tmp_path):
    checkpoint = load_checkpoint(write_vllm_dump(tmp_path / "draft", demo_tensors()), TARGET)
    assert notes(checkpoint) == {IDS, "draft_id_to_target_id"}
    assert checkpoint.served.changes_from(checkpoint.graph) == ("vocabulary=identity",)
    assert flag(checkpoint, "vocabulary").served_why


def test_where_files_do_not_tell(tmp_path, own):
    assert own.facts.dialect.also_possible == ("torchspec",)
    config = {key: value for key, value in demo_config().items() if key != "eagle_config"}
    plain = write_model(tmp_path / "plain", config, renamed(demo_tensors(), "midlayer.", "layers.0."))
    unknown = load_checkpoint(plain, TARGET).facts.dialect
    assert (unknown.name, unknown.also_possible) == ("unknown", ("modelopt", "torchspec", "vllm"))


def test_speculators_silence_about_the_residual(tmp_path):
    checkpoint = load_checkpoint(write_speculators_old(tmp_path / "draft", demo_tensors()), TARGET)
    residual = flag(checkpoint, "residual")
    assert (residual.value, residual.source) == ("raw", "default")
    assert residual.contradicted_by.startswith("vLLM takes true")


def test_safeailab_never_reads_theta(tmp_path):
    config = golden_config("std_safeailab") | {"rope_theta": 1e6, "rope_parameters": None}
    checkpoint = load_checkpoint(write_bin(tmp_path / "draft", config, demo_tensors()), TARGET)
    assert (checkpoint.graph.rope.theta, checkpoint.served.rope.theta) == (10000.0, 1e6)
    assert checkpoint.served.changes_from(checkpoint.graph) == ("rope=theta 1e+06",)
    assert flag(checkpoint, "rope").contradicted_by == "`rope_theta: 1e+06` in config.json"


@pytest.mark.parametrize("names", ["layers.0.", "model.layers.0."])
def test_two_dialects_mixed(made, names):
    scene = Scene(made["draft"].parent / "scene")
    tensors = {f"{names}mlp.up_proj.weight": scene.tensors["midlayer.mlp.up_proj.weight"]}
    with pytest.raises(JobFailure, match="the tensors of two dialects are mixed") as caught:
        scene.load(tensors, without=["midlayer.mlp.up_proj.weight"])
    found = caught.value.failure.message.rpartition(": ")[2]
    assert f"{names}mlp.up_proj.weight" in found
    assert "midlayer." in found
