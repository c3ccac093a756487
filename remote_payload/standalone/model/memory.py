"""How much memory a run will need, told before it begins, and the pieces that keep it below a limit.

The plan adds up what is held at once where the computation runs: on a GPU what torch allocates there, on a CPU the
whole process, with the pages of mapped files that it holds (`machine.peak_memory_bytes` measures the same). Mapped
weights are counted whole, as they are used again and again; of mapped rows, which are let go of piece by piece, one
piece is, and of mapped embeddings what a row looks up.
"""

from dataclasses import dataclass

import torch

from remote_payload.failure import machine_failure
from remote_payload.schema.standalone import MemoryPart, MemoryPlan
from remote_payload.standalone.checkpoint.load import Checkpoint
from remote_payload.standalone.mapped import is_mapped
from remote_payload.standalone.model.budget import MIB, Budget
from remote_payload.standalone.model.sizes import activation_numbers, prefix_numbers, projected_numbers
from remote_payload.standalone.rows.slots import look_bytes
from remote_payload.standalone.rows.values import PIECE_BYTES

PROCESS_BYTES = 320 * MIB
"""Python with torch and its libraries before any model (230 MiB with torch 2.13 on a CPU), and small things."""
FAULT_BYTES = 2 << 20
"""Of a mapped file the kernel takes in what lies around the bytes that are read: 64 KiB, and 2 MiB where it caches the
file in large pages (Linux 6)."""
KERNEL_BYTES = 128 * MIB
"""What oneDNN keeps of the code it makes for products in bfloat16 (`machine.keep_few_kernels`)."""
SCORE_COPIES = 3.5
"""Scores, their softmax, the copy that joins prefix and chain."""
ROW_STATES = "its captured and final states"
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
    state_dtype: torch.dtype = torch.bfloat16
    """What captured states are stored in."""
    mapped: bool = False
    """Rows are read by memory map; else all of a row is in memory."""


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


def check_least(limit_bytes: int | None, device: torch.device) -> None:
    """Before anything is read: raise JobFailure(machine) where not even Python and torch fit a limit on the host."""
    if limit_bytes is not None and device.type == "cpu" and limit_bytes < PROCESS_BYTES:
        raise machine_failure(
            f"the memory limit must be at least {_gib(PROCESS_BYTES)} for Python and torch alone, "
            f"found: {_gib(limit_bytes)}"
        )


TOLERANCE = 0.1
"""Of an expected peak: builds of torch differ by so much in what they take for themselves. A limit has none."""


def overrun(plan: MemoryPlan, peak_bytes: int | None, before_bytes: int) -> str | None:
    """What to say of a true peak above the limit, or, without a limit, above the plan; None = it was kept.

    The plan is of the test itself: it is not held against what the process took before (`before_bytes`).
    """
    told = plan.expected_peak_bytes if plan.limit_bytes is None else plan.limit_bytes
    if peak_bytes is not None and plan.limit_bytes is None and peak_bytes <= told * (1 + TOLERANCE):
        return None
    if peak_bytes is None or peak_bytes <= told or (plan.limit_bytes is None and peak_bytes <= before_bytes):
        return None
    what = "was expected" if plan.limit_bytes is None else "`max_memory_bytes` allows"
    return (
        f"the test took {_gib(peak_bytes)} of memory at its peak ({plan.where}), more than {what}: {_gib(told)}; its "
        "figures are not touched by it"
    )


def _parts(
    checkpoint: Checkpoint, work: Work, budget: Budget, kind: tuple[torch.dtype, torch.device]
) -> list[MemoryPart]:
    dtype, device = kind
    fixed = _model(checkpoint, work, dtype)
    if device.type != "cuda":
        fixed = {"Python and torch": PROCESS_BYTES, **fixed}
        if dtype == torch.bfloat16:
            fixed["code for products in bfloat16"] = KERNEL_BYTES
    row = _row(checkpoint, work, budget, dtype)
    looking = {ROW_STATES: row[ROW_STATES], "a look at its states": _look(checkpoint, work)}
    loading = {"loading the drafter's weights": _joining(checkpoint, dtype)}
    if device.type == "cuda":
        del row[ROW_STATES]  # they stay on the host, pieces of them travel
        fixed["embed_tokens"] = sum(_bytes(table) for table in checkpoint.embeddings.values())
        looking = {}
    else:
        loading["the weights as they are stored"] = _stored_twice(checkpoint, dtype)
    later = max((row, looking, loading), key=lambda parts: sum(parts.values()))  # never two at once
    mapped = _mapped(checkpoint, work) if device.type != "cuda" else set[str]()
    return [
        MemoryPart(name=name, size_bytes=size, mapped=name in mapped)
        for name, size in {**fixed, **later}.items()
        if size
    ]


def _mapped(checkpoint: Checkpoint, work: Work) -> set[str]:
    """Parts that are pages of files, mostly."""
    found = {ROW_STATES} if work.mapped else set[str]()
    if all(is_mapped(table) for table in checkpoint.embeddings.values()):
        found.add("embed_tokens")
    if is_mapped(checkpoint.teacher_head) and checkpoint.teacher_head.dtype == work.state_dtype:
        found.add("the target's lm_head")
    return found


def _model(checkpoint: Checkpoint, work: Work, dtype: torch.dtype) -> dict[str, int]:
    """What is held all the time."""
    head = checkpoint.teacher_head
    again = 0 if head.dtype == work.state_dtype else head.numel() * work.state_dtype.itemsize
    return {
        "the drafter's weights": sum(weight.numel() for weight in checkpoint.weights.values()) * dtype.itemsize,
        "embed_tokens": sum(_looked_up(table, work) for table in checkpoint.embeddings.values()),
        "the target's lm_head": _bytes(head) + again,
    }


def _stored_twice(checkpoint: Checkpoint, dtype: torch.dtype) -> int:
    """Weights that stay in memory beside their converted or joined copies until all are loaded; mapped ones do not."""
    copied = (w for name, w in checkpoint.weights.items() if w.dtype != dtype or "_proj." in name)
    return sum(_bytes(weight) for weight in copied if not is_mapped(weight))


def _look(checkpoint: Checkpoint, work: Work) -> int:
    vocabulary, width = checkpoint.teacher_head.shape
    return look_bytes(work.captured, width, vocabulary, work.state_dtype.itemsize)


def _states(checkpoint: Checkpoint, work: Work, budget: Budget) -> int:
    """Captured and final states: all of them, or of mapped ones the largest piece that is read before it is let go."""
    one = checkpoint.config.target_hidden_size * work.state_dtype.itemsize
    whole = work.row_tokens * one * (work.captured + 1)
    if not work.mapped:
        return whole
    # What is looked at token by token lies so close that the kernel takes in all between.
    token = one * work.captured
    through_fc = budget.projected_positions(checkpoint.config.target_hidden_size) * min(token, one + FAULT_BYTES)
    return min(whole, max(PIECE_BYTES, through_fc))


def _looked_up(table: torch.Tensor, work: Work) -> int:
    """An embedding: all of it, or of a mapped one what a row's tokens can make the kernel take in."""
    one = table.shape[1] * table.element_size() + FAULT_BYTES
    return min(_bytes(table), work.row_tokens * one) if is_mapped(table) else _bytes(table)


def _joining(checkpoint: Checkpoint, dtype: torch.dtype) -> int:
    """Projections that are being joined while the weights are loaded: the two parts, and the whole."""
    largest = max(weight.numel() for name, weight in checkpoint.weights.items() if ".mlp." in name)
    return 4 * largest * dtype.itemsize


def _row(checkpoint: Checkpoint, work: Work, budget: Budget, dtype: torch.dtype) -> dict[str, int]:
    """What a row and the readings on it hold, at most."""
    config, size, tokens = checkpoint.config, dtype.itemsize, work.row_tokens
    states = _states(checkpoint, work, budget)
    half, fused = budget.reading_bytes // 2, tokens * config.hidden_size * size
    token_half = tokens * projected_numbers(config) * size
    final = tokens * config.target_hidden_size * work.state_dtype.itemsize if config.reads_final_state else 0
    kept = min(budget.projection_bytes, work.captured * checkpoint.slots * fused)
    one = tokens * prefix_numbers(config) * size
    chains = work.readings * tokens
    held = 0 if work.mapped else states
    score = 4 * config.attention.heads * tokens
    return {
        ROW_STATES: states,
        "its normed final states": final,
        "the token half of its projections": token_half,
        "its projected states": kept + 2 * fused,
        "keys, values and hidden states of readings": max(one, min(half, work.readings * one)),
        "activations of a block of chains": min(half, chains * activation_numbers(config) * size),
        "attention scores": int(SCORE_COPIES * max(score, min(budget.score_bytes, chains * score))),
        "logits": max(4 * config.vocab_size, min(budget.logit_bytes, chains * 4 * config.vocab_size)),
        "rows kept for the search": min(budget.kept_bytes, work.kept_rows * (held + kept + token_half)),
    }


def _total(parts: list[MemoryPart]) -> int:
    return sum(part.size_bytes for part in parts)


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
