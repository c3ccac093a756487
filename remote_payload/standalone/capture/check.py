"""The capture check: a few captured rows against what the target computes for the same tokens here and now.

It happened that a capture ran with a target whose rotary frequencies were never initialised: the drafter trained on it
scored 62 % offline and was accepted 1.79 tokens long when served. Nothing in the rows themselves shows that.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from remote_payload.schema.standalone import CaptureCheck
from remote_payload.standalone.capture.compare import Distances
from remote_payload.standalone.capture.fresh import CannotRun, FreshTarget, load_target
from remote_payload.standalone.rows.row import Row

LONGEST = 256
"""Tokens of a row that are compared, from its start: attention is causal, so they stand for themselves."""

COMPUTED = (torch.float32, torch.bfloat16, torch.float16)
"""Dtypes a target is run in: the captured one where possible, so that rounding is alike."""


def check_capture(
    target: Path,
    rows: Sequence[Row],
    labels: tuple[int, ...] | None,
    answers: Callable[[torch.Tensor], torch.Tensor],
    *,
    device: torch.device,
    limit_bytes: int | None = None,
) -> CaptureCheck:
    """Compare rows with a fresh forward of the target; says why where that cannot be done, and never raises for it.

    `labels` are the HF hidden_states indices the slots should be, `answers` gives the teacher's choices (T,) from
    stored final states (T, Ht), `limit_bytes` bounds the target's weights (None = what is free on the device).
    """
    started = time.perf_counter()
    if not rows:
        return CaptureCheck(ran=False, why_not="there is no row to compare")
    try:
        stored = rows[0].states.dtype
        dtype = stored if stored in COMPUTED else torch.bfloat16
        fresh = load_target(target, dtype=dtype, device=device, limit_bytes=limit_bytes)
        try:
            found = _compare(fresh, rows, labels, answers)
        finally:
            fresh.close()
    except CannotRun as reason:
        return CaptureCheck(ran=False, why_not=str(reason), seconds=time.perf_counter() - started)
    return CaptureCheck(
        ran=True,
        transformers=fresh.transformers_version,
        rows=len(rows),
        tokens=found.tokens,
        slots=tuple(slot.facts(number, labels[number] if labels else None) for number, slot in enumerate(found.slots)),
        final=found.final.facts(None, found.layers) if found.final.by_index else None,
        same_answers=found.same_answers,
        answers=found.answers,
        seconds=time.perf_counter() - started,
    )


class _Found:
    """What the rows gave so far."""

    def __init__(self, captured: int) -> None:
        self.slots = [Distances() for _ in range(captured)]
        self.final = Distances()
        self.layers = self.tokens = self.same_answers = self.answers = 0


def _compare(
    fresh: FreshTarget,
    rows: Sequence[Row],
    labels: tuple[int, ...] | None,
    answers: Callable[[torch.Tensor], torch.Tensor],
) -> _Found:
    found = _Found(rows[0].states.shape[1])
    for row in rows:
        tokens = row.tokens[:LONGEST]
        if int(tokens.max()) >= fresh.vocab_size:
            raise CannotRun(f"the target has {fresh.vocab_size} tokens, the rows use token: {int(tokens.max())}")
        forward = fresh.forward(tokens)
        width, layers = forward.states[0].shape[1], len(forward.states) - 1
        if width != row.states.shape[2]:
            raise CannotRun(f"the target's states are {width} wide, the rows': {row.states.shape[2]}")
        if labels and max(labels) > layers:
            raise CannotRun(f"the target has {layers} layers, the rows' labels name state: {max(labels)}")
        found.layers = layers
        found.tokens += len(tokens)
        for slot, distances in enumerate(found.slots):
            distances.add(row.states[: len(tokens), slot], forward)
        chosen = row.answers
        if row.final is not None:
            found.final.add(row.final[: len(tokens)], forward)
            chosen = answers(row.final[: len(tokens)])
        if chosen is not None:
            chosen = chosen[: len(tokens)].to(forward.answers.device)
            found.same_answers += int((chosen == forward.answers).sum())
            found.answers += int((chosen >= 0).sum())
    return found
