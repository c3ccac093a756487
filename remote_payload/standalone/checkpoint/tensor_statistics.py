"""Numbers by which a random, untouched or wrongly pruned tensor shows. Large tensors are sampled."""

import math

import torch

from remote_payload.schema.standalone import TensorStatistics
from remote_payload.standalone.checkpoint.pieces import pieces

SAMPLE = 1024
"""Rows and columns that are looked at: as many as a plain sample needs for figures within some percent."""
ITERATIONS = 30
"""Of the power iteration: a trained matrix's first singular value stands far out, a random one's is met within 2 %."""
KEY_COLUMNS = 32
"""Rows that differ are told apart by this many first columns, nearly always."""
MATRIX = 2


def statistics_of(name: str, tensor: torch.Tensor, *, duplicates: bool = False) -> TensorStatistics:
    """Statistics of one stored tensor; `duplicates` asks for equal rows as well, which reads all rows.

    For independent normal numbers of any size both `spectral_excess` and `row_norm_spread` are about 1: the largest
    singular value of an (r, c) matrix is close to std (sqrt r + sqrt c), and a row's norm varies by 1 / sqrt(2 c).
    """
    sample = _sample(tensor)
    matrix = sample.ndim == MATRIX and min(sample.shape) > 1
    std = float(sample.std(correction=0)) if sample.numel() else 0.0
    return TensorStatistics(
        name=name,
        mean=float(sample.mean()) if sample.numel() else 0.0,
        std=std,
        spectral_excess=_spectral_excess(sample, std) if matrix and std > 0 else None,
        row_norm_spread=_row_norm_spread(sample) if matrix and std > 0 else None,
        duplicate_rows=duplicate_rows(tensor) if duplicates and tensor.ndim == MATRIX else 0,
        constant=_constant(tensor, sample),
    )


def spread(size: int, most: int) -> torch.Tensor:
    """Up to `most` indices of 0..size - 1, evenly spread."""
    return torch.arange(size) if size <= most else torch.linspace(0, size - 1, most).long()


def duplicate_rows(matrix: torch.Tensor) -> int:
    """Rows of a matrix (R, C) that equal another, earlier row bit by bit."""
    key = matrix[:, :KEY_COLUMNS].contiguous().view(torch.uint8)
    _, group = torch.unique(key, dim=0, return_inverse=True)
    order = group.argsort(stable=True)
    grouped = group[order]
    starts = torch.ones_like(grouped, dtype=torch.bool)
    starts[1:] = grouped[1:] != grouped[:-1]
    first = order[starts.nonzero()[:, 0]][grouped]  # the first row of each row's group
    candidates = (~starts).nonzero()[:, 0]
    equal = 0
    for piece in pieces(candidates):
        ours, theirs = (matrix[rows].view(torch.uint8) for rows in (order[piece], first[piece]))
        equal += int((ours == theirs).all(dim=1).sum())
    return equal


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """Evenly spread rows and columns, float64: squares of any float32 stay finite and above zero."""
    if tensor.ndim == MATRIX:
        rows = tensor[spread(tensor.shape[0], SAMPLE)]
        return rows[:, spread(rows.shape[1], SAMPLE)].double()
    return tensor.flatten()[: SAMPLE * SAMPLE].double()


def _spectral_excess(sample: torch.Tensor, std: float) -> float:
    rows, columns = sample.shape
    vector = torch.randn(columns, generator=torch.Generator().manual_seed(0)).double()
    largest = 0.0
    for _ in range(ITERATIONS):
        image = sample @ (vector / vector.norm())
        largest = float(image.norm())
        if largest == 0:
            return 0.0
        vector = sample.T @ image
    return largest / (std * (math.sqrt(rows) + math.sqrt(columns)))


def _row_norm_spread(sample: torch.Tensor) -> float:
    norms = sample.norm(dim=1)
    return float(norms.std(correction=0) / norms.mean()) * math.sqrt(2 * sample.shape[1])


def _constant(tensor: torch.Tensor, sample: torch.Tensor) -> float | None:
    """The one value of all entries; the sample rules most tensors out before all of it is read."""
    if not sample.numel() or bool((sample != sample.flatten()[0]).any()):
        return None
    first = tensor.flatten()[0]
    return float(first) if all(bool((piece == first).all()) for piece in pieces(tensor)) else None
