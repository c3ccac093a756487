"""The serving walk: from one row's hits, what a server that drafts K tokens a step would have accepted.

A server's request begins with the prefill, which yields the first token. Then, from the last prompt token on: draft K
tokens, accept the leading hits, add the target's own next token, jump accepted+1. It stops once `max_new_tokens` are
out; the last draft is judged whole. SGLang counts a verify step per draft and `spec_correct_drafts_histogram[i]` drafts
with exactly i accepted; the walk gives that histogram exactly where the row holds the target's own greedy tokens.
Not covered: trees (top-k > 1), sampling, adaptive steps.
"""

from dataclasses import dataclass

import numpy as np

from orchestrator.compare.acceptance import leading_hits
from orchestrator.compare.chains import Bools, Chains, segments
from orchestrator.errors import InvalidRunError


@dataclass(frozen=True, kw_only=True)
class Walk:
    """One response walked; several may be added up."""

    histogram: tuple[int, ...]
    """Drafts by accepted tokens, 0..K."""
    tokens: int
    """Tokens out, the prefill's included."""
    greedy: bool
    """Whether the row's tokens are the target's own greedy choice wherever the walk went: then it is exact."""

    @property
    def verifies(self) -> int:
        """Verify steps: one a draft."""
        return sum(self.histogram)

    @property
    def accepted(self) -> int:
        """Draft tokens accepted."""
        return sum(count * number for count, number in enumerate(self.histogram))


def serving_walks(chains: Chains, *, depth: int | None = None, max_new_tokens: int | None = None) -> tuple[Walk, ...]:
    """Walk every response of a row (a multi-turn row has several, each a request of its own).

    `depth` is the server's number of draft tokens a step, at most the reading's steps (None: all of them). A draft that
    would reach beyond the response's last token cannot be judged whole: it is not counted and the walk ends.
    Raises InvalidRunError where the hits lack a position of a response.
    """
    depth = chains.steps if depth is None else depth
    if not 1 <= depth <= chains.steps:
        raise ValueError(f"expected a depth of 1..{chains.steps}, found: {depth}")
    accepted = leading_hits(chains.hits[:, :depth])
    at = dict(zip(chains.positions.tolist(), accepted.tolist(), strict=True))
    return tuple(
        _walk(at, (max(first - 1, 0), stop), depth, max_new_tokens, chains)
        for first, stop in segments(chains.row.loss_mask)
    )


def total(walks: tuple[Walk, ...], depth: int) -> Walk:
    """All walks added up; `greedy` where every one is."""
    histogram = np.zeros(depth + 1, dtype=int)
    for walk in walks:
        histogram += np.asarray(walk.histogram)
    return Walk(
        histogram=tuple(int(count) for count in histogram),
        tokens=sum(walk.tokens for walk in walks),
        greedy=all(walk.greedy for walk in walks),
    )


def _walk(at: dict[int, int], span: tuple[int, int], depth: int, limit: int | None, chains: Chains) -> Walk:
    position, stop = span
    histogram, tokens = [0] * (depth + 1), 1
    while position + depth <= stop - 1 and (limit is None or tokens < limit):
        if position not in at:
            raise InvalidRunError(
                f"expected hits at every response position of row `{chains.row.name}`, found none at: {position}"
            )
        accepted = at[position]
        histogram[accepted] += 1
        tokens += accepted + 1
        position += accepted + 1
    return Walk(
        histogram=tuple(histogram),
        tokens=tokens if limit is None else min(tokens, limit),
        greedy=_is_greedy(chains.row.greedy, span[0], min(position - 1, stop - 2)),
    )


def _is_greedy(greedy: Bools, first: int, last: int) -> bool:
    """Whether y_t == x_{t+1} for every t that a judged step was conditioned on."""
    return bool(greedy[first : last + 1].all())
