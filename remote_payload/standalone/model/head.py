"""Greedy tokens from states, without ever holding the logits of a whole row."""

from collections.abc import Callable

import torch

from remote_payload.failure import checkpoint_failure
from remote_payload.standalone.mapped import let_go
from remote_payload.standalone.model.budget import Budget

STATE_COPIES = 4
"""In float32, while they are normed."""
LARGEST_OUTPUT = 1e15
"""Its square, summed over a few thousand numbers, still fits float32; real outputs stay below some thousands."""


def argmax_in_pieces(
    states: torch.Tensor,
    head: torch.Tensor,
    whose: str,
    logit_bytes: int = Budget.logit_bytes,
    *,
    read: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> torch.Tensor:
    """Greedy tokens (N,) of states (N, H) under head (V, H); the logits are made in pieces of bounded size.

    `read` makes of each piece (p, H) what the head reads, such as its norm, and lets go of stored ones.

    Raises JobFailure(checkpoint) naming `whose` head it is, where a largest logit is not finite.
    """
    best, parts = [], torch.split(states, pieces_of(head, logit_bytes))
    # One buffer for all pieces: glibc's heap seldom reuses the hole of the piece before, and grows by every piece.
    logits = torch.empty(len(parts[0]), len(head), dtype=head.dtype, device=head.device)
    for part in parts:
        torch.mm(part if read is None else read(part), head.T, out=logits[: len(part)])
        # max gives the first of equals as argmax does, in half the time on a CPU; a NaN comes through as the largest.
        best.append(logits[: len(part)].max(dim=-1))
        if read is not None:
            let_go(part)
    largest = torch.cat([values for values, _ in best])
    if not bool(torch.isfinite(largest).all()):
        raise checkpoint_failure(
            f"the {whose}'s logits are NaN or infinite at {int((~torch.isfinite(largest)).sum())} of {len(largest)} "
            "positions",
            hint=f"its weights are finite, but computing with them overflows; are the {whose}'s files whole?",
        )
    return torch.cat([indices for _, indices in best])


def pieces_of(head: torch.Tensor, logit_bytes: int) -> int:
    """How many positions are taken at a time: their logits stay within the bound, and so do the states in float32."""
    vocabulary, width = head.shape
    return max(1, logit_bytes // max(vocabulary * head.element_size(), STATE_COPIES * 4 * width))


def within_bounds(hidden: torch.Tensor) -> torch.Tensor:
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
