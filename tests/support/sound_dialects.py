"""Sound drafters in other words: each is the bundled one as another tool, or an older one, would have written it."""

import json
from collections.abc import Callable
from typing import Any

import torch
from safetensors.torch import save_file

from tests.support.broken_scene import Scene, Tensors

LAYER = "midlayer."


def as_exported(scene: Scene) -> None:
    """As SpecForge's exporter writes it."""


def numbered_layer(scene: Scene) -> None:
    """`layers.0.` instead of `midlayer.`, and the number of states in words."""
    scene.edit_config(lambda config: config.update(num_aux_hidden_states=3))
    _renamed(scene, lambda name: name.replace(LAYER, "layers.0."))


def under_model(scene: Scene) -> None:
    """Everything but the head and the maps below `model.`, as whole models are saved."""
    outside = ("lm_head.weight", "d2t", "t2d")
    _renamed(scene, lambda name: name if name in outside else f"model.{name.replace(LAYER, 'layers.0.')}")


def default_ids_meant(scene: Scene) -> None:
    """No ids at all, and trained on the states that an engine takes then."""
    scene.edit_config(lambda config: config.pop("eagle_config"))


def ids_of_both_engines(scene: Scene) -> None:
    """SGLang's ids where SGLang reads them, and the same states in vLLM's numbering where vLLM does."""

    def change(config: dict[str, Any]) -> None:
        ids = config["eagle_config"]["eagle_aux_hidden_state_layer_ids"]
        config["eagle_aux_hidden_state_layer_ids"] = [number + 1 for number in ids]

    scene.edit_config(change)


def own_embedding(scene: Scene) -> None:
    """The target's embedding, stored with the drafter."""
    embedding = scene.target_tensor("model.embed_tokens.weight")
    scene.edit_tensors(lambda tensors: tensors.update({"embed_tokens.weight": embedding}))


def two_shards(scene: Scene) -> None:
    """Two weight files and their index."""
    tensors = scene.tensors()
    files: list[Tensors] = [{}, {}]
    for place, name in enumerate(sorted(tensors)):
        files[place % 2][name] = tensors[name]
    where: dict[str, str] = {}
    for number, part in enumerate(files, 1):
        file = f"model-{number:05}-of-00002.safetensors"
        save_file(part, scene.draft / file)
        where |= dict.fromkeys(part, file)
    (scene.draft / "model.safetensors").unlink()
    index = {"metadata": {"total_size": 0}, "weight_map": where}
    (scene.draft / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def in_float32(scene: Scene) -> None:
    """Every weight a float32, and the config says so."""
    scene.edit_config(lambda config: config.update(dtype="float32"))
    scene.edit_tensors(
        lambda tensors: tensors.update({name: one.float() for name, one in tensors.items() if one.is_floating_point()})
    )


def narrow_map(scene: Scene) -> None:
    """d2t in 32 bits, and no t2d, which engines do not read."""

    def change(tensors: Tensors) -> None:
        tensors["d2t"] = tensors["d2t"].to(torch.int32)
        del tensors["t2d"]

    scene.edit_tensors(change)


def flags_spelled_out(scene: Scene) -> None:
    """Every flag of the computation said to be off, which it is."""
    off = dict.fromkeys(("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output", "bias"), False)
    scene.edit_config(lambda config: config.update(off))


def old_spelling(scene: Scene) -> None:
    """Config keys of transformers 4: `torch_dtype`, `rope_theta` and no `rope_parameters`."""

    def change(config: dict[str, Any]) -> None:
        config["torch_dtype"] = config.pop("dtype")
        config.pop("rope_parameters")
        config |= {"rope_scaling": None, "transformers_version": "4.53.1"}

    scene.edit_config(change)


def new_spelling(scene: Scene) -> None:
    """Config keys of transformers 5 alone: `rope_parameters` and no `rope_theta`."""
    scene.edit_config(lambda config: config.pop("rope_theta"))


def _renamed(scene: Scene, rename: Callable[[str], str]) -> None:
    tensors = {rename(name): one for name, one in scene.tensors().items()}
    save_file(tensors, scene.draft / "model.safetensors", metadata={"format": "pt"})
