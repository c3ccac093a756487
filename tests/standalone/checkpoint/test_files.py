"""Files of torch and stray files in the drafter's folder: read without unpickling, told when they can do harm."""

import json
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file

from remote_payload.failure import JobFailure
from remote_payload.standalone.checkpoint.load import load_checkpoint
from tests.standalone.checkpoint.writing import WEIGHTS, Scene, write_bin

INDEX = "model.safetensors.index.json"


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


def files(checkpoint):
    return {file.name: file for file in checkpoint.facts.files}


def load(scene):
    return load_checkpoint(scene.folder / "draft", scene.target)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "drafter.pth"])
def test_torch_files_load_like_safetensors(scene, name):
    own = scene.load()
    (scene.folder / "draft" / "model.safetensors").unlink()
    checkpoint = load_checkpoint(write_bin(scene.folder / "draft", scene.config, scene.tensors, name), scene.target)
    assert all(torch.equal(checkpoint.weights[key], own.weights[key]) for key in own.weights)
    found = files(checkpoint)[name]
    assert (found.used, found.role, found.tensors) == (True, "weights", len(scene.tensors))


def test_a_torch_file_from_before_zip(scene):
    folder = write_bin(scene.folder / "draft", scene.config, {})
    torch.save(scene.tensors, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    assert load(scene).slots == 3


def test_shards_of_torch_files(scene):
    names = sorted(scene.tensors)
    halves = {"pytorch_model-1.bin": names[:5], "pytorch_model-2.bin": names[5:]}
    for file, part in halves.items():
        write_bin(scene.folder / "draft", scene.config, {name: scene.tensors[name] for name in part}, file)
    weight_map = {name: file for file, part in halves.items() for name in part}
    index = scene.folder / "draft" / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}), encoding="utf-8")
    checkpoint = load(scene)
    assert len(checkpoint.facts.tensors) == len(names) + 1  # and the target's embedding
    assert all(file.used and file.problem is None for file in checkpoint.facts.files)
    (scene.folder / "draft" / "pytorch_model-2.bin").unlink()
    with pytest.raises(JobFailure, match=r"names 1 file\(s\) that are not there: pytorch_model-2\.bin"):
        load(scene)


class Calls:
    """Unpickled, it would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("zipped", [True, False])
def test_nothing_is_unpickled(scene, zipped):
    folder, trap = write_bin(scene.folder / "draft", scene.config, {}), scene.folder / "sprung"
    torch.save({"fc.weight": Calls(trap)}, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    with pytest.raises(JobFailure, match=r"pickled objects that are not tensors.*pytorch_model\.bin"):
        load(scene)
    assert not trap.exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (pickle.dumps({"a": 1}), "not a whole weight file"),
        (b"PK\x03\x04 torn", "not a whole weight file"),
        (b"", "not a whole weight file"),
    ],
)
def test_torch_files_that_are_none(scene, content, says):
    folder = write_bin(scene.folder / "draft", scene.config, {})
    (folder / "pytorch_model.bin").write_bytes(content)
    with pytest.raises(JobFailure, match=says):
        load(scene)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda tensor: tensor.to("meta"), "on the `meta` device: its numbers were never saved"),
        (lambda tensor: tensor.to_sparse(), r"a sparse tensor \(sparse_coo\)"),
        (lambda tensor: tensor[:1].clone().expand(tensor.shape), "a repeating view of 192 bytes"),
    ],
    ids=["meta", "sparse", "expanded"],
)
def test_torch_tensors_without_plain_numbers(scene, change, says):
    tensors = scene.tensors | {"fc.weight": change(scene.tensors["fc.weight"][:, :48].clone())}
    folder = write_bin(scene.folder / "draft", scene.config, {})
    torch.save(tensors, folder / "pytorch_model.bin")
    with pytest.raises(JobFailure, match=rf"1 tensor\(s\) .* `fc.weight`, is {says}.*pytorch_model\.bin"):
        load(scene)


def test_a_torch_file_of_meta_tensors_beside_safetensors(scene):
    scene.load()
    meta = {name: tensor.to("meta") for name, tensor in scene.tensors.items()}
    torch.save(meta, scene.folder / "draft" / "pytorch_model.bin")
    torch.save({"d2t": meta["d2t"]}, scene.folder / "draft" / "vocab_mapping.pt")
    found = files(load(scene))
    assert "cannot be read than" in found["pytorch_model.bin"].problem
    assert "not the map" in found["vocab_mapping.pt"].problem


def test_only_the_targets_wanted_tensors_must_be_plain(scene):
    weights = load_file(scene.target / WEIGHTS)
    (scene.target / WEIGHTS).unlink()
    torch.save(weights | {"model.layers.0.x": torch.zeros(3, device="meta")}, scene.target / "pytorch_model.bin")
    assert torch.equal(scene.load().teacher_head, weights["lm_head.weight"])


def test_a_torch_file_that_holds_something_else(scene):
    folder = write_bin(scene.folder / "draft", scene.config, {})
    torch.save({"model": scene.tensors, "step": 7}, folder / "pytorch_model.bin")
    with pytest.raises(JobFailure, match="must hold tensors by name"):
        load(scene)


@pytest.mark.parametrize("kind", ["same", "other", "torn"])
def test_a_torch_file_beside_safetensors(scene, kind):
    scene.load()
    tensors = scene.tensors if kind == "same" else scene.tensors | {"fc.weight": scene.tensors["fc.weight"] + 1}
    folder = write_bin(scene.folder / "draft", scene.config, tensors)
    if kind == "torn":
        (folder / "pytorch_model.bin").write_bytes(b"torn")
    found = files(load(scene))["pytorch_model.bin"]
    assert (found.used, found.role) == (False, "weights of another form")
    assert {"same": "", "other": "holds other numbers", "torn": "cannot be read"}[kind] in (found.problem or "")
    assert (found.problem is None) == (kind == "same")


def test_two_files_with_one_tensor(scene):
    scene.load()
    older = {"fc.weight": scene.tensors["fc.weight"] + 1}
    save_file(older, scene.folder / "draft" / "old.safetensors")
    checkpoint = load(scene)
    assert torch.equal(checkpoint.weights["fc.weight"], older["fc.weight"])  # the name that sorts last
    losing, winning = files(checkpoint)["model.safetensors"], files(checkpoint)["old.safetensors"]
    assert (winning.problem, winning.overridden_by) == (None, None)
    assert losing.overridden_by == "old.safetensors"
    assert losing.problem.startswith("old.safetensors overrides ")


@pytest.mark.parametrize(("dtype", "same"), [(None, True), (torch.float64, True), (torch.bfloat16, False)])
def test_the_same_numbers_in_two_files_are_no_fault(scene, dtype, same):
    scene.load()
    fc = scene.tensors["fc.weight"]
    assert not torch.equal(fc.bfloat16().float(), fc.float())  # else rounding would change nothing
    copied = scene.tensors if dtype is None else scene.tensors | {"fc.weight": fc.to(dtype)}
    save_file(copied, scene.folder / "draft" / "pytorch_model_copy.safetensors")
    found = files(load(scene))
    losing, winning = found["model.safetensors"], found["pytorch_model_copy.safetensors"]
    assert (winning.role, winning.problem) == ("weights", None)
    assert losing.role == ("copy of weights" if same else "weights")
    assert losing.overridden_by == (None if same else "pytorch_model_copy.safetensors")
    if not same:
        assert f"overrides 1 of its {len(copied)} tensors (fc.weight)" in losing.problem


def test_a_copy_that_the_index_leaves_out_is_no_fault(scene):
    scene.load()
    folder = scene.folder / "draft"
    save_file({"fc.weight": scene.tensors["fc.weight"]}, folder / "old.safetensors")
    weight_map = dict.fromkeys(scene.tensors, "model.safetensors")
    (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}), encoding="utf-8")
    found = files(load(scene))["old.safetensors"]
    assert (found.role, found.problem) == ("weights not in the index", None)


def test_a_file_that_the_index_leaves_out(scene):
    scene.load()
    folder = scene.folder / "draft"
    save_file({"fc.weight": scene.tensors["fc.weight"] + 1}, folder / "old.safetensors")
    weight_map = dict.fromkeys(scene.tensors, "model.safetensors")
    (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}), encoding="utf-8")
    checkpoint = load(scene)
    assert torch.equal(checkpoint.weights["fc.weight"], scene.tensors["fc.weight"])
    assert files(checkpoint)["old.safetensors"].role == "weights not in the index"
    assert files(checkpoint)[INDEX].problem is None


@pytest.mark.parametrize(("change", "says"), [("more", "names 1 tensor"), ("fewer", "does not name 1 tensor")])
def test_an_index_that_disagrees_with_its_files(scene, change, says):
    scene.load()
    names = [*scene.tensors, "extra"] if change == "more" else list(scene.tensors)[1:]
    index = scene.folder / "draft" / INDEX
    index.write_text(json.dumps({"weight_map": dict.fromkeys(names, "model.safetensors")}), encoding="utf-8")
    assert says in files(load(scene))[INDEX].problem


@pytest.mark.parametrize("stale", [True, False])
def test_vocabulary_maps_beside_the_weights(scene, stale):
    scene.load()
    folder = scene.folder / "draft"
    maps = {name: scene.tensors[name] for name in ("d2t", "t2d")}
    if stale:
        maps = {"d2t": maps["d2t"] - 1, "t2d": maps["t2d"].roll(1)}
    torch.save(maps, folder / "vocab_mapping.pt")
    for name, tensor in maps.items():
        (folder / f"{name}.npy").write_bytes(b"\x93NUMPY header" + tensor.numpy().tobytes())
    torch.save({}, folder / "optimizer.pt")
    found = files(load(scene))
    assert all(bool(found[name].problem) == stale for name in ("vocab_mapping.pt", "d2t.npy", "t2d.npy"))
    assert (found["optimizer.pt"].role, found["optimizer.pt"].problem) == ("not weights", None)


@pytest.mark.parametrize("text", ["{", '{"weight_map": {"a": [1]}}'])
def test_an_index_that_nobody_follows(scene, text):
    scene.load()
    (scene.folder / "draft" / "pytorch_model.bin.index.json").write_text(text, encoding="utf-8")
    assert files(load(scene))["pytorch_model.bin.index.json"].problem
