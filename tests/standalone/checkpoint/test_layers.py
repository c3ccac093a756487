"""Layers and attention as config and tensors have them together: MLA, several layers, norms, windows, biases."""

import pytest
import torch

from remote_payload.failure import JobFailure
from remote_payload.standalone.graph import LatentAttention
from tests.standalone.checkpoint.writing import Scene, flag, notes

LATENT = {
    "architectures": ["Eagle3DeepseekV2ForCausalLM"],
    "kv_lora_rank": 6,
    "q_lora_rank": 10,
    "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 2,
    "v_head_dim": 3,
    "num_attention_heads": 4,
    "rope_theta": 50000.0,
    "rope_scaling": {"type": "yarn", "factor": 64.0, "original_max_position_embeddings": 4096, "beta_fast": 1.0,
                     "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0},
}  # fmt: skip
A_PROJECTIONS = {"q_a_proj.weight": (10, 32), "kv_a_proj_with_mqa.weight": (8, 32)}
"""Of layer 0, which takes the embedding and the state side by side."""
MLA = A_PROJECTIONS | {
    "q_a_layernorm.weight": (10,),
    "q_b_proj.weight": (24, 10),
    "kv_a_layernorm.weight": (6,),
    "kv_b_proj.weight": (28, 6),
    "o_proj.weight": (16, 12),
}


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


@pytest.fixture
def latent(scene):
    scene.config |= LATENT
    scene.tensors = {name: tensor for name, tensor in scene.tensors.items() if "self_attn" not in name}
    scene.tensors |= {f"midlayer.self_attn.{name}": scene.drawn(*shape) for name, shape in MLA.items()}
    return scene


def test_mla(latent):
    checkpoint = latent.load()
    assert checkpoint.config.attention == LatentAttention(
        heads=4, q_lora_rank=10, kv_lora_rank=6, nope_head_dim=4, rope_head_dim=2, value_head_dim=3
    )
    assert (checkpoint.facts.dialect.name, checkpoint.facts.attention) == ("torchspec", "latent")
    rope = checkpoint.graph.rope
    assert (rope.kind, rope.theta, rope.interleaved, rope.scaling["mscale_all_dim"]) == ("yarn", 50000.0, True, 1.0)
    assert flag(checkpoint, "rope").value == "theta 50000 yarn factor 64 interleaved"
    assert checkpoint.served == checkpoint.graph
    assert notes(checkpoint) == set()
    assert checkpoint.target.rope.interleaved  # the target's theta and scaling, turned as the drafter turns


def test_mla_from_an_engines_dump(latent):
    parts = [latent.tensors.pop(f"midlayer.self_attn.{name}") for name in A_PROJECTIONS]
    whole = torch.cat(parts)
    checkpoint = latent.load({"midlayer.self_attn.fused_qkv_a_proj_with_mqa.weight": whole})
    assert torch.equal(checkpoint.weights["layers.0.self_attn.q_a_proj.weight"], parts[0])
    assert torch.equal(checkpoint.weights["layers.0.self_attn.kv_a_proj_with_mqa.weight"], parts[1])


def test_mla_without_a_query_latent(latent):
    without = [f"midlayer.self_attn.{name}" for name in MLA if name.startswith("q_")]
    query = {"midlayer.self_attn.q_proj.weight": latent.drawn(24, 32)}
    checkpoint = latent.load(query, without, q_lora_rank=None)
    assert checkpoint.config.attention.q_lora_rank is None
    assert notes(checkpoint) == {"q_lora_rank"}


def test_mla_that_does_not_interleave(latent):
    assert not latent.load(rope_interleave=False).graph.rope.interleaved


def test_names_that_sglangs_mla_drafter_skips(latent):
    latent.tensors = {f"model.{name}": tensor for name, tensor in latent.tensors.items()}
    found = latent.load()
    (note,) = [note for note in found.facts.notes if note.key == "model.fc.weight"]
    assert f"{len(latent.tensors) - 2} tensors would stay random" in note.problem
    assert "model.lm_head.weight" in notes(found)


def test_mla_of_another_shape(latent):
    with pytest.raises(JobFailure, match=r"kv_b_proj\.weight: misshapen: expected shape \[28, 6\]"):
        latent.load({"midlayer.self_attn.kv_b_proj.weight": latent.drawn(30, 6)})
    with pytest.raises(JobFailure, match="`qk_rope_head_dim` must be even"):
        latent.load(qk_rope_head_dim=3)


def test_sglangs_mla_drafter_has_no_joint_norm(latent):
    checkpoint = latent.load({"input_norm.weight": torch.ones(48)}, norm_before_fc=True)
    assert checkpoint.served.changes_from(checkpoint.graph) == ("input_norm=none",)
    assert flag(checkpoint, "input_norm").served_why == "SGLang's MLA drafter does not know `norm_before_fc`"


@pytest.mark.parametrize("prefix", ["midlayer.", "layers.0."])
def test_two_layers(scene, prefix):
    checkpoint = scene.prefixed(prefix).load(scene.second_layer(), num_hidden_layers=2)
    assert checkpoint.config.layers == checkpoint.facts.layers == 2
    assert checkpoint.config.attention.windows == (None, None)
    assert checkpoint.weights["layers.1.self_attn.q_proj.weight"].shape == (32, 16)
    assert notes(checkpoint) == {"num_hidden_layers"}  # SGLang uses another norm there


def test_two_layers_as_sglang_writes_them(scene):
    layer = scene.second_layer()
    layer["layers.1.hidden_norm.weight"] = layer.pop("layers.1.input_layernorm.weight")
    checkpoint = scene.load(layer, num_hidden_layers=2)
    assert torch.equal(checkpoint.weights["layers.1.input_layernorm.weight"], layer["layers.1.hidden_norm.weight"])
    assert notes(checkpoint) == set()


@pytest.mark.parametrize("said", [2, 40])
def test_tensors_count_the_layers(scene, said):
    checkpoint = scene.load(num_hidden_layers=said)
    (note,) = checkpoint.facts.notes
    assert checkpoint.config.layers == 1
    assert (note.key, note.remedy) == ("num_hidden_layers", '`"num_hidden_layers": 1`')
    assert f"it says {said}, 1 layer(s) are stored" in note.problem


def test_layers_with_a_gap_and_beyond_reason(scene):
    with pytest.raises(JobFailure, match=r"layers\.1\.input_layernorm\.weight: missing"):
        scene.load(scene.second_layer("layers.2."))
    with pytest.raises(JobFailure, match="at most 200 layers, its tensors count up to: 100000001"):
        scene.load(scene.second_layer("layers.100000000."))


def test_norms_over_queries_and_keys(scene):
    norms = {f"midlayer.self_attn.{part}_norm.weight": torch.ones(8) for part in "qk"}
    checkpoint = scene.load(norms)
    assert checkpoint.config.attention.qk_norm
    assert not scene.load().config.attention.qk_norm
    assert notes(checkpoint) == {"layers.0.self_attn.q_norm.weight"}
    with pytest.raises(JobFailure, match=r"k_norm\.weight: missing"):
        scene.load({"midlayer.self_attn.q_norm.weight": torch.ones(8)})


@pytest.mark.parametrize(
    ("config", "windows"),
    [
        ({"sliding_window": 512}, (512,)),
        ({"sliding_window": 512, "layer_types": ["sliding_attention"]}, (512,)),
        ({"sliding_window": 512, "layer_types": ["full_attention", "sliding_attention"]}, (None,)),
        ({"sliding_window": 512, "use_sliding_window": False}, (None,)),
        ({"sliding_window": None, "layer_types": ["sliding_attention"]}, (None,)),
    ],
)
def test_windows(scene, config, windows):
    checkpoint = scene.load(**config)
    assert checkpoint.config.attention.windows == windows
    assert ("sliding_window" in notes(checkpoint)) == (windows != (None,))
    ignored = ("windows=none",) if windows != (None,) else ()
    assert checkpoint.served.changes_from(checkpoint.graph) == ignored  # as served every position sees all before it


@pytest.mark.parametrize("kinds", ["full_attention", ["chunked_attention"], []])
def test_windows_of_kinds_that_are_not_known(scene, kinds):
    with pytest.raises(JobFailure, match="`layer_types` must name"):
        scene.load(sliding_window=4, layer_types=kinds)


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("said", [True, False])
def test_tensors_tell_whether_attention_has_biases(scene, stored, said):
    biases = {f"midlayer.self_attn.{part}_proj.bias": scene.drawn(32 if part == "q" else 16) for part in "qkv"}
    checkpoint = scene.load(biases if stored else {}, attention_bias=said)
    assert checkpoint.config.attention.bias == stored
    skipped = {"layers.0.self_attn.k_proj.bias"} if stored else set()
    assert notes(checkpoint) == skipped | ({"attention_bias"} if stored != said else set())


def test_bias_of_fc(scene):
    assert "fc.bias" in scene.load({"fc.bias": scene.drawn(16)}, bias=True).weights
    assert notes(scene.load({"fc.bias": scene.drawn(16)})) == {"bias"}
    with pytest.raises(JobFailure, match=r"fc\.bias: missing"):
        scene.load(bias=True)


def test_fused_tensors_come_apart(scene):
    names = [f"midlayer.self_attn.{part}_proj.weight" for part in "qkv"]
    whole = {"midlayer.self_attn.qkv_proj.weight": torch.cat([scene.tensors[name] for name in names])}
    checkpoint = scene.load(whole, without=names)
    for name in names:
        assert torch.equal(checkpoint.weights[name.replace("midlayer.", "layers.0.")], scene.tensors[name])
    with pytest.raises(JobFailure, match="3 missing") as caught:
        scene.load({"midlayer.self_attn.qkv_proj.weight": scene.drawn(63, 32)}, without=names)
    assert any("qkv_proj.weight: unexpected" in line for line in caught.value.failure.details)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mask_hidden", "P-EAGLE"),
        ("midlayer.self_attn.sinks", "attention sinks"),
        ("midlayer.self_attn.gate_proj.weight", "Kimi-K3"),
        ("midlayer.pre_feedforward_layernorm.weight", "Gemma"),
        ("midlayer.mlp.experts.0.up_proj.weight", "mixture of experts"),
        ("midlayer.mlp.down_proj.bias", "biases in the MLP"),
        ("parallel_draft_heads.0.weight", "parallel draft heads"),
        ("fusion_fc.weight", "another layer"),
        ("fc_norm.3.weight", "another layer"),
    ],
)
def test_tensors_of_another_computation_are_refused_by_name(scene, name, says):
    with pytest.raises(JobFailure, match=f"does not follow.*{says}"):
        scene.load({name: torch.zeros(2)} | {f"fc_norm.{i}.weight": torch.ones(16) for i in range(3)})


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"architectures": ["PEagleDraftModel"]}, "P-EAGLE"),
        ({"architectures": ["DFlashDraftModel"]}, "DFlash"),
        ({"dflash_config": {}}, "DFlash"),
        ({"hidden_act": "gelu_pytorch_tanh"}, "another activation"),
        ({"architectures": ["GemmaEagle3"], "model_type": "gemma3_text"}, "1 \\+ weight"),
        ({"architectures": ["GraniteEagle3"], "residual_multiplier": 0.22}, "residual_multiplier: 0.22"),
        ({"architectures": ["X"], "attn_logit_softcapping": 50.0}, "attn_logit_softcapping: 50.0"),
        ({"eagle_config": {"parallel_draft_step": 4}}, "parallel_draft_step: 4"),
        ({"speculators_model_type": "peagle", "transformer_layer_config": {}}, "P-EAGLE"),
        ({"speculators_model_type": "eagle", "transformer_layer_config": {}}, "EAGLE-1"),
        ({"speculators_model_type": ["x"], "transformer_layer_config": {}}, "not EAGLE-3"),
    ],
)
def test_configs_of_another_computation_are_refused_by_name(scene, config, says):
    with pytest.raises(JobFailure, match=f"does not follow: .*{says}"):
        scene.load(**config)


@pytest.mark.parametrize("config", [{"speculators_model_type": "eagle3"}, {"transformer_layer_config": [1]}])
def test_a_nested_config_without_its_transformer(scene, config):
    with pytest.raises(JobFailure, match="needs an object `transformer_layer_config`"):
        scene.load(**config)


def test_a_drafter_of_llamas_class_may_name_its_targets_type(scene):
    assert scene.load(model_type="gemma3_text").facts.problems == ()


@pytest.mark.parametrize("fc", [True, False])
def test_eagle_1_is_refused_by_name(scene, fc):
    ordinary = {f"midlayer.self_attn.{part}_proj.weight": scene.drawn(32 if part == "q" else 16, 16) for part in "qkv"}
    tensors = ordinary | ({"fc.weight": scene.drawn(16, 32)} if fc else {})
    with pytest.raises(JobFailure, match="EAGLE-1 or EAGLE-2"):
        scene.load(tensors, without=["midlayer.hidden_norm.weight"] + ([] if fc else ["fc.weight"]))
