"""Attention of drafting chains: the true prefix for everyone, and each chain's own steps for itself.

A position's step s sees the step-0 keys of positions <= j and the keys of its own chain's steps 1..s. SpecForge's
cached training-time test and a served chain compute the same.
"""

from dataclasses import dataclass, field

import torch

SCORE_BYTES = 64 << 20
"""Scores are made in pieces of about this size, never (Hq, T, T) whole."""


@dataclass(frozen=True, kw_only=True)
class ChainCache:
    """Keys and values that the chains of a row may see; rotated already."""

    keys: torch.Tensor  # (R, T, Hkv, d), step 0 of every position
    values: torch.Tensor  # (R, T, Hkv, d)
    chain_keys: list[torch.Tensor] = field(default_factory=list)  # one (R, P, Hkv, d) a step
    chain_values: list[torch.Tensor] = field(default_factory=list)

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Add one step of every chain, each (R, P, Hkv, d)."""
        self.chain_keys.append(keys)
        self.chain_values.append(values)


def attend(queries: torch.Tensor, cache: ChainCache, positions: torch.Tensor) -> torch.Tensor:
    """Attention of queries (R, P, Hq, d), the chains' current step, at ascending positions (P,); (R, P, Hq d)."""
    readings, count, heads, size = queries.shape
    kv_heads = cache.keys.shape[2]
    # Query heads that share a kv head are folded into one axis G, so that one matmul serves the group.
    grouped = queries.reshape(readings, count, kv_heads, heads // kv_heads, size).transpose(1, 2)  # (R, Hkv, P, G, d)
    grouped = grouped * size**-0.5
    keys = cache.keys.permute(0, 2, 3, 1)  # (R, Hkv, d, T)
    values = cache.values.transpose(1, 2)  # (R, Hkv, T, d)
    chain_keys, chain_values = _chain(cache)
    last = positions.tolist()
    per_position = readings * heads * cache.keys.shape[1] * 4
    piece = max(1, SCORE_BYTES // per_position)
    pieces = []
    for start in range(0, count, piece):
        stop = min(start + piece, count)
        seen = last[stop - 1] + 1  # nobody in this piece looks further
        pieces.append(
            _attend_piece(
                grouped[:, :, start:stop],
                (keys[..., :seen], values[:, :, :seen]),
                (chain_keys[:, :, start:stop], chain_values[:, :, start:stop]),
                positions[start:stop],
            )
        )
    joined = pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=2)  # (R, Hkv, P, G, d)
    return joined.transpose(1, 2).reshape(readings, count, heads * size)


def _chain(cache: ChainCache) -> tuple[torch.Tensor, torch.Tensor]:
    """Chain keys and values, (R, Hkv, P, s, d); s = 0 at the first step."""
    if not cache.chain_keys:
        readings, _, kv_heads, size = cache.keys.shape
        empty = cache.keys.new_empty(readings, kv_heads, 1, 0, size)
        return empty, empty
    return (
        torch.stack(cache.chain_keys, dim=3).transpose(1, 2),
        torch.stack(cache.chain_values, dim=3).transpose(1, 2),
    )


def _attend_piece(
    queries: torch.Tensor,
    prefix: tuple[torch.Tensor, torch.Tensor],
    chain: tuple[torch.Tensor, torch.Tensor],
    positions: torch.Tensor,
) -> torch.Tensor:
    """Attention of queries (R, Hkv, p, G, d), already scaled; the softmax runs in float32."""
    keys, values = prefix
    chain_keys, chain_values = chain
    shape, seen, own = queries.shape, keys.shape[-1], chain_keys.shape[3]
    scores = (queries.flatten(2, 3) @ keys).view(*shape[:4], seen).float()  # (R, Hkv, p, G, seen)
    unseen = torch.arange(seen, device=positions.device) > positions[:, None]  # (p, seen)
    scores.masked_fill_(unseen[:, None], float("-inf"))
    if own:
        scores = torch.cat((scores, (queries @ chain_keys.transpose(-1, -2)).float()), dim=-1)
    weights = scores.softmax(dim=-1).to(values.dtype)
    out: torch.Tensor = (weights[..., :seen].flatten(2, 3) @ values).view(shape)
    return out + weights[..., seen:] @ chain_values if own else out
