"""Readings of one graph on one row: the prefix that their chains look back on, and the chains, a block at a time.

Step 0 of a position depends on step 0 of the positions before it, never on a chain. So every layer's step-0 keys and
values are made once for the whole row, and then chains are independent of each other: a block of positions takes all
its steps before the next begins, and nothing as long as the row is held but the prefix.

Shapes: R readings, T' positions of the prefix, p chains of a block, H hidden, W the first layer's projections.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from remote_payload.standalone.graph import Graph
from remote_payload.standalone.model.attention import Chain, Prefix, Rule, attend
from remote_payload.standalone.model.budget import Budget
from remote_payload.standalone.model.layer import Layer
from remote_payload.standalone.model.rope import Angles


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What the readings of a batch have in common."""

    layers: Sequence[Layer]
    graph: Graph
    token_part: torch.Tensor  # (T, W) of the row's tokens
    offsets: torch.Tensor  # (R, 1) each reading's token offset
    angles: Angles  # of positions 0 .. T' - 1 + steps, after the graph's position_start
    budget: Budget

    def tokens_at(self, positions: torch.Tensor, columns: slice) -> torch.Tensor:
        """Columns of the token part that positions (p,) read, (R, p, columns); the nearest token outside the row."""
        index = (positions + self.offsets).clamp(0, len(self.token_part) - 1)
        return self.token_part[:, columns][index]

    def rule(self, layer: Layer) -> Rule:
        """How a layer makes its scores."""
        scale = layer.attention.scale(self.graph.rope)
        window = layer.window if self.graph.windows == "kept" else None
        return Rule(scale=scale, window=window, score_bytes=self.budget.score_bytes)

    def begin(self, index: int, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """A layer's residual and normed input; only the first one's residual is a matter of the graph."""
        return self.layers[index].begin(hidden, self.graph.residual if index == 0 else "raw")


class Batch:
    """The prefix of every layer, and what the last layer reads at step 0."""

    def __init__(self, shared: Shared, hidden: torch.Tensor, block: int) -> None:
        """`hidden` (R, T', H) from fc; `block` positions are computed at a time."""
        self.shared = shared
        self.prefixes: list[Prefix] = []
        everywhere = torch.arange(hidden.shape[1], device=hidden.device)
        for index in range(len(shared.layers)):
            self.prefixes.append(self._prefix(index, hidden, torch.split(everywhere, block)))
            if index + 1 < len(shared.layers):
                output = torch.empty_like(hidden)
                for at in torch.split(everywhere, block):
                    output[:, at[0] : at[-1] + 1] = self.first_step(index, hidden[:, at[0] : at[-1] + 1], at)
                hidden = output
        self.last_hidden = hidden  # (R, T', H)

    def _prefix(self, index: int, hidden: torch.Tensor, blocks: Sequence[torch.Tensor]) -> Prefix:
        layer, readings, length = self.shared.layers[index], hidden.shape[0], hidden.shape[1]
        shape = (readings, layer.attention.kv_heads, length)
        keys = hidden.new_empty(*shape, layer.attention.key_dim)
        values = hidden.new_empty(*shape, layer.attention.value_dim)
        for at in blocks:
            span = slice(int(at[0]), int(at[-1]) + 1)
            _, normed = self.shared.begin(index, hidden[:, span])
            token = self.shared.tokens_at(at, slice(layer.attention.query_width, None)) if index == 0 else None
            made = layer.keys_values(normed, token, self.shared.angles.at(at))  # each (R, p, Hkv, d)
            keys[:, :, span], values[:, :, span] = (part.transpose(1, 2) for part in made)
        return Prefix(keys=keys, values=values)

    def first_step(self, index: int, hidden: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        """A layer's output (R, p, H) at step 0 of positions `at` (p,), from its input (R, p, H) there."""
        layer = self.shared.layers[index]
        residual, normed = self.shared.begin(index, hidden)
        token = self.shared.tokens_at(at, slice(layer.attention.query_width)) if index == 0 else None
        queries = layer.queries(normed, token, self.shared.angles.at(at))
        attended = attend(queries, self.prefixes[index], Chain(at=at), self.shared.rule(layer))
        return layer.finish(residual, attended)


class Chains:
    """The chains of a block of positions, a step at a time."""

    def __init__(self, batch: Batch, at: torch.Tensor) -> None:
        self._batch, self._shared, self._at = batch, batch.shared, at
        self._chains = [Chain(at=at) for _ in batch.prefixes]

    def first(self) -> torch.Tensor:
        """The last layer's output at step 0, (R, p, H)."""
        return self._batch.first_step(len(self._chains) - 1, self._batch.last_hidden[:, self._at], self._at)

    def following(self, step: int, hidden: torch.Tensor, own: torch.Tensor | None) -> torch.Tensor:
        """The last layer's output at step >= 1, (R, p, H), fed with `hidden` (R, p, H).

        `own` (R, p, W) is the token part of what is fed instead of the row's tokens.
        """
        at = self._at + step
        angles = self._shared.angles.at(at)
        for index, layer in enumerate(self._shared.layers):
            residual, normed = self._shared.begin(index, hidden)
            token = None
            if index == 0:
                token = self._shared.tokens_at(at, slice(None)) if own is None else own
            queries, keys, values = layer.all_heads(normed, token, angles)
            self._chains[index].append(keys, values)
            attended = attend(queries, self._batch.prefixes[index], self._chains[index], self._shared.rule(layer))
            hidden = layer.finish(residual, attended)
        return hidden
