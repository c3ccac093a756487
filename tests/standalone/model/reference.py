"""The drafter, slow and obvious: float64, one position at a time, one chain at a time, nothing shared or batched."""

import math
from dataclasses import dataclass

import torch

from remote_payload.standalone.checkpoint.load import Checkpoint
from remote_payload.standalone.checkpoint.rope_config import Rope
from remote_payload.standalone.graph import Graph, GroupedAttention, Reading
from remote_payload.standalone.model.inputs import states_order

Vector = torch.Tensor
Seen = tuple[int, list[Vector], list[Vector]]
"""Rotary position, and keys and values of every query head."""


def rms(x: Vector, weight: Vector, eps: float) -> Vector:
    return x / torch.sqrt((x * x).mean() + eps) * weight


def frequencies(rope: Rope, dim: int, length: int, longest: int) -> tuple[list[float], float]:
    """Turn of each pair a position, and the amplitude."""
    factor, theta, amplitude = rope.scaling.get("factor", 1.0), rope.theta, 1.0
    if rope.kind == "dynamic" and length > longest:
        theta *= (factor * length / longest - (factor - 1)) ** (dim / (dim - 2))
    plain = [theta ** (-2 * pair / dim) for pair in range(dim // 2)]
    if rope.kind == "linear":
        return [turn / factor for turn in plain], 1.0
    if rope.kind == "yarn":
        original = rope.scaling["original_max_position_embeddings"]

        def pair_of(turns: float) -> float:
            return dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

        low = max(math.floor(pair_of(rope.scaling.get("beta_fast", 32))), 0)
        high = min(math.ceil(pair_of(rope.scaling.get("beta_slow", 1))), dim - 1)
        ramp = [min(max((pair - low) / ((high - low) or 0.001), 0), 1) for pair in range(dim // 2)]
        plain = [turn / factor * part + turn * (1 - part) for turn, part in zip(plain, ramp, strict=True)]
        ups, downs = rope.scaling.get("mscale", 1.0), rope.scaling.get("mscale_all_dim", 0.0)
        amplitude = (0.1 * ups * math.log(factor) + 1) / (0.1 * downs * math.log(factor) + 1)
    return plain, amplitude


@dataclass
class Slow:
    """A drafter, a row (tokens (T,), states (T, n, Ht), final (T, Ht)) and how to read them."""

    checkpoint: Checkpoint
    row: tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]
    reading: Reading
    last: int
    """The last draft position: a row is cut behind it before it is shuffled."""

    def __post_init__(self) -> None:
        self.w = {name: tensor.double() for name, tensor in self.checkpoint.weights.items()}
        self.graph: Graph = self.reading.graph or self.checkpoint.graph
        self.config = self.checkpoint.config
        self.embedding = self.checkpoint.embeddings[self.graph.embedding].double()

    def linear(self, name: str, x: Vector) -> Vector:
        made = self.w[f"{name}.weight"] @ x
        return made + self.w[f"{name}.bias"] if f"{name}.bias" in self.w else made

    def norm(self, name: str, x: Vector) -> Vector:
        return rms(x, self.w[f"{name}.weight"], self.config.rms_norm_eps)

    def fused(self, position: int) -> Vector:
        """The hidden input at a position."""
        _, states, final = self.row
        if self.graph.states == "shuffled":
            order = states_order("shuffled", self.last + 1)
            assert order is not None
            position = int(order[position])
        position = max(position - 1, 0) if self.graph.states == "earlier" else position
        position = min(position + 1, self.last) if self.graph.states == "later" else position
        blank = 0.0 if self.graph.states == "zeroed" else 1.0
        if self.graph.input == "final_state":
            return final[position].double() * blank
        parts = [states[position, slot].double() * blank for slot in self.reading.slots]
        if self.graph.input_norm == "per_slot":
            parts = [self.norm(f"fc_norm.{slot}", part) for slot, part in enumerate(parts)]
        joined = torch.cat(parts)
        if self.graph.input_norm == "joint":
            joined = self.norm("input_norm", joined)
        return self.linear("fc", joined)

    def token(self, index: int) -> int:
        tokens = self.row[0]
        return int(tokens[min(max(index, 0), len(tokens) - 1)])

    def rotate(self, x: Vector, position: int) -> Vector:
        """One head, its first numbers as complex pairs."""
        rope, dim = self.graph.rope, self.graph.rope.rotary_dim or len(x)
        length = len(self.row[0]) + self.graph.position_start
        turns, amplitude = frequencies(rope, dim, length, self.config.max_positions)
        out = x.clone()
        for pair, turn in enumerate(turns):
            a, b = (2 * pair, 2 * pair + 1) if rope.interleaved else (pair, pair + dim // 2)
            turned = complex(x[a], x[b]) * amplitude * complex(math.cos(position * turn), math.sin(position * turn))
            out[a], out[b] = turned.real, turned.imag
        return out

    def heads(self, layer: int, x: Vector, position: int) -> tuple[list[Vector], Seen]:
        """Queries of every head, and what others will see of this position."""
        kind, at = self.config.attention, f"layers.{layer}.self_attn."
        if isinstance(kind, GroupedAttention):
            q, k, v = (self.linear(f"{at}{name}_proj", x).split(kind.head_dim) for name in "qkv")
            if kind.qk_norm:
                q, k = ([self.norm(f"{at}{name}_norm", one) for one in parts] for name, parts in (("q", q), ("k", k)))
            share = kind.heads // kind.kv_heads
            keys = [self.rotate(k[head // share], position) for head in range(kind.heads)]
            queries = [self.rotate(one, position) for one in q]
            return queries, (position, keys, [v[head // share] for head in range(kind.heads)])
        if kind.q_lora_rank is None:
            flat = self.linear(f"{at}q_proj", x)
        else:
            flat = self.linear(f"{at}q_b_proj", self.norm(f"{at}q_a_layernorm", self.linear(f"{at}q_a_proj", x)))
        nope = kind.nope_head_dim
        queries = [
            torch.cat((one[:nope], self.rotate(one[nope:], position))) for one in flat.split(nope + kind.rope_head_dim)
        ]
        latent = self.linear(f"{at}kv_a_proj_with_mqa", x)
        turned = self.rotate(latent[kind.kv_lora_rank :], position)
        grown = self.linear(f"{at}kv_b_proj", self.norm(f"{at}kv_a_layernorm", latent[: kind.kv_lora_rank]))
        both = grown.split(nope + kind.value_head_dim)
        return queries, (position, [torch.cat((one[:nope], turned)) for one in both], [one[nope:] for one in both])

    def attend(self, layer: int, queries: list[Vector], position: int, seen: list[Seen]) -> Vector:
        kind, rope = self.config.attention, self.graph.rope
        scale, window = len(queries[0]) ** -0.5, None
        if isinstance(kind, GroupedAttention):
            window = kind.windows[min(layer, len(kind.windows) - 1)] if self.graph.windows == "kept" else None
        elif rope.kind == "yarn" and rope.scaling.get("mscale_all_dim"):
            scale *= (0.1 * rope.scaling["mscale_all_dim"] * math.log(rope.scaling["factor"]) + 1) ** 2
        near = [one for one in seen if window is None or one[0] > position - window]
        out = []
        for head, query in enumerate(queries):
            weights = torch.stack([query @ keys[head] * scale for _, keys, _ in near]).softmax(0)
            out.append(sum(weight * values[head] for weight, (_, _, values) in zip(weights, near, strict=True)))
        return torch.cat(out)

    def layer(self, layer: int, hidden: Vector, token: int, at: int, seen: list[Seen]) -> tuple[Vector, Seen]:
        """A layer's output at rotary position `at`, and what others will see of it; it sees `seen` and itself."""
        name = f"layers.{layer}."
        if layer == 0:
            normed = self.norm(f"{name}hidden_norm", hidden)
            residual = normed if self.graph.residual == "normed" else hidden
            x = torch.cat((self.norm(f"{name}input_layernorm", self.embedding[token]), normed))
        else:
            residual, x = hidden, self.norm(f"{name}input_layernorm", hidden)
        queries, own = self.heads(layer, x, at)
        hidden = residual + self.linear(f"{name}self_attn.o_proj", self.attend(layer, queries, at, [*seen, own]))
        normed = self.norm(f"{name}post_attention_layernorm", hidden)
        gate, up = (self.linear(f"{name}mlp.{part}_proj", normed) for part in ("gate", "up"))
        return hidden + self.linear(f"{name}mlp.down_proj", gate * torch.sigmoid(gate) * up), own

    def prefix(self) -> list[tuple[Vector, list[Seen]]]:
        """Of every position up to the last: its step-0 output, and what each layer shows of it."""
        told: list[tuple[Vector, list[Seen]]] = []
        for i in range(self.last + 1):
            hidden, shown = self.fused(i), []
            for layer in range(self.config.layers):
                before = [seen[layer] for _, seen in told]
                at = i + self.graph.position_start
                hidden, own = self.layer(layer, hidden, self.token(i + self.reading.token_offset), at, before)
                shown.append(own)
            told.append((hidden, shown))
        return told

    def chain(self, start: int, steps: int, prefix: list[tuple[Vector, list[Seen]]], *, self_fed: bool = False):
        """Un-normed output and logits of each step of the chain at `start`."""
        hidden, told = prefix[start][0], []
        chain: list[list[Seen]] = []
        for step in range(steps):
            if step > 0:
                own = []
                token = self.token(start + self.reading.token_offset + step)
                if self_fed:
                    token = int(self.checkpoint.vocabularies[self.graph.vocabulary][int(told[-1][1].argmax())])
                for layer in range(self.config.layers):
                    seen = [shown[layer] for _, shown in prefix[: start + 1]] + [shown[layer] for shown in chain]
                    at = start + step + self.graph.position_start
                    hidden, one = self.layer(layer, hidden, token, at, seen)
                    own.append(one)
                chain.append(own)
            normed = self.norm("norm", hidden)
            told.append((hidden, self.w["lm_head.weight"] @ (normed if self.graph.final_norm == "applied" else hidden)))
            hidden = normed if self.graph.feedback == "normed" else hidden
        return told


def drafted(checkpoint: Checkpoint, row, reading: Reading, positions: list[int], steps: int) -> list[list[int]]:
    """Draft-vocabulary argmax of each step of the chains at ascending `positions`."""
    slow = Slow(checkpoint, row, reading, positions[-1])
    prefix = slow.prefix()
    return [[int(logits.argmax()) for _, logits in slow.chain(j, steps, prefix)] for j in positions]


def hits(checkpoint: Checkpoint, head: torch.Tensor, row, reading: Reading, steps: int) -> dict[int, int]:
    """{position: bits of hits} of every judged position of a row as written to its file; `head` is the target's."""
    tokens, mask = row["input_ids"], row["loss_mask"].tolist()
    states = row["aux_hidden_state"][0].view(len(tokens), -1, checkpoint.config.target_hidden_size)
    answers = [int((head @ final).argmax()) for final in row["hidden_state"][0]]
    judged = [j for j in range(len(tokens)) if any(mask[j : j + steps + 1])]
    ids = checkpoint.vocabularies[(reading.graph or checkpoint.graph).vocabulary]
    told = {}
    for j, drafts in zip(judged, drafted(checkpoint, (tokens, states, None), reading, judged, steps), strict=True):
        proposed = [int(ids[draft]) for draft in drafts]
        told[j] = sum(1 << s for s in range(steps) if j + 1 + s < len(tokens) and proposed[s] == answers[j + 1 + s])
    return told
