"""Random drafters, targets and captured rows of any shape, written as real files."""

import gzip
import io
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file


@dataclass(frozen=True, kw_only=True)
class Tiny:
    """Sizes of a made-up drafter and its target."""

    hidden: int = 16
    target_hidden: int = 16
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 8
    inner: int = 24
    vocab: int = 40
    draft_vocab: int = 24
    slots: int = 3
    captured: int = 4
    layers: int = 8
    seed: int = 0

    def draw(self, *shape: int, scale: float = 1.0, salt: int = 0) -> torch.Tensor:
        """Normal random numbers, the same for the same seed, shape and salt."""
        generator = torch.Generator().manual_seed(hash((self.seed, shape, salt)) % 2**31)
        return torch.randn(*shape, generator=generator) * scale


def drafter_tensors(tiny: Tiny, prefix: str = "midlayer.") -> dict[str, torch.Tensor]:
    """A drafter's tensors under SpecForge's names, float32."""
    query, key, hidden = tiny.heads * tiny.head_dim, tiny.kv_heads * tiny.head_dim, tiny.hidden
    shapes = {
        "fc.weight": (hidden, tiny.slots * tiny.target_hidden),
        f"{prefix}self_attn.q_proj.weight": (query, 2 * hidden),
        f"{prefix}self_attn.k_proj.weight": (key, 2 * hidden),
        f"{prefix}self_attn.v_proj.weight": (key, 2 * hidden),
        f"{prefix}self_attn.o_proj.weight": (hidden, query),
        f"{prefix}mlp.gate_proj.weight": (tiny.inner, hidden),
        f"{prefix}mlp.up_proj.weight": (tiny.inner, hidden),
        f"{prefix}mlp.down_proj.weight": (hidden, tiny.inner),
        "lm_head.weight": (tiny.draft_vocab, hidden),
    }
    names = ("input_layernorm", "hidden_norm", "post_attention_layernorm")
    norms = [f"{prefix}{name}.weight" for name in names] + ["norm.weight"]
    tensors = {
        name: tiny.draw(*shape, scale=shape[-1] ** -0.5, salt=i) for i, (name, shape) in enumerate(shapes.items())
    }
    tensors |= {name: 1 + tiny.draw(hidden, scale=0.1, salt=i) for i, name in enumerate(norms)}
    chosen = torch.arange(tiny.vocab)[tiny.vocab - tiny.draft_vocab :]  # the last ids: offsets are not zero
    tensors["d2t"] = chosen - torch.arange(tiny.draft_vocab)
    tensors["t2d"] = torch.isin(torch.arange(tiny.vocab), chosen)
    return tensors


def drafter_config(tiny: Tiny) -> dict[str, object]:
    """config.json of a drafter that declares SGLang's default states of its target."""
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "hidden_size": tiny.hidden,
        "target_hidden_size": tiny.target_hidden,
        "intermediate_size": tiny.inner,
        "num_attention_heads": tiny.heads,
        "num_key_value_heads": tiny.kv_heads,
        "head_dim": tiny.head_dim,
        "num_hidden_layers": 1,
        "vocab_size": tiny.vocab,
        "draft_vocab_size": tiny.draft_vocab,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3, 4], "use_aux_hidden_state": True},
    }


def target_tensors(tiny: Tiny, prefix: str = "model.") -> dict[str, torch.Tensor]:
    """The three tensors of a target that the test reads, and one it must leave alone."""
    return {
        f"{prefix}embed_tokens.weight": tiny.draw(tiny.vocab, tiny.target_hidden, salt=100),
        f"{prefix}norm.weight": 1 + tiny.draw(tiny.target_hidden, scale=0.1, salt=101),
        f"{prefix}layers.0.embed_tokens.weight": torch.full((1,), float("nan")),
        "lm_head.weight": tiny.draw(tiny.vocab, tiny.target_hidden, salt=102),
    }


def write_model(folder: Path, config: dict[str, object], tensors: dict[str, torch.Tensor]) -> Path:
    """A model folder: config.json and one safetensors file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")
    return folder


def write_drafter(folder: Path, tiny: Tiny) -> Path:
    """A drafter folder."""
    return write_model(folder, drafter_config(tiny), drafter_tensors(tiny))


def write_target(folder: Path, tiny: Tiny) -> Path:
    """A target folder."""
    config = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": tiny.layers, "vocab_size": tiny.vocab}
    return write_model(folder, config, target_tensors(tiny))


def normed(tiny: Tiny, states: torch.Tensor) -> torch.Tensor:
    """States after the target's final norm."""
    size = states.square().mean(dim=-1, keepdim=True).sqrt()
    return states / size * target_tensors(tiny)["model.norm.weight"]


def row_tensors(tiny: Tiny, tokens: int, prompt: int, salt: int = 0) -> dict[str, torch.Tensor]:
    """A captured row in SpecForge's offline layout, float32; tokens from `prompt` on are the response."""
    generator = torch.Generator().manual_seed(salt)
    mask = torch.zeros(tokens, dtype=torch.int64)
    mask[prompt:] = 1
    return {
        "input_ids": torch.randint(0, tiny.vocab, (tokens,), generator=generator),
        "loss_mask": mask,
        "aux_hidden_state": tiny.draw(1, tokens, tiny.captured * tiny.target_hidden, salt=1000 + salt),
        "hidden_state": normed(tiny, tiny.draw(1, tokens, tiny.target_hidden, salt=2000 + salt)),
    }


def write_row(folder: Path, number: int, row: dict[str, torch.Tensor], *, compress: bool = False) -> Path:
    """One row file `rows_0-2000/data_<number>.ckpt`, or `.ckpt.gz`."""
    buffer = io.BytesIO()
    torch.save(row, buffer)
    path = folder / "rows_0-2000" / f"data_{number}.ckpt{'.gz' if compress else ''}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(buffer.getvalue(), mtime=0) if compress else buffer.getvalue())
    return path


def write_rows(folder: Path, tiny: Tiny, lengths: tuple[int, ...] = (20, 17, 23)) -> Path:
    """A folder of captured rows, a third of each the prompt."""
    for number, tokens in enumerate(lengths):
        write_row(folder, number, row_tensors(tiny, tokens, tokens // 3, salt=number))
    return folder
