"""One decoder layer of the drafter.

The first layer joins the normed embedding of the input token with the normed hidden state, [embedding | hidden]; its
projections are split into the two halves, so that the embedding half is made once per token and not once per reading.
Later layers are ordinary Llama layers over the hidden state, as in speculators, vLLM and SGLang.
"""

from typing import Literal

import torch
from torch.nn.functional import linear, silu

from remote_payload.standalone.checkpoint.config import DrafterConfig
from remote_payload.standalone.graph import LatentAttention
from remote_payload.standalone.model.grouped import Grouped
from remote_payload.standalone.model.latent import Latent
from remote_payload.standalone.model.norm import rms_norm
from remote_payload.standalone.model.rope import Angles
from remote_payload.standalone.model.weights import Weights


class Layer:
    """Weights of one layer, and the parts of its computation that see no other position."""

    def __init__(self, load: Weights, config: DrafterConfig, index: int) -> None:
        load, kind, eps = load.below(f"layers.{index}."), config.attention, config.rms_norm_eps
        self._eps = eps
        below = load.below("self_attn.")
        self.attention: Grouped | Latent
        if isinstance(kind, LatentAttention):
            self.attention, self.window = Latent(below, kind, eps), None
        else:
            self.attention, self.window = Grouped(below, kind, eps), kind.windows[min(index, len(kind.windows) - 1)]
        projection = below.joined(self.attention.projection)
        self._bias = projection.bias
        if index == 0:
            self._embedding_norm = load("input_layernorm.weight")
            embedding, hidden = projection.weight.chunk(2, dim=1)
            self._embedding: torch.Tensor | None = embedding.contiguous()
            self._hidden = hidden.contiguous()
            self._norm = load("hidden_norm.weight")
        else:
            self._embedding, self._hidden = None, projection.weight
            self._norm = load("input_layernorm.weight")
        self._post_norm = load("post_attention_layernorm.weight")
        self._gate_up = load.joined(("mlp.gate_proj", "mlp.up_proj"))
        self._down = load.linear("mlp.down_proj")

    def token_part(self, embedded: torch.Tensor) -> torch.Tensor:
        """The first layer's embedding half of its projections, (..., H) -> (..., W), with their biases."""
        assert self._embedding is not None, "only the first layer reads tokens"
        return linear(rms_norm(embedded, self._embedding_norm, self._eps), self._embedding, self._bias)

    def begin(self, hidden: torch.Tensor, residual: Literal["raw", "normed"]) -> tuple[torch.Tensor, torch.Tensor]:
        """What attention is added to, and what the projections read; each (..., H)."""
        normed = rms_norm(hidden, self._norm, self._eps)
        return (normed if residual == "normed" else hidden), normed

    def keys_values(
        self, normed: torch.Tensor, token: torch.Tensor | None, angles: Angles
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of positions (R, P, H), without their queries; `token` is that part of `token_part`."""
        width = self.attention.query_width
        bias = None if self._bias is None or token is not None else self._bias[width:]
        flat = linear(normed, self._hidden[width:], bias)
        return self.attention.keys_values(flat if token is None else flat.add_(token), angles)

    def queries(self, normed: torch.Tensor, token: torch.Tensor | None, angles: Angles) -> torch.Tensor:
        """Queries of positions (R, P, H), without their keys and values."""
        width = self.attention.query_width
        bias = None if self._bias is None or token is not None else self._bias[:width]
        flat = linear(normed, self._hidden[:width], bias)
        return self.attention.queries(flat if token is None else flat.add_(token), angles)

    def all_heads(
        self, normed: torch.Tensor, token: torch.Tensor | None, angles: Angles
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries, keys and values of positions (R, P, H)."""
        flat = linear(normed, self._hidden, self._bias if token is None else None)
        flat = flat if token is None else flat.add_(token)
        query, other = flat.tensor_split((self.attention.query_width,), dim=-1)
        return self.attention.queries(query, angles), *self.attention.keys_values(other, angles)

    def finish(self, residual: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        """The layer's output (..., H) from what its heads attended to (..., Hq dv)."""
        hidden = residual + self.attention.out(attended)
        gate, up = self._gate_up(rms_norm(hidden, self._post_norm, self._eps)).chunk(2, dim=-1)
        return hidden + self._down(silu(gate) * up)
