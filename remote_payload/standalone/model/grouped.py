"""Llama's attention inside a drafter's layer: query heads share key/value heads."""

import torch

from remote_payload.standalone.checkpoint.rope_config import Rope
from remote_payload.standalone.graph import GroupedAttention
from remote_payload.standalone.model.norm import rms_norm
from remote_payload.standalone.model.rope import Angles, rotate
from remote_payload.standalone.model.weights import Linear, Weights


class Grouped:
    """q, k, v as one projection; what of it is a query, what keys and values, and how they are finished."""

    def __init__(self, load: Weights, kind: GroupedAttention, eps: float) -> None:
        """`load` gives the tensors below `self_attn.`."""
        self.projection = ("q_proj", "k_proj", "v_proj")  # together (Q + 2 KV, H or 2 H)
        self.out: Linear = load.linear("o_proj")
        self.query_width = kind.heads * kind.head_dim
        self.kv_heads, self.key_dim, self.value_dim = kind.kv_heads, kind.head_dim, kind.head_dim
        self.rope_dim = kind.head_dim
        self._eps = eps
        self._query_norm = load("q_norm.weight") if kind.qk_norm else None
        self._key_norm = load("k_norm.weight") if kind.qk_norm else None

    def scale(self, rope: Rope) -> float:
        """What scores are multiplied by; a rope changes it only through its angles."""
        del rope
        return float(self.key_dim**-0.5)

    def queries(self, flat: torch.Tensor, angles: Angles) -> torch.Tensor:
        """The projection's query part (..., P, Q) as rotated heads (..., P, Hq, d)."""
        return self._finished(flat, self._query_norm, angles)

    def keys_values(self, flat: torch.Tensor, angles: Angles) -> tuple[torch.Tensor, torch.Tensor]:
        """The projection's other part (..., P, 2 KV) as rotated keys and values, each (..., P, Hkv, d)."""
        keys, values = flat.chunk(2, dim=-1)
        return self._finished(keys, self._key_norm, angles), values.view(*values.shape[:-1], -1, self.value_dim)

    def _finished(self, flat: torch.Tensor, norm: torch.Tensor | None, angles: Angles) -> torch.Tensor:
        heads = flat.view(*flat.shape[:-1], -1, self.key_dim)
        return rotate(heads if norm is None else rms_norm(heads, norm, self._eps), angles)
