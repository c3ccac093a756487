"""Whatever stands in config.json or among the tensors, it is read or refused by name: nothing else is raised."""

import pytest
import torch

from remote_payload.failure import JobFailure
from tests.standalone.checkpoint.writing import Scene

KEYS = (
    "architectures", "hidden_size", "target_hidden_size", "num_key_value_heads", "num_hidden_layers", "rms_norm_eps",
    "draft_vocab_size", "rope_theta", "rope_scaling", "rope_parameters", "eagle_config", "norm_output", "fc_norm",
    "bias", "eagle_aux_hidden_state_layer_ids", "norm_before_fc", "norm_before_residual", "tie_word_embeddings",
    "model_type", "kv_lora_rank", "partial_rotary_factor", "use_aux_hidden_state", "num_aux_hidden_states",
    "hidden_act", "sliding_window", "speculators_model_type", "transformer_layer_config",
)  # fmt: skip
HARMLESS = ("architectures", "use_aux_hidden_state", "num_aux_hidden_states", "model_type")
"""Keys of which a strange value is only noted."""
VALUES = ({"rope_type": 1, "fc_norm": 1}, [[1]], 10**400)
NAMES = ("fc.weight", "d2t", "t2d", "lm_head.weight", "layers.0", "midlayer.self_attn.qkv_proj.weight",
         "fc_norm.x.weight", "model.model.fc.weight", ".")  # fmt: skip
UNUSED = ("model.model.fc.weight", ".")
TENSORS = (torch.zeros(()), torch.zeros(3, 0), torch.full((24,), 2**62))


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


def refusal(scene, tensors, **config):
    """The failure's message, or nothing where the drafter was read."""
    try:
        scene.load(tensors, **config)
    except JobFailure as failure:
        return failure.failure.message
    return ""


@pytest.mark.parametrize("key", KEYS)
def test_any_value_of_a_key(scene, key):
    messages = [refusal(scene, {}, **{key: value}) for value in VALUES]
    assert all(len(message) < 1000 for message in messages)
    assert any(messages) != (key in HARMLESS)


@pytest.mark.parametrize("name", NAMES)
def test_any_tensor_of_a_name(scene, name):
    messages = [refusal(scene, {name: tensor}) for tensor in TENSORS]
    assert all(len(message) < 1000 for message in messages)
    assert any(messages) == all(messages) == (name not in UNUSED)
