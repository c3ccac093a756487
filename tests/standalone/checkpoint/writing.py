"""Drafters written in each dialect's way, and changed one thing at a time."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file

from remote_payload.standalone.checkpoint.load import load_checkpoint
from tests.support.tiny import Tiny, drafter_config, drafter_tensors, write_model, write_target

DEMO = Path(__file__).parents[3] / "orchestrator" / "demo" / "data"
GOLDEN = Path(__file__).parents[2] / "golden" / "standalone" / "dialects"
"""config.json files as each peer wrote them for the bundled drafters."""
CONFIG, WEIGHTS = "config.json", "model.safetensors"


def demo_config():
    return json.loads((DEMO / "drafter_std" / CONFIG).read_text(encoding="utf-8"))


def golden_config(name):
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


def demo_tensors():
    return load_file(DEMO / "drafter_std" / WEIGHTS)


def demo_target(name):
    weights = load_file(DEMO / "target" / "model-00001-of-00001.safetensors")
    return next(tensor for stored, tensor in weights.items() if stored.endswith(name) and "layers" not in stored)


def write_bin(folder, config, tensors, name="pytorch_model.bin"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).write_text(json.dumps(config), encoding="utf-8")
    torch.save({key: tensor.contiguous() for key, tensor in tensors.items()}, folder / name)
    return folder


def renamed(tensors, old, new):
    return {name.replace(old, new, 1) if name.startswith(old) else name: tensor for name, tensor in tensors.items()}


class Scene:
    """A tiny drafter and its target; `load` takes changes of config and tensors."""

    def __init__(self, folder, **sizes):
        self.folder, self.tiny = folder, Tiny(**sizes)
        self.target = write_target(folder / "target", self.tiny)
        self.config, self.tensors = drafter_config(self.tiny), drafter_tensors(self.tiny)

    def load(self, tensors=None, without=(), **config):
        changed = {key: value for key, value in (self.config | config).items() if value is not ...}
        kept = {name: tensor for name, tensor in (self.tensors | (tensors or {})).items() if name not in without}
        return load_checkpoint(write_model(self.folder / "draft", changed, kept), self.target)

    def write_target_config(self, config):
        value = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 8} | config
        (self.target / CONFIG).write_text(json.dumps(value), encoding="utf-8")

    def prefixed(self, prefix):
        self.tensors = drafter_tensors(self.tiny, prefix)
        return self

    def drawn(self, *shape, salt=50):
        return self.tiny.draw(*shape, salt=salt)

    def second_layer(self, prefix="layers.1."):
        tiny = self.tiny
        query, key, hidden = tiny.heads * tiny.head_dim, tiny.kv_heads * tiny.head_dim, tiny.hidden
        shapes = {"self_attn.q_proj": (query, hidden), "self_attn.k_proj": (key, hidden),
                  "self_attn.v_proj": (key, hidden), "self_attn.o_proj": (hidden, query),
                  "mlp.gate_proj": (tiny.inner, hidden), "mlp.up_proj": (tiny.inner, hidden),
                  "mlp.down_proj": (hidden, tiny.inner), "input_layernorm": (hidden,),
                  "post_attention_layernorm": (hidden,)}  # fmt: skip
        return {f"{prefix}{name}.weight": self.drawn(*shape, salt=i) for i, (name, shape) in enumerate(shapes.items())}


def flag(checkpoint, name):
    (found,) = [item for item in checkpoint.facts.graph if item.name == name]
    return found


def notes(checkpoint):
    return {note.key for note in checkpoint.facts.notes}
