"""One fault each in the drafter's folder, or in the target's. Every function breaks a scene in exactly one way."""

import json
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tests.support.broken_scene import GOLDEN, Scene, Tensors

HEAD, EMBEDDING = "lm_head.weight", "embed_tokens.weight"


def _drawn(like: torch.Tensor, std: float = 0.02) -> torch.Tensor:
    return (torch.randn(like.shape, generator=torch.Generator().manual_seed(0)) * std).to(like.dtype)


def repeated_head_rows(scene: Scene) -> None:
    """A pruning script took lm_head's rows at the stored offsets instead of at the token ids they lead to."""

    def change(tensors: Tensors) -> None:
        full = scene.target_tensor(HEAD).clone()
        full[torch.arange(len(tensors["d2t"])) + tensors["d2t"]] = tensors[HEAD]
        tensors[HEAD] = full[tensors["d2t"]]

    scene.edit_tensors(change)


def random_query(scene: Scene) -> None:
    """A tensor was left as it was initialised: normal numbers of the config's initializer_range."""

    def change(tensors: Tensors) -> None:
        name = "midlayer.self_attn.q_proj.weight"
        tensors[name] = _drawn(tensors[name])

    scene.edit_tensors(change)


def missing_head(scene: Scene) -> None:
    """No lm_head, although the draft vocabulary is its own: SGLang leaves it random."""
    scene.edit_tensors(lambda tensors: tensors.pop(HEAD))


def missing_norm(scene: Scene) -> None:
    """No final norm: engines leave it at ones."""
    scene.edit_tensors(lambda tensors: tensors.pop("norm.weight"))


def overwritten_head(scene: Scene) -> None:
    """The target's rows stand where the drafter's own head belongs."""

    def change(tensors: Tensors) -> None:
        tensors[HEAD] = scene.target_tensor(HEAD)[torch.arange(len(tensors["d2t"])) + tensors["d2t"]]

    scene.edit_tensors(change)


def float_map(scene: Scene) -> None:
    """d2t was cast with the weights."""
    scene.edit_tensors(lambda tensors: tensors.update(d2t=tensors["d2t"].float()))


def zero_biases(scene: Scene) -> None:
    """No fault of the tensors: biases that never moved from 0. That SGLang has none in q, k and v is another one."""
    scene.edit_config(lambda config: config.update(attention_bias=True))

    def change(tensors: Tensors) -> None:
        for name in "qkv":
            stem = f"midlayer.self_attn.{name}_proj"
            tensors[f"{stem}.bias"] = torch.zeros(len(tensors[f"{stem}.weight"]), dtype=torch.bfloat16)

    scene.edit_tensors(change)


def unused_tensor(scene: Scene) -> None:
    """A tensor that nothing in the drafter's computation reads."""
    scene.edit_tensors(lambda tensors: tensors.update({"value_head.weight": torch.ones(8, 8)}))


def unknown_norms(scene: Scene) -> None:
    """Both norms before fc are on, which exclude each other."""
    scene.edit_config(lambda config: config.update(norm_before_fc=True, fc_norm=True))


def ids_at_the_top(scene: Scene) -> None:
    """Capture ids where vLLM reads them and SGLang does not, which then takes its defaults."""

    def change(config: dict[str, Any]) -> None:
        config["eagle_aux_hidden_state_layer_ids"] = config.pop("eagle_config")["eagle_aux_hidden_state_layer_ids"]

    scene.edit_config(change)


def forty_layers(scene: Scene) -> None:
    """config.json was copied from the target: it tells of more layers than the weights hold."""
    scene.edit_config(lambda config: config.update(num_hidden_layers=40))


def absolute_map(scene: Scene) -> None:
    """d2t holds token ids instead of offsets."""
    scene.edit_tensors(lambda tensors: tensors["d2t"].add_(torch.arange(len(tensors["d2t"]))))


def zero_map(scene: Scene) -> None:
    """d2t was never filled in: all draft ids mean the first token ids."""
    scene.edit_tensors(lambda tensors: tensors["d2t"].zero_())


def shifted_map(scene: Scene) -> None:
    """d2t leads every draft id to the token behind its own."""
    scene.edit_tensors(lambda tensors: tensors["d2t"].add_(1))


def interleaved_heads(scene: Scene) -> None:
    """Queries and keys are exported for pairs of neighbours; every engine turns halves."""
    config = json.loads((scene.draft / "config.json").read_text(encoding="utf-8"))
    heads = config["num_attention_heads"], config["num_key_value_heads"]

    def change(tensors: Tensors) -> None:
        for name, count in zip("qk", heads, strict=True):
            key = f"midlayer.self_attn.{name}_proj.weight"
            halves = tensors[key].unflatten(0, (count, 2, -1))
            tensors[key] = halves.transpose(1, 2).reshape(tensors[key].shape).clone()

    scene.edit_tensors(change)


def partial_rotary(scene: Scene) -> None:
    """config.json tells engines to turn half of each head; the drafter was trained with whole heads turned."""
    scene.edit_config(lambda config: config.update(partial_rotary_factor=0.5))


def disagreeing_t2d(scene: Scene) -> None:
    """t2d marks other tokens than d2t leads to: a stale cache of another data set."""
    scene.edit_tensors(lambda tensors: tensors.update(t2d=tensors["t2d"].roll(1)))


def unordered_map(scene: Scene) -> None:
    """Draft ids in another order than their tokens; every one still leads to its own."""

    def change(tensors: Tensors) -> None:
        count = len(tensors["d2t"])
        order = torch.arange(count).roll(count // 2)
        ids = torch.arange(count) + tensors["d2t"]
        tensors[HEAD] = tensors[HEAD][order]
        tensors["d2t"] = ids[order] - torch.arange(count)

    scene.edit_tensors(change)


def random_embedding(scene: Scene) -> None:
    """The exporter stored an embedding that was never loaded."""
    scene.edit_tensors(lambda tensors: tensors.update({EMBEDDING: _drawn(scene.target_tensor(f"model.{EMBEDDING}"))}))


def foreign_head(scene: Scene) -> None:
    """lm_head of a model with another basis: as well trained as this one's, and of no use here."""

    def change(tensors: Tensors) -> None:
        size = tensors[HEAD].shape[1]
        turn, _ = torch.linalg.qr(torch.randn(size, size, generator=torch.Generator().manual_seed(0)))
        tensors[HEAD] = (tensors[HEAD].float() @ turn).to(tensors[HEAD].dtype)

    scene.edit_tensors(change)


def default_ids(scene: Scene) -> None:
    """The story: the drafter of [embed, 2, 4] is served SGLang's default states."""
    scene.edit_config(lambda config: config.update(eagle_config={"eagle_aux_hidden_state_layer_ids": [1, 3, 4]}))


def swapped_fc(scene: Scene) -> None:
    """fc's blocks in another order: the trainer joined the states in the order of a list, engines join by layer."""

    def change(tensors: Tensors) -> None:
        low, middle, high = tensors["fc.weight"].chunk(3, dim=1)
        tensors["fc.weight"] = torch.cat((high, low, middle), dim=1)

    scene.edit_tensors(change)


def norm_before_residual(scene: Scene) -> None:
    """The config claims a residual the drafter was not trained with."""
    scene.edit_config(lambda config: config.update(norm_before_residual=True))


def norm_output(scene: Scene) -> None:
    """The key that means `final norm applied` to SpecForge's trainer and `feed the normed state back` to engines."""
    scene.edit_config(lambda config: config.update(norm_output=True))


def norm_before_fc(scene: Scene) -> None:
    """A norm over the joined states that the drafter was not trained with."""
    scene.edit_config(lambda config: config.update(norm_before_fc=True))
    scene.edit_tensors(lambda tensors: tensors.update({"input_norm.weight": torch.ones(384, dtype=torch.bfloat16)}))


def other_theta(scene: Scene) -> None:
    """rope_theta of another model."""

    def change(config: dict[str, Any]) -> None:
        config["rope_theta"] = 100.0
        config["rope_parameters"] = {"rope_theta": 100.0, "rope_type": "default"}

    scene.edit_config(change)


def other_scaling(scene: Scene) -> None:
    """A rope scaling that was added when the checkpoint was exported."""
    scaling = {"rope_type": "linear", "factor": 8.0, "rope_theta": 10000.0}
    scene.edit_config(lambda config: config.update(rope_scaling=scaling, rope_parameters=scaling))


def adapted(name: str, scene: Scene) -> None:
    """Add one of the trained low-rank changes (tests/support/make_adapters.py)."""
    low = load_file(GOLDEN / "adapters" / f"{name}.safetensors")

    def change(tensors: Tensors) -> None:
        for stem in {key.rsplit(".", 1)[0] for key in low}:
            weight = tensors[f"{stem}.weight"]
            delta = low[f"{stem}.a"].float() @ low[f"{stem}.b"].float()
            tensors[f"{stem}.weight"] = (weight.float() + delta).to(weight.dtype)

    scene.edit_tensors(change)


def second_weight_file(scene: Scene) -> None:
    """An earlier save of the same tensors lies beside; the name that sorts last wins in SGLang."""
    tensors = {
        name: (tensor.float() + _drawn(tensor.float(), 0.02) * tensor.float().abs()).to(tensor.dtype)
        for name, tensor in scene.tensors().items()
        if tensor.is_floating_point()
    }
    save_file(tensors, scene.draft / "pytorch_model_old.safetensors")


def disagreeing_index(scene: Scene) -> None:
    """The index knows nothing of one of the tensors that its shard holds."""
    names = [name for name in scene.tensors() if name != "norm.weight"]
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "model.safetensors")}
    (scene.draft / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def stale_map_file(scene: Scene) -> None:
    """A vocabulary map of another data set beside the weights, which trainers load without asking."""
    tensors = scene.tensors()
    torch.save({"d2t": tensors["d2t"].roll(3), "t2d": tensors["t2d"].roll(3)}, scene.draft / "vocab_mapping.pt")


def other_target(scene: Scene) -> None:
    """The target's folder holds another revision: its head answers other tokens."""
    scene.edit_target(lambda tensors: tensors.update({HEAD: tensors[HEAD].roll(1, dims=0)}))
