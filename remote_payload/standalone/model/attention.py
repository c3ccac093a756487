"""Attention of drafting chains: the true prefix for everyone, and each chain's own steps for itself.

A position's step s sees the step-0 keys of positions <= j and the keys of its own chain's steps 1..s. SpecForge's
cached training-time test and a served chain compute the same. Under a sliding window, step s of the chain at j stands
at position j + s and sees what lies less than a window before it, as a served chain does. (speculators' trainer keeps
the prefix's window at j for every step.)
"""

from dataclasses import dataclass, field

import torch

LEAST_GRAIN = 32
"""Prefix positions by which the smallest pieces grow."""
SPARE = 9 / 8
"""How much longer than what is looked at a piece's prefix may be."""


@dataclass(frozen=True, kw_only=True)
class Prefix:
    """Keys and values of step 0 at every position of a row; rotated already."""

    keys: torch.Tensor  # (R, Hkv, T, dk)
    values: torch.Tensor  # (R, Hkv, T, dv)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Keys and values of the chains' own steps 1.., for chains at positions `at`."""

    at: torch.Tensor  # (P,) ascending
    keys: list[torch.Tensor] = field(default_factory=list)  # one (R, P, Hkv, dk) a step
    values: list[torch.Tensor] = field(default_factory=list)  # one (R, P, Hkv, dv) a step

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Add one step of every chain."""
        self.keys.append(keys)
        self.values.append(values)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How scores are made."""

    scale: float
    window: int | None
    score_bytes: int
    """Scores are made in pieces of about this size, never (Hq, T, T) whole."""


def attend(queries: torch.Tensor, prefix: Prefix, chain: Chain, rule: Rule) -> torch.Tensor:
    """Attention of queries (R, P, Hq, dk), the chains' current step; (R, P, Hq dv)."""
    readings, count, heads, size = queries.shape
    kv_heads = prefix.keys.shape[1]
    # Query heads that share a kv head are folded into one axis G, so that one matmul serves the group.
    grouped = queries.reshape(readings, count, kv_heads, heads // kv_heads, size).transpose(1, 2)  # (R, Hkv, P, G, dk)
    grouped = grouped * rule.scale
    step, reach = len(chain.keys), rule.window
    own = _own(chain, 0 if reach is None else max(0, step - reach))
    last = chain.at.tolist()
    pieces, start = [], 0
    while start < count:
        low = 0 if reach is None else max(0, last[start] + step - reach + 1)  # nobody from here on looks further back
        stop = start + _piece(readings * heads * 4, last, start, low, rule.score_bytes)
        seen = _span(min(low, last[stop - 1] + 1), last[stop - 1] + 1, prefix.keys.shape[2])
        at = chain.at[start:stop, None]
        there = torch.arange(seen.start, seen.stop, device=at.device)
        unseen = there > at if reach is None else (there > at) | (there <= at + step - reach)  # (p, seen)
        pieces.append(
            _attend_piece(
                grouped[:, :, start:stop],
                (prefix.keys[:, :, seen], prefix.values[:, :, seen]),
                tuple(part[:, :, start:stop] for part in own),
                unseen,
            )
        )
        start = stop
    joined = pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=2)  # (R, Hkv, P, G, dv)
    return joined.transpose(1, 2).flatten(2)


def _span(low: int, high: int, length: int) -> slice:
    """Prefix positions low..high - 1, which a piece looks at, and up to an eighth more, which are masked.

    oneDNN makes code for every shape it multiplies in bfloat16 and keeps that of a thousand shapes, a MiB each; so few
    sizes occur: eight between a power of two and the next.
    """
    size = high - low
    grain = max(LEAST_GRAIN, 1 << max(0, size.bit_length() - 4))
    stop = min(length, low + -(-size // grain) * grain)
    return slice(low, max(high, stop))


def _piece(row_bytes: int, last: list[int], start: int, low: int, limit: int) -> int:
    """How many positions from `start` on may be taken together: one, and more while their scores fit `limit` bytes."""
    count = 1
    ceiling = len(last) - start
    while count < ceiling:
        wider = min(2 * count, ceiling)
        if row_bytes * wider * SPARE * (last[start + wider - 1] + 1 - low) > limit:
            break
        count = wider
    return count


def _own(chain: Chain, forgotten: int) -> tuple[torch.Tensor, ...]:
    """Keys and values of a chain's steps after the `forgotten` first ones, (R, Hkv, P, s, d); () where there are none.

    At the first step there are none; later the current one is always among them.
    """
    if not chain.keys:
        return ()
    return tuple(torch.stack(parts[forgotten:], dim=3).transpose(1, 2) for parts in (chain.keys, chain.values))


def _attend_piece(
    queries: torch.Tensor,
    prefix: tuple[torch.Tensor, torch.Tensor],
    chain: tuple[torch.Tensor, ...],
    unseen: torch.Tensor,
) -> torch.Tensor:
    """Attention of queries (R, Hkv, p, G, dk), already scaled; the softmax runs in float32."""
    keys, values = prefix
    shape, seen = queries.shape, keys.shape[2]
    scores = (queries.flatten(2, 3) @ keys.transpose(2, 3)).view(*shape[:4], seen).float()  # (R, Hkv, p, G, seen)
    scores.masked_fill_(unseen[:, None], float("-inf"))
    if chain:
        scores = torch.cat((scores, (queries @ chain[0].transpose(-1, -2)).float()), dim=-1)
    weights = scores.softmax(dim=-1).to(values.dtype)
    out: torch.Tensor = (weights[..., :seen].flatten(2, 3) @ values).view(*shape[:4], values.shape[-1])
    return out + weights[..., seen:] @ chain[1] if chain else out
