"""The drafter, slow and obvious: one position at a time, one chain at a time, nothing shared, nothing batched."""

import torch

from remote_payload.standalone.graph import Reading
from tests.support.tiny import Tiny

Weights = dict[str, torch.Tensor]
EPS = 1e-5
P = "midlayer."


def rms(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt((x * x).mean() + EPS) * weight


def rotate(x: torch.Tensor, position: int) -> torch.Tensor:
    """One head (d,) as complex pairs (i, i + d/2)."""
    half = len(x) // 2
    angle = position * 10000.0 ** (-torch.arange(half, dtype=torch.float64) * 2 / len(x))
    turned = torch.complex(x[:half].double(), x[half:].double()) * torch.polar(torch.ones(half).double(), angle)
    return torch.cat((turned.real, turned.imag)).float()


def layer_inputs(tiny: Tiny, w: Weights, embed: torch.Tensor, hidden: torch.Tensor, position: int):
    """Queries, keys and values of one position, per head."""
    x = torch.cat((rms(embed, w[f"{P}input_layernorm.weight"]), rms(hidden, w[f"{P}hidden_norm.weight"])))
    q, k, v = ((w[f"{P}self_attn.{name}_proj.weight"] @ x).view(-1, tiny.head_dim) for name in "qkv")
    return [rotate(h, position) for h in q], [rotate(h, position) for h in k], list(v)


def chain(tiny: Tiny, w: Weights, inputs: tuple[torch.Tensor, torch.Tensor], at: tuple[int, int], steps: int):
    """Draft-vocabulary argmax of each step of the chain at (start, offset); inputs: embeds (T, H), fused (T, H)."""
    (embeds, fused), (start, offset) = inputs, at

    def token(index: int) -> torch.Tensor:
        return embeds[min(max(index, 0), len(embeds) - 1)]

    keys, values = [], []
    for i in range(start + 1):
        queries, k, v = layer_inputs(tiny, w, token(i + offset), fused[i], i)
        keys.append(k)
        values.append(v)
    hidden, drafted = fused[start], []
    for step in range(steps):
        if step > 0:
            queries, k, v = layer_inputs(tiny, w, token(start + offset + step), hidden, start + step)
            keys.append(k)
            values.append(v)
        heads = []
        for h, query in enumerate(queries):
            kv = h // (tiny.heads // tiny.kv_heads)
            scores = torch.stack([query @ k[kv] for k in keys]) / tiny.head_dim**0.5
            weights = scores.softmax(0)
            heads.append(sum(weight * v[kv] for weight, v in zip(weights, values, strict=True)))
        hidden = hidden + w[f"{P}self_attn.o_proj.weight"] @ torch.cat(heads)
        normed = rms(hidden, w[f"{P}post_attention_layernorm.weight"])
        gate, up = (w[f"{P}mlp.{name}_proj.weight"] @ normed for name in ("gate", "up"))
        hidden = hidden + w[f"{P}mlp.down_proj.weight"] @ (gate * torch.sigmoid(gate) * up)
        drafted.append(int((w["lm_head.weight"] @ rms(hidden, w["norm.weight"])).argmax()))
    return drafted


def hits(tiny: Tiny, models: tuple[Weights, Weights], row: Weights, reading: Reading, steps: int):
    """{position: bits of hits} of every judged position of a row, as the wire packs them; models: (draft, target)."""
    w, target = models
    tokens, mask = row["input_ids"], row["loss_mask"].tolist()
    states = row["aux_hidden_state"][0].view(len(tokens), tiny.captured, tiny.target_hidden)
    fused = torch.stack([w["fc.weight"] @ torch.cat([state[s] for s in reading.slots]) for state in states])
    embeds = target["model.embed_tokens.weight"][tokens]
    answers = [int((target["lm_head.weight"] @ final).argmax()) for final in row["hidden_state"][0]]
    told = {}
    for j in range(len(tokens)):
        if any(mask[j : j + steps + 1]):
            drafted = chain(tiny, w, (embeds, fused), (j, reading.token_offset), steps)
            proposed = [draft + int(w["d2t"][draft]) for draft in drafted]
            told[j] = sum(1 << s for s in range(steps) if j + 1 + s < len(tokens) and proposed[s] == answers[j + 1 + s])
    return told
