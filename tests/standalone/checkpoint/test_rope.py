"""The rotary embedding by every spelling, as transformers 5 reads it."""

import pytest

from remote_payload.failure import JobFailure
from remote_payload.standalone.checkpoint.rope_config import Rope, read_rope, rope_conflicts, words_of
from tests.standalone.checkpoint.writing import Scene, flag, notes

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}


@pytest.mark.parametrize(
    ("config", "kind", "theta", "scaling"),
    [
        ({}, "default", 10000.0, {}),
        ({"rope_theta": 5e5}, "default", 5e5, {}),
        ({"rope_theta": None, "rope_scaling": None}, "default", 10000.0, {}),
        ({"rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}}, "default", 1e6, {}),
        ({"rope_parameters": {"rope_theta": 1e6}, "rope_theta": 5e5}, "default", 1e6, {}),
        ({"rope_scaling": {"type": "linear", "factor": 2}}, "linear", 10000.0, {"factor": 2.0}),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "dynamic", 10000.0, {"factor": 2.0}),
        ({"rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 2]}}, "default", 10000.0, {}),
        ({"rope_scaling": {"type": "deepseek_yarn", "factor": 4.0}}, "yarn", 10000.0, {"factor": 4.0}),
        ({"rope_scaling": YARN | {"mscale": 0.7, "mscale_all_dim": 0}}, "yarn", 10000.0,
         {"factor": 4.0, "original_max_position_embeddings": 1024.0, "mscale": 0.7}),
        ({"rope_scaling": YARN | {"truncate": True, "extrapolation_factor": 1, "finetuned": True}}, "yarn", 10000.0,
         {"factor": 4.0, "original_max_position_embeddings": 1024.0}),
        ({"rope_scaling": YARN, "original_max_position_embeddings": 512}, "yarn", 10000.0,
         {"factor": 4.0, "original_max_position_embeddings": 512.0}),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters": {"rope_theta": 1e6}}, "linear", 10000.0,
         {"factor": 2.0}),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}},
          "layer_types": ["full_attention"]}, "default", 1e6, {}),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e6}}},
         "default", 1e6, {}),
    ],
)  # fmt: skip
def test_spellings(config, kind, theta, scaling):
    assert read_rope(config) == Rope(kind=kind, theta=theta, scaling=scaling)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"rope_scaling": {"type": "longrope"}}, "must be one of .*found: 'longrope'"),
        ({"rope_scaling": YARN | {"truncate": False}}, "truncate: False"),
        ({"rope_scaling": YARN | {"attn_factor": 2}}, "attn_factor: 2"),
        ({"rope_scaling": {"type": "dynamic", "alpha": 1000.0}}, "alpha: 1000.0"),
        ({"rope_scaling": YARN | {"factor": float("nan")}}, "`factor`"),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}},
         "share one rotary embedding"),
        ({"rope_parameters": [1]}, "needs an object `rope_parameters`"),
        ({"partial_rotary_factor": 0.1}, "an even number of a head's 8 numbers to turn, found: 0.1"),
        ({"partial_rotary_factor": 1.5}, "at most 1"),
    ],
)  # fmt: skip
def test_what_would_be_another_rope_is_refused(config, says):
    with pytest.raises(JobFailure, match=says):
        read_rope(config, head_dim=8)


@pytest.mark.parametrize(
    "config", [{"partial_rotary_factor": 0.5}, {"rope_parameters": {"partial_rotary_factor": 0.5}}]
)
def test_a_part_of_each_head(config):
    assert read_rope(config, head_dim=8).rotary_dim == 4
    assert words_of(read_rope(config, head_dim=8)) == "theta 10000 first 4 of a head"


@pytest.mark.parametrize(
    ("config", "conflicts"),
    [
        ({"rope_theta": 1e4, "rope_parameters": {"rope_theta": 1e4}}, 0),
        ({"rope_theta": 1e6, "rope_parameters": {"rope_theta": 1e4}}, 1),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}, "rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, 0),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}, "rope_parameters": {"rope_type": "default"}}, 1),
    ],
)
def test_spellings_that_contradict_each_other(config, conflicts):
    assert len(rope_conflicts(config)) == conflicts


def test_a_contradiction_is_told(tmp_path):
    checkpoint = Scene(tmp_path).load(rope_theta=1e6, rope_parameters={"rope_theta": 1e4, "rope_type": "default"})
    assert checkpoint.graph.rope.theta == 1e4
    assert (
        flag(checkpoint, "rope").contradicted_by
        == "`rope_theta: 1000000.0` against `rope_parameters.rope_theta: 10000.0`"
    )
    assert notes(checkpoint) == {"rope_parameters"}


@pytest.mark.parametrize("nested", [True, False])
def test_the_targets_own(tmp_path, nested):
    scene = Scene(tmp_path)
    text = {"rope_theta": 5e4, "rope_scaling": {"type": "yarn", "factor": 4.0}, "max_position_embeddings": 4096}
    scene.write_target_config({"text_config": text} if nested else text)
    rope = scene.load().target.rope
    assert (rope.theta, rope.label) == (5e4, "target's")
    assert rope.scaling == {"factor": 4.0, "original_max_position_embeddings": 4096.0}
    assert scene.load().target.max_positions == 4096


@pytest.mark.parametrize("scaling", [{"type": "longrope"}, {"type": "dynamic", "factor": 2.0}, 7])
def test_a_target_whose_rope_no_drafter_can_have(tmp_path, scaling):
    scene = Scene(tmp_path)
    scene.write_target_config({"rope_scaling": scaling})
    assert scene.load().target.rope is None
