"""How much memory a run will need, told before it begins, and the pieces that keep it below a limit.

The plan adds up what is held at once where the computation runs: on a CPU this is the whole process, on a GPU what
torch allocates there. It counts memory-mapped states and embeddings as if they were read whole, which a search does.
"""

from dataclasses import dataclass

import torch

from remote_payload.failure import machine_failure
from remote_payload.schema.standalone import MemoryPart, MemoryPlan
from remote_payload.standalone.checkpoint.load import Checkpoint
from remote_payload.standalone.model.budget import MIB, Budget
from remote_payload.standalone.model.sizes import activation_numbers, prefix_numbers, projected_numbers

PROCESS_BYTES = 320 * MIB
"""Python with torch and its libraries before any model (230 MiB with torch 2.13 on a CPU), and small things."""
STATE_BYTES = 2
"""A captured number: rows are captured in bfloat16 or float16."""
SCORE_COPIES = 3.5
"""Scores, their softmax, the copy that joins prefix and chain."""
FEWEST_HALVINGS = 12
"""After so many the smallest pieces are reached."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a run asks of the memory, apart from the pieces."""

    row_tokens: int
    """Tokens of the longest row."""
    captured: int
    """States in a row."""
    readings: int
    """Readings that are asked for at once."""
    kept_rows: int = 0
    """Rows that a search goes through again and again."""


def plan(
    checkpoint: Checkpoint, work: Work, *, dtype: torch.dtype, device: torch.device, limit_bytes: int | None
) -> tuple[MemoryPlan, Budget]:
    """The expected peak, and the pieces that keep it below `limit_bytes` (None: the usual pieces).

    To be called before the checkpoint's weights are given up. Raises JobFailure(machine), saying what is needed at
    least, where even the smallest pieces do not fit.
    """
    budget = Budget()
    parts = _parts(checkpoint, work, budget, (dtype, device))
    for _ in range(FEWEST_HALVINGS):
        if limit_bytes is None or _total(parts) <= limit_bytes:
            break
        budget = budget.smaller()
        parts = _parts(checkpoint, work, budget, (dtype, device))
    if limit_bytes is not None and _total(parts) > limit_bytes:
        largest = max(parts, key=lambda part: part.size_bytes)
        raise machine_failure(
            f"the memory limit must be at least {_gib(_total(parts))} for this drafter on rows of {work.row_tokens} "
            f"tokens with {work.captured} captured states, found: {_gib(limit_bytes)}",
            hint=f"the largest part of it is {largest.name}, {_gib(largest.size_bytes)}; "
            + ('`dtype = "bfloat16"` halves most parts' if dtype == torch.float32 else "shorter rows need less"),
        )
    where = MemoryPlan(
        expected_peak_bytes=_total(parts),
        limit_bytes=limit_bytes,
        parts=tuple(parts),
        where="gpu" if device.type == "cuda" else "host",
    )
    return where, budget


def _parts(
    checkpoint: Checkpoint, work: Work, budget: Budget, kind: tuple[torch.dtype, torch.device]
) -> list[MemoryPart]:
    dtype, device = kind
    fixed = _model(checkpoint, dtype)
    if device.type != "cuda":
        fixed = {"Python and torch": PROCESS_BYTES, **fixed}
    row = _row(checkpoint, work, budget, dtype)
    stored = sum(_bytes(weight) for weight in checkpoint.weights.values())
    if device.type == "cuda":
        del row["its captured and final states"]  # they stay on the host, pieces of them travel
        stored = 0
    loading = {"loading the drafter's weights": stored + _joining(checkpoint, dtype)}
    later = row if sum(row.values()) >= sum(loading.values()) else loading  # never both at once
    return [MemoryPart(name=name, size_bytes=size) for name, size in {**fixed, **later}.items() if size]


def _model(checkpoint: Checkpoint, dtype: torch.dtype) -> dict[str, int]:
    """What is held all the time."""
    head = checkpoint.teacher_head
    again = 0 if head.element_size() == STATE_BYTES else head.numel() * STATE_BYTES
    return {
        "the drafter's weights": sum(weight.numel() for weight in checkpoint.weights.values()) * dtype.itemsize,
        "embed_tokens": sum(_bytes(table) for table in checkpoint.embeddings.values()),
        "the target's lm_head": _bytes(head) + again,
    }


def _joining(checkpoint: Checkpoint, dtype: torch.dtype) -> int:
    """Projections that are being joined while the weights are loaded: the two parts, and the whole."""
    largest = max(weight.numel() for name, weight in checkpoint.weights.items() if ".mlp." in name)
    return 4 * largest * dtype.itemsize


def _row(checkpoint: Checkpoint, work: Work, budget: Budget, dtype: torch.dtype) -> dict[str, int]:
    """What a row and the readings on it hold, at most."""
    config, size, tokens = checkpoint.config, dtype.itemsize, work.row_tokens
    states = tokens * config.target_hidden_size * STATE_BYTES * (work.captured + 1)
    half, fused = budget.reading_bytes // 2, tokens * config.hidden_size * size
    token_half = tokens * projected_numbers(config) * size
    kept = min(budget.projection_bytes, work.captured * checkpoint.slots * fused)
    one = tokens * prefix_numbers(config) * size
    chains = work.readings * tokens
    score = 4 * config.attention.heads * tokens
    return {
        "its captured and final states": states,
        "the token half of its projections": token_half,
        "its projected states": kept + 2 * fused,
        "keys, values and hidden states of readings": max(one, min(half, work.readings * one)),
        "activations of a block of chains": min(half, chains * activation_numbers(config) * size),
        "attention scores": int(SCORE_COPIES * max(score, min(budget.score_bytes, chains * score))),
        "logits": max(4 * config.vocab_size, min(budget.logit_bytes, chains * 4 * config.vocab_size)),
        "rows kept for the search": min(budget.kept_bytes, work.kept_rows * (states + kept + token_half)),
    }


def _total(parts: list[MemoryPart]) -> int:
    return sum(part.size_bytes for part in parts)


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
