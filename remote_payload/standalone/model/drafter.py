"""The EAGLE-3 drafter (one Llama layer), many readings of it at once, on one row.

Draft position j joins the captured states of token j (through fc) with the embedding of token j + offset. Step s >= 1
takes the drafter's own un-normed output of step s - 1 and the embedding of token j + offset + s, at rotary position
j + s. Its attention sees the step-0 keys of all positions <= j (the true prefix) and its own chain's keys of steps
1..s: what a serving chain that starts at j sees. Residual is the un-normed fc output, as in SafeAILab's, SpecForge's
and SGLang's forward.

Two sums are split so that readings share work: fc over its slots (each state's projection is made once per row), and
the layer's q, k, v over their [embedding | hidden] halves (the embedding half is made once per token).

Shapes: R readings, T tokens, P judged positions, H hidden, Hq/Hkv heads of d, Q = Hq d, KV = Hkv d, D draft vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import linear, silu

from remote_payload.failure import checkpoint_failure
from remote_payload.standalone.checkpoint.load import Checkpoint
from remote_payload.standalone.graph import GroupedAttention, Reading
from remote_payload.standalone.model.attention import ChainCache, attend
from remote_payload.standalone.model.rope import rope_tables, rotate

LOGIT_BYTES = 64 << 20
"""Logits are made in pieces of at most this size, never (T, V) whole."""
LARGEST_OUTPUT = 1e15
"""Its square, summed over a few thousand numbers, still fits float32; real outputs stay below some thousands."""


@dataclass(frozen=True, kw_only=True)
class RowInputs:
    """What every reading of one row shares; projections fill up as readings ask for them."""

    states: torch.Tensor  # (T, n, Ht)
    token_qkv: torch.Tensor  # (T, Q + 2 KV), the embedding half
    positions: torch.Tensor  # (P,) ascending draft positions
    projections: dict[tuple[int, int], torch.Tensor]  # (state, slot) -> (T', H), T' = last position + 1


class Drafter:
    """The drafter's weights on a device, in a dtype."""

    def __init__(self, checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> None:
        config, self.config = checkpoint.config, checkpoint.config
        self.device, self.dtype = device, dtype
        assert isinstance(config.attention, GroupedAttention)
        self.attention, self.graph = config.attention, checkpoint.graph
        weights = checkpoint.weights

        def load(name: str) -> torch.Tensor:
            return weights[name].to(device=device, dtype=dtype)

        def load_optional(name: str) -> torch.Tensor | None:
            return load(name) if name in weights else None

        self.embedding = checkpoint.embeddings[checkpoint.graph.embedding].to(
            device
        )  # (V, H), stored dtype: it is only looked up
        self.fc = load("fc.weight").chunk(checkpoint.slots, dim=1)  # one (H, Ht) a slot
        self.fc_bias = load_optional("fc.bias")
        names = [f"layers.0.self_attn.{part}_proj" for part in ("q", "k", "v")]
        qkv = torch.cat([load(f"{name}.weight") for name in names])  # (Q + 2 KV, 2 H)
        self.qkv_embedding, self.qkv_hidden = (half.contiguous() for half in qkv.chunk(2, dim=1))
        self.qkv_bias = torch.cat([load(f"{name}.bias") for name in names]) if config.attention.bias else None
        self.out = load("layers.0.self_attn.o_proj.weight")
        self.out_bias = load_optional("layers.0.self_attn.o_proj.bias")
        self.gate_up = torch.cat([load("layers.0.mlp.gate_proj.weight"), load("layers.0.mlp.up_proj.weight")])
        self.down = load("layers.0.mlp.down_proj.weight")
        self.input_norm = load("layers.0.input_layernorm.weight")
        self.hidden_norm = load("layers.0.hidden_norm.weight")
        self.post_norm = load("layers.0.post_attention_layernorm.weight")
        self.norm = load("norm.weight")
        self.head = load("lm_head.weight")  # (D, H)
        self._cos, self._sin = torch.empty(0), torch.empty(0)

    def prepare(self, tokens: torch.Tensor, states: torch.Tensor, positions: torch.Tensor) -> RowInputs:
        """Inputs that all readings of a row share. `tokens` (T,), `states` (T, n, Ht), `positions` (P,) ascending."""
        embedded = self.embedding[tokens.to(self.device)].to(self.dtype)
        token_qkv = linear(self._normed(embedded, self.input_norm), self.qkv_embedding, self.qkv_bias)
        states = states[: int(positions[-1]) + 1].to(device=self.device, dtype=self.dtype)
        return RowInputs(states=states, token_qkv=token_qkv, positions=positions.to(self.device), projections={})

    def draft(self, inputs: RowInputs, readings: Sequence[Reading], steps: int) -> torch.Tensor:
        """Greedy draft tokens (draft-vocabulary ids), (R, P, steps), teacher-forced.

        Positions whose input token would lie outside the row get the nearest token of the row; the caller masks them.
        """
        outputs = self.outputs(inputs, readings, steps)
        greedy = [
            argmax_in_pieces(self.normed_output(_within_bounds(hidden)).flatten(0, 1), self.head, "drafter")
            for hidden in outputs
        ]
        return torch.stack(greedy, dim=-1).view(len(readings), -1, steps)

    def outputs(self, inputs: RowInputs, readings: Sequence[Reading], steps: int) -> Iterator[torch.Tensor]:
        """The layer's un-normed output after each step, (R, P, H)."""
        query, key = self.attention.heads * self.attention.head_dim, self.attention.kv_heads * self.attention.head_dim
        fused = torch.stack([self._fuse(inputs, reading.slots) for reading in readings])  # (R, T', H)
        offsets = torch.tensor([reading.token_offset for reading in readings], device=self.device)[:, None]
        everywhere = torch.arange(fused.shape[1], device=self.device)
        cos, sin = self._angles(fused.shape[1] + steps)

        prefix = linear(self._normed(fused, self.hidden_norm), self.qkv_hidden[query:])  # (R, T', 2 KV)
        prefix = prefix + self._token_part(inputs, everywhere + offsets)[..., query:]
        prefix_keys, prefix_values = (self._heads(part) for part in prefix.chunk(2, dim=-1))
        cache = ChainCache(keys=rotate(prefix_keys, cos[everywhere], sin[everywhere]), values=prefix_values)

        hidden = fused[:, inputs.positions]  # (R, P, H)
        for step in range(steps):
            at = inputs.positions + step
            qkv = linear(self._normed(hidden, self.hidden_norm), self.qkv_hidden)
            qkv = qkv + self._token_part(inputs, at + offsets)
            queries, keys, values = (self._heads(part) for part in qkv.tensor_split((query, query + key), dim=-1))
            if step > 0:
                cache.append(rotate(keys, cos[at], sin[at]), values)
            attended = attend(rotate(queries, cos[at], sin[at]), cache, inputs.positions)
            hidden = hidden + linear(attended, self.out, self.out_bias)
            hidden = hidden + self._mlp(self._normed(hidden, self.post_norm))
            yield hidden

    def normed_output(self, hidden: torch.Tensor) -> torch.Tensor:
        """What lm_head reads: the output after the final norm."""
        return self._normed(hidden, self.norm)

    def _fuse(self, inputs: RowInputs, slots: tuple[int, ...]) -> torch.Tensor:
        """The fc of one wiring as a sum of per-state projections, (T', H)."""
        total: torch.Tensor | None = None
        for slot, state in enumerate(slots):
            if (state, slot) not in inputs.projections:
                inputs.projections[state, slot] = linear(inputs.states[:, state], self.fc[slot])
            part = inputs.projections[state, slot]
            total = part if total is None else total + part
        assert total is not None, "a reading has at least one slot"
        return total if self.fc_bias is None else total + self.fc_bias

    def _token_part(self, inputs: RowInputs, at: torch.Tensor) -> torch.Tensor:
        return inputs.token_qkv[at.clamp(0, inputs.token_qkv.shape[0] - 1)]

    def _heads(self, flat: torch.Tensor) -> torch.Tensor:
        return flat.view(*flat.shape[:-1], -1, self.attention.head_dim)

    def _mlp(self, normed: torch.Tensor) -> torch.Tensor:
        gate, up = linear(normed, self.gate_up).chunk(2, dim=-1)
        return linear(silu(gate) * up, self.down)

    def _normed(self, values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return rms_norm(values, weight, self.config.rms_norm_eps)

    def _angles(self, positions: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Angles: cos and sin for positions 0.., grown as rows get longer; (positions, d / 2) in the model's dtype."""
        if self._cos.shape[0] < positions:
            config = self.config
            cos, sin = rope_tables(config.rope, self.attention.head_dim, positions, config.max_positions)
            self._cos, self._sin = (part.to(device=self.device, dtype=self.dtype) for part in (cos, sin))
        return self._cos, self._sin


def rms_norm(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """As Llama does it: statistics in float32, weights in the values' dtype; torch.rms_norm came after torch 2.3."""
    wide = values.float()
    wide = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return wide.to(values.dtype) * weight


def argmax_in_pieces(states: torch.Tensor, head: torch.Tensor, whose: str) -> torch.Tensor:
    """Greedy tokens (N,) of states (N, H) under head (V, H); the logits are made in pieces of bounded size.

    Raises JobFailure(checkpoint) naming `whose` head it is, where a largest logit is not finite.
    """
    piece = max(1, LOGIT_BYTES // (head.shape[0] * head.element_size()))
    cuts = tuple(range(piece, len(states), piece))
    # max gives the first of equals as argmax does, in half the time on a CPU; and a NaN comes through as the largest.
    best = [linear(part, head).max(dim=-1) for part in states.tensor_split(cuts)]
    largest = torch.cat([values for values, _ in best])
    if not bool(torch.isfinite(largest).all()):
        raise checkpoint_failure(
            f"the {whose}'s logits are NaN or infinite at {int((~torch.isfinite(largest)).sum())} of {len(largest)} "
            "positions",
            hint=f"its weights are finite, but computing with them overflows; are the {whose}'s files whole?",
        )
    return torch.cat([indices for _, indices in best])


def _within_bounds(hidden: torch.Tensor) -> torch.Tensor:
    """The drafter's output as it is; raises JobFailure(checkpoint) where its square would overflow in a norm.

    Such a norm gives zeros, so that the drafter would silently answer one and the same token everywhere.
    """
    largest = max(abs(float(bound)) for bound in torch.aminmax(hidden))  # NaN comes through
    if not largest < LARGEST_OUTPUT:
        raise checkpoint_failure(
            f"the drafter's outputs overflow: they must stay below {LARGEST_OUTPUT:g}, found: {largest:g}",
            hint="its weights are finite, but far too large; compare fc.weight and the norms with the trainer's",
        )
    return hidden
