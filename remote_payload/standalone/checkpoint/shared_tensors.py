"""The drafter's own embed_tokens and lm_head against the target's: equal bit by bit, or how alike."""

import torch
from torch.nn.functional import cosine_similarity

from remote_payload.standalone.checkpoint.pieces import ROWS
from remote_payload.standalone.checkpoint.tensor_statistics import spread
from remote_payload.standalone.mapped import let_go

SAMPLE_ROWS = 512


def identical(own: torch.Tensor, theirs: torch.Tensor, rows: torch.Tensor | None = None) -> bool:
    """Whether `own` (R, C), cast to the other's dtype, equals `theirs`, or its `rows` (R,), bit by bit."""
    for start in range(0, len(own), ROWS):
        piece = own[start : start + ROWS]
        at = slice(start, start + ROWS)
        if not torch.equal(piece.to(theirs.dtype), theirs[at] if rows is None else theirs[rows[at]]):
            return False
        let_go(piece)
        let_go(theirs if rows is not None else theirs[at])
    return True


def mean_cosine(own: torch.Tensor, theirs: torch.Tensor, rows: torch.Tensor | None = None) -> float | None:
    """Mean cosine of sampled rows of `own` (R, C) with `theirs`, or its `rows` (R,), -1 = left out; None = no rows."""
    at = spread(len(own), SAMPLE_ROWS)
    other = at if rows is None else rows[at]
    at, other = at[other >= 0], other[other >= 0]
    ours, others = own[at].float(), theirs[other].float()
    both = (ours.norm(dim=1) > 0) & (others.norm(dim=1) > 0)  # an untouched padding row has no direction
    if not bool(both.any()):
        return None
    return float(cosine_similarity(ours[both], others[both], dim=1).mean())
