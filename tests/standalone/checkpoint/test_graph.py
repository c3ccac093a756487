"""Every flag of the graph: what decides, what is overruled, and what SGLang computes instead."""

import pytest
import torch

from remote_payload.failure import JobFailure
from tests.standalone.checkpoint.writing import Scene, flag, notes


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


def changes(checkpoint):
    return checkpoint.served.changes_from(checkpoint.graph)


JOINT = {"input_norm.weight": torch.ones(48)}
PER_SLOT = {f"fc_norm.{slot}.weight": torch.ones(16) for slot in range(3)}
ALIASED = {f"aux_norm_{place}.weight": torch.ones(16) for place in ("low", "mid", "high")}


@pytest.mark.parametrize(
    ("tensors", "config", "value", "served"),
    [
        (JOINT, {"norm_before_fc": True}, "joint", ()),
        (JOINT, {"eagle_config": {"norm_before_fc": True}}, "joint", ()),
        (JOINT, {"norm_before_fc": True, "eagle_config": {"norm_before_fc": False}}, "joint", ("input_norm=none",)),
        (JOINT, {}, "joint", ("input_norm=none",)),
        (PER_SLOT, {"fc_norm": True}, "per_slot", ()),
        (PER_SLOT, {"use_aux_norm": True}, "per_slot", ()),
        (PER_SLOT, {"eagle_config": {"fc_norm": True}}, "per_slot", ("input_norm=none",)),
        (ALIASED, {"fc_norm": True}, "per_slot", ()),
        ({}, {"norm_before_fc": True, "fc_norm": True}, "none", ()),
    ],
)
def test_norm_before_fc(scene, tensors, config, value, served):
    checkpoint = scene.load(tensors, **config)
    assert (checkpoint.graph.input_norm, changes(checkpoint)) == (value, served)
    found = flag(checkpoint, "input_norm")
    assert (found.contradicted_by is None) == (bool(config) and bool(tensors))
    assert bool(found.served_why) == bool(served)
    assert ("norm_before_fc" in notes(checkpoint)) == (len(config) == 2 and "eagle_config" not in config)


@pytest.mark.parametrize(
    ("tensors", "config", "says"),
    [
        (JOINT | PER_SLOT, {}, "two norms before fc"),
        ({}, {"norm_before_fc": True}, "input_norm.weight: missing"),
        ({}, {"fc_norm": True}, "fc_norm.0.weight: missing"),
        ({"fc_norm.1.weight": torch.ones(16)}, {}, "fc_norm.0.weight: missing"),
        ({"input_norm.weight": torch.ones(16)}, {}, "input_norm.weight: misshapen"),
    ],
)
def test_norms_before_fc_that_cannot_be_meant(scene, tensors, config, says):
    with pytest.raises(JobFailure, match=says):
        scene.load(tensors, **config)


@pytest.mark.parametrize("place", ["top", "eagle_config"])
@pytest.mark.parametrize("prefix", ["midlayer.", "layers.0."])
def test_normed_residual(scene, place, prefix):
    key = {"norm_before_residual": True}
    checkpoint = scene.prefixed(prefix).load(**(key if place == "top" else {"eagle_config": key}))
    residual = flag(checkpoint, "residual")
    assert (checkpoint.graph.residual, changes(checkpoint)) == ("normed", ("residual=raw",))
    assert (residual.source, residual.evidence) == ("config", "`norm_before_residual: true` in config.json")
    trained = checkpoint.facts.dialect.name in ("specforge", "modelopt")
    assert bool(residual.contradicted_by) == trained


def test_norm_output_is_two_keys_of_one_name(scene):
    specforge = scene.load(norm_output=True)
    assert (specforge.graph.feedback, specforge.graph.final_norm, changes(specforge)) == (
        "raw",
        "applied",
        ("feedback=normed",),
    )
    assert flag(specforge, "feedback").contradicted_by
    assert "norm_output" in notes(specforge)
    others = scene.prefixed("layers.0.").load(norm_output=True)
    assert (others.graph.feedback, changes(others)) == ("normed", ())


@pytest.mark.parametrize(("ones", "value", "served"), [(True, "none", ("final_norm=applied",)), (False, "applied", ())])
def test_an_untrained_final_norm_that_the_config_leaves_out(scene, ones, value, served):
    tensors = {"norm.weight": torch.ones(16)} if ones else {}
    checkpoint = scene.load(tensors, norm_output=False)
    assert (checkpoint.graph.final_norm, changes(checkpoint)) == (value, served)
    assert flag(checkpoint, "final_norm").source == "tensors"


def test_whose_embedding(scene):
    theirs = scene.tiny.draw(40, 16, salt=100)
    absent, equal = scene.load(), scene.load({"embed_tokens.weight": theirs})
    assert [list(found.embeddings) for found in (absent, equal)] == [["target"], ["target"]]
    other = {"embed_tokens.weight": theirs + 1}
    frozen = scene.load(other)  # SpecForge never trains its own
    assert (frozen.graph.embedding, list(frozen.embeddings), changes(frozen)) == ("target", ["target", "draft"], ())
    assert flag(frozen, "embedding").contradicted_by
    kept = scene.prefixed("layers.0.").load(other)
    assert (kept.graph.embedding, changes(kept)) == ("draft", ("embedding=target",))
    assert torch.equal(kept.embeddings["draft"], theirs + 1)
    shared = {item.name: item for item in kept.facts.shared}["embed_tokens"]
    assert (shared.stored, shared.identical, shared.served) == (True, False, "target")


def test_a_drafter_of_another_width_keeps_its_embedding(tmp_path):
    scene = Scene(tmp_path, target_hidden=24)
    checkpoint = scene.load({"embed_tokens.weight": scene.drawn(40, 16)})
    assert (checkpoint.graph.embedding, list(checkpoint.embeddings), changes(checkpoint)) == ("draft", ["draft"], ())


def test_the_final_state_instead_of_captured_ones(scene):
    checkpoint = scene.load(without=["fc.weight"], eagle_config={"use_aux_hidden_state": False})
    assert (checkpoint.graph.input, checkpoint.slots, changes(checkpoint)) == ("final_state", 1, ())
    assert "fc.weight" not in checkpoint.weights


def test_fc_overrules_a_flag_that_denies_it(scene):
    checkpoint = scene.load(eagle_config={"use_aux_hidden_state": False})
    assert (checkpoint.graph.input, checkpoint.slots) == ("states", 3)
    assert flag(checkpoint, "input").contradicted_by == "`use_aux_hidden_state: false` in config.json"
    assert "use_aux_hidden_state" in notes(checkpoint)


def test_without_fc_and_flag_something_is_missing(scene):
    with pytest.raises(JobFailure, match=r"fc\.weight: missing"):
        scene.load(without=["fc.weight"])


def test_the_final_state_must_be_as_wide(tmp_path):
    scene = Scene(tmp_path, target_hidden=24)
    with pytest.raises(JobFailure, match="as wide as the target's states, 24, found: 16"):
        scene.load({"embed_tokens.weight": scene.drawn(40, 16)}, without=["fc.weight"], use_aux_hidden_state=False)


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_any_number_of_states(scene, slots):
    ids = list(range(slots))
    checkpoint = scene.load(
        {"fc.weight": scene.drawn(16, 16 * slots)}, eagle_config={"eagle_aux_hidden_state_layer_ids": ids}
    )
    assert checkpoint.slots == slots
    assert ("eagle_aux_hidden_state_layer_ids" in notes(checkpoint)) == (slots == 1)  # SGLang takes it for its own
