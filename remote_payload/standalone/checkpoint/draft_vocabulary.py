"""The drafter's own vocabulary: which target token each of its ids means."""

import torch

from remote_payload.failure import checkpoint_failure
from remote_payload.standalone.checkpoint.config import DrafterConfig
from remote_payload.standalone.checkpoint.weight_files import StoredTensor

MASKS = ("BOOL", "U8", "I8", "I16", "I32", "I64")


def target_ids(offsets: torch.Tensor | None, config: DrafterConfig) -> torch.Tensor:
    """Target token of each draft token, (D,) int64; d2t (D,) is an offset: target id = draft id + d2t[draft id].

    Raises JobFailure(checkpoint) where an id leads nowhere, or two to the same token.
    """
    size, vocab = config.draft_vocab_size, config.vocab_size
    if offsets is None:
        return torch.arange(size)
    ids = torch.arange(size) + offsets.to(torch.int64)
    if int(ids.min()) < 0 or int(ids.max()) >= vocab:
        absolute = int(offsets.min()) >= 0 and int(offsets.max()) < vocab
        raise checkpoint_failure(
            f"`d2t` must lead to target tokens 0..{vocab - 1}, it leads to: {int(ids.min())}..{int(ids.max())}",
            hint="it seems to hold target ids; every engine reads it as an offset: subtract arange"
            if absolute
            else "d2t[i] is an offset: target id = i + d2t[i]",
        )
    ordered = ids.sort().values
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        raise checkpoint_failure(
            f"`d2t` must lead to {size} different target tokens, {len(twice)} of its ids lead to a token that "
            f"another leads to already, the first: {int(twice[0])}",
            hint="does it hold target ids? it is an offset: target id = i + d2t[i]; export the drafter again",
        )
    return ids


def agrees(stored: StoredTensor, ids: torch.Tensor) -> bool:
    """Whether a stored t2d mask (V,) marks exactly the tokens (D,) that d2t leads to."""
    if stored.dtype not in MASKS or len(stored.shape) != 1:
        return False
    marked = stored.read().ne(0).nonzero()[:, 0]
    return torch.equal(marked, ids.sort().values)
