"""Rows and hits as arrays: the bitmaps of `RowFacts` and `ReadingHits` unpacked (positions: schema/standalone.py)."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.errors import InvalidRunError
from remote_payload.schema import ReadingHits, RowFacts
from remote_payload.schema.job import MAX_STEPS

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """One captured row. Arrays are (T,), T the row's tokens."""

    name: str
    tokens: int
    prompt_tokens: int
    loss_mask: Bools
    """Token t belongs to a response."""
    in_vocab: Bools
    """The teacher's choice y_t can be proposed by the drafter at all."""
    greedy: Bools
    """y_t == x_{t+1}; the last token has no successor and counts as False."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Chains:
    """One reading on one row: P judged positions, K steps."""

    row: Row
    steps: int
    positions: Ints
    """(P,) draft positions j, ascending."""
    hits: Bools
    """(P, K) step s of position j proposes y_{j+1+s}; False where that lies beyond the row."""


def unpack_row(facts: RowFacts) -> Row:
    """Unpack a row's bitmaps. Raises InvalidRunError where a bitmap does not fit the row's length."""
    return Row(
        name=facts.name,
        tokens=facts.tokens,
        prompt_tokens=facts.prompt_tokens,
        loss_mask=_bitmap(facts.loss_mask, facts, "loss_mask"),
        in_vocab=_bitmap(facts.teacher_in_draft_vocab, facts, "teacher_in_draft_vocab"),
        greedy=_bitmap(facts.teacher_is_next_token, facts, "teacher_is_next_token"),
    )


def unpack_hits(hits: ReadingHits, row: Row, *, in_vocab: bool = False) -> Chains:
    """Unpack a reading's hits on its row; `in_vocab`: those against the teacher's choice within the draft vocabulary.

    Raises InvalidRunError where hits and row do not fit each other, or where the asked hits are not there.
    """
    what = f"hits of `{hits.reading}` on `{row.name}`"
    runs = list(zip(hits.starts, hits.stops, strict=False))
    edges = [edge for run in runs for edge in run]
    if len(hits.starts) != len(hits.stops) or edges != sorted(edges) or any(not 0 <= e <= row.tokens for e in edges):
        raise InvalidRunError(f"{what}: expected ascending runs of positions within {row.tokens} tokens, found: {runs}")
    positions = np.concatenate([np.arange(a, b, dtype=np.int64) for a, b in runs] or [np.empty(0, np.int64)])
    text = hits.hits_in_vocab if in_vocab else hits.hits
    if text is None:
        raise InvalidRunError(f"{what}: expected hits within the draft vocabulary, found none: an older result")
    packed = np.frombuffer(_base64(text, what), dtype=np.uint8)
    width = 1 if hits.steps <= 8 else 2
    if packed.size != width * positions.size:
        raise InvalidRunError(f"{what}: expected {width * positions.size} bytes, found: {packed.size}")
    bits = np.unpackbits(packed.reshape(-1, width), axis=1, bitorder="little")[:, : hits.steps].astype(bool)
    return Chains(row=row, steps=hits.steps, positions=positions, hits=bits & exists(positions, hits.steps, row.tokens))


def chains_of(
    reading: str, rows: Sequence[RowFacts], hits: Sequence[ReadingHits], *, in_vocab: bool = False
) -> tuple[Chains, ...]:
    """One reading's hits on all its rows, in the run's row order.

    Raises InvalidRunError where its hits are missing or do not fit the rows.
    """
    own = sorted((item for item in hits if item.reading == reading), key=lambda item: item.row)
    if not own:
        raise InvalidRunError(f"expected hits of the reading `{reading}`, found none")
    facts = {row.row: row for row in rows}
    if len({item.row for item in own}) != len(own) or len(facts) != len(rows):
        raise InvalidRunError(f"hits of `{reading}`: expected every row once, found one twice")
    steps = own[0].steps
    for item in own:
        if not 1 <= item.steps <= MAX_STEPS:
            raise InvalidRunError(f"hits of `{reading}`: expected 1..{MAX_STEPS} steps, found: {item.steps}")
        if item.row not in facts or item.steps != steps:
            raise InvalidRunError(f"hits of `{reading}`: expected {steps} steps on a known row, found row: {item.row}")
    return tuple(unpack_hits(item, unpack_row(facts[item.row]), in_vocab=in_vocab) for item in own)


def exists(positions: Ints, steps: int, tokens: int) -> Bools:
    """(P, K): whether y_{j+1+s} lies within the row."""
    return positions[:, None] + 1 + np.arange(steps)[None, :] <= tokens - 1


def masked(mask: Bools, indices: Ints) -> Bools:
    """`mask[indices]`, False for an index beyond the row. Same shape as `indices`."""
    inside = (indices >= 0) & (indices < mask.size)
    return inside & mask[np.clip(indices, 0, mask.size - 1)]


def segments(loss_mask: Bools) -> list[tuple[int, int]]:
    """Half-open runs [a, b) of response tokens; several in a multi-turn row."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], loss_mask, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _bitmap(text: str, facts: RowFacts, name: str) -> Bools:
    what = f"`{name}` of row `{facts.name}`"
    packed = np.frombuffer(_base64(text, what), dtype=np.uint8)
    if facts.tokens < 1 or packed.size != (facts.tokens + 7) // 8:
        raise InvalidRunError(f"{what}: expected a bit for each of {facts.tokens} tokens, found bytes: {packed.size}")
    return np.unpackbits(packed, bitorder="little")[: facts.tokens].astype(bool)


def _base64(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRunError(f"{what}: expected base64, found: {error}") from None
