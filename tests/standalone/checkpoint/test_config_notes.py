"""Lint of config.json: each oddity is told once, with the line that mends it, and sound configs are left alone."""

import json

import pytest
import torch

from remote_payload.failure import JobFailure
from remote_payload.standalone.checkpoint.load import load_checkpoint
from tests.standalone.checkpoint.writing import DEMO, Scene, golden_config
from tests.support.tiny import write_model

IDS = "eagle_aux_hidden_state_layer_ids"
NESTED = f"eagle_config.{IDS}"


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


def ids(*values):
    return {"eagle_config": {IDS: list(values)}}


@pytest.mark.parametrize(
    ("config", "key", "problem", "remedy"),
    [
        ({"architectures": ["LlamaForCausalLM"]}, "architectures", "config.json says: LlamaForCausalLM",
         '"architectures": ["LlamaForCausalLMEagle3"]'),
        ({"architectures": None}, "architectures", "config.json says: nothing", "LlamaForCausalLMEagle3"),
        ({"eagle_config": {}, IDS: [2, 4, 5]}, IDS, "takes its defaults here", "`eagle_config`"),
        (ids(1, 3, 4) | {IDS: [2, 4, 5]}, IDS, "differ: [2, 4, 5] at the top", "numberings differ by one"),
        (ids(1, 3, 3), NESTED, "named twice: [1, 3, 3]", "name each once"),
        (ids(4, 1, 3), NESTED, "not in ascending order: [4, 1, 3]", "layer order"),
        (ids(1, 3), NESTED, "2 ids are named, fc joins 3 states", "one id for each state"),
        (ids(1, 3, 4) | {"num_aux_hidden_states": 4}, "num_aux_hidden_states", "it is 4, fc joins 3",
         '"num_aux_hidden_states": 3'),
        ({"target_hidden_size": None}, "target_hidden_size", "it is null", "delete the key"),
        ({"eagle_config": {"fc_norm": False, "norm_before_residual": True}}, "eagle_config.norm_before_residual",
         "only at the top level", '"norm_before_residual": true'),
        ({"norm_output": True}, "norm_output", "SpecForge 0.2 means the final norm", "delete the key"),
        ({"draft_vocab_size": None}, "draft_vocab_size", "it is absent, yet d2t is stored", "40"),
    ],
)  # fmt: skip
def test_one_oddity(scene, config, key, problem, remedy):
    without = []
    if "draft_vocab_size" in config:
        scene.tensors |= {"lm_head.weight": scene.drawn(40, 16), "d2t": torch.zeros(40, dtype=torch.int64)}
        without = ["t2d"]
    (note,) = scene.load(without=without, **config).facts.notes
    assert note.key == key
    assert problem in note.problem
    assert remedy in note.remedy


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"eagle_config": ...},
        ids(-1, 1, 3),
        ids(1, 3, 4) | {IDS: [1, 3, 4]},
        {"num_aux_hidden_states": 3},
        {"norm_before_residual": False, "tie_word_embeddings": False, "attention_bias": False},
        {"rope_scaling": None, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}},
        {"max_position_embeddings": 131072},
    ],
)
def test_sound_configs(scene, config):
    checkpoint = scene.load(**config)
    assert checkpoint.facts.notes == ()
    assert [flag for flag in checkpoint.facts.graph if flag.contradicted_by or flag.served] == []


@pytest.mark.parametrize(("draft", "told"), [(2048, True), (4096, False), (8192, False)])
def test_a_drafter_shorter_than_its_target(scene, draft, told):
    scene.write_target_config({"max_position_embeddings": 4096})
    found = scene.load(max_position_embeddings=draft).facts.notes
    assert [note.key for note in found] == (["max_position_embeddings"] if told else [])


@pytest.mark.parametrize("name", ["std_speculators_0.9.0", "std_vllm_config", "std_safeailab"])
def test_configs_as_their_peers_wrote_them(tmp_path, name):
    tensors = load_checkpoint(DEMO / "drafter_std", DEMO / "target")
    stored = dict(tensors.weights) | {"d2t": tensors.vocabularies["offset"] - torch.arange(640)}
    checkpoint = load_checkpoint(write_model(tmp_path / "draft", golden_config(name), stored), DEMO / "target")
    keys = [note.key for note in checkpoint.facts.notes]
    assert keys == (["transformer_layer_config", IDS] if "speculators" in name else [])
    assert json.loads(checkpoint.facts.config_json) == golden_config(name)
    assert checkpoint.served == checkpoint.graph


@pytest.mark.parametrize("value", [[1], "x", 7])
def test_an_eagle_config_that_is_none(scene, value):
    with pytest.raises(JobFailure, match="needs an object `eagle_config`"):
        scene.load(eagle_config=value)
