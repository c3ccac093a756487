"""DeepSeek's latent attention (MLA) inside a drafter's layer: keys and values grow out of a small latent.

As in DeepSeek-V3's forward (transformers `DeepseekV3Attention`), with the norms' eps from config.json as TorchSpec's
trainer and SGLang have it. Keys and values are expanded to all heads, as serving does at prefill.
"""

import torch

from remote_payload.standalone.checkpoint.rope_config import Rope
from remote_payload.standalone.graph import LatentAttention
from remote_payload.standalone.model.norm import rms_norm
from remote_payload.standalone.model.rope import Angles, rotate, softmax_factor
from remote_payload.standalone.model.weights import Linear, Weights


class Latent:
    """The first projections of queries and of the latent as one, and what grows out of each."""

    def __init__(self, load: Weights, kind: LatentAttention, eps: float) -> None:
        """`load` gives the tensors below `self_attn.`."""
        self._kind, self._eps = kind, eps
        first = "q_proj" if kind.q_lora_rank is None else "q_a_proj"
        self.projection = (first, "kv_a_proj_with_mqa")  # together (q_lora or Q, then kv_lora + rope; H or 2 H)
        self.out: Linear = load.linear("o_proj")
        self.kv_heads, self.value_dim = kind.heads, kind.value_head_dim
        self.key_dim = kind.nope_head_dim + kind.rope_head_dim
        self.rope_dim = kind.rope_head_dim
        self.query_width = kind.heads * self.key_dim if kind.q_lora_rank is None else kind.q_lora_rank
        self._query_norm = None if kind.q_lora_rank is None else load("q_a_layernorm.weight")
        self._query_up = None if kind.q_lora_rank is None else load.linear("q_b_proj")
        self._latent_norm = load("kv_a_layernorm.weight")
        self._latent_up = load.linear("kv_b_proj")

    def scale(self, rope: Rope) -> float:
        """What scores are multiplied by: yarn's mscale_all_dim belongs to it."""
        return float(self.key_dim**-0.5) * softmax_factor(rope)

    def queries(self, flat: torch.Tensor, angles: Angles) -> torch.Tensor:
        """The projection's query part (..., P, q_lora or Q) as heads (..., P, heads, nope + rope), rotated behind."""
        if self._query_up is not None and self._query_norm is not None:
            flat = self._query_up(rms_norm(flat, self._query_norm, self._eps))
        still, turned = flat.view(*flat.shape[:-1], -1, self.key_dim).tensor_split((self._kind.nope_head_dim,), dim=-1)
        return torch.cat((still, rotate(turned, angles)), dim=-1)

    def keys_values(self, flat: torch.Tensor, angles: Angles) -> tuple[torch.Tensor, torch.Tensor]:
        """The projection's other part (..., P, kv_lora + rope) as keys and values of every head, (..., P, heads, d)."""
        latent, turned = flat.tensor_split((self._kind.kv_lora_rank,), dim=-1)
        grown = self._latent_up(rms_norm(latent, self._latent_norm, self._eps))
        still, values = grown.view(*grown.shape[:-1], self.kv_heads, -1).tensor_split(
            (self._kind.nope_head_dim,), dim=-1
        )
        shared = rotate(turned.unsqueeze(-2), angles).expand(*still.shape[:-1], -1)  # one rotary part for all heads
        return torch.cat((still, shared), dim=-1), values
