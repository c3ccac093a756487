"""Which known state each served one is: equality, direction, size, and a linear fit, over the same tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch

from remote_payload.schema.capture import ServedState, StateMatch
from remote_payload.schema.state_change import StateChange
from remote_payload.standalone.capture.compare import relative_error
from remote_payload.standalone.capture.likeness import Sums, through_norms
from remote_payload.standalone.rows.row import Row

OFFSETS = (0, -1, 1)
"""A server, or a capture, that hands on a neighbour's state is off by one token."""
KEPT_OF_OTHERS = 3
"""Matches told beyond those of the same token."""
FITTED_TOKENS = 1024
"""Of each row half, for the linear fit."""
RIDGE = 1e-3
"""Times the mean of the kernel's diagonal."""
Known = tuple[Literal["captured", "final", "embedding"], int | None, int]
"""What, which slot, at which token offset."""


@dataclass
class _Pair:
    """One served slot against one known state, row by row."""

    errors: list[torch.Tensor] = field(default_factory=list)
    cosines: list[torch.Tensor] = field(default_factory=list)
    scales: list[torch.Tensor] = field(default_factory=list)
    sums: Sums = field(default_factory=Sums)
    exact: int = 0


class Identifier:
    """Takes rows one by one; tells at the end what every served slot is."""

    def __init__(self, labels: tuple[int, ...] | None, table: torch.Tensor | None) -> None:
        """`labels`: HF hidden_states index of each captured state; `table`: the target's embedding (V, Ht)."""
        self._labels, self._table = labels, table
        self._pairs: dict[tuple[int, Known], _Pair] = {}
        self._served: list[torch.Tensor] = []  # (T, k, Ht) a row
        self._captured: list[torch.Tensor] = []  # (T, n, Ht) a row
        self.rows = self.tokens = 0

    @property
    def captured(self) -> int | None:
        """How many states a training row holds; None = no row was compared."""
        return self._captured[0].shape[1] if self._captured else None

    def add(self, served: torch.Tensor, row: Row) -> None:
        """Served states (T, k, Ht) of the row's first T tokens."""
        length = len(served)
        known = row.states[:length]
        for slot in range(served.shape[1]):
            mine = served[:, slot]
            for other in range(known.shape[1]):
                for offset in OFFSETS:
                    self._compare((slot, ("captured", other, offset)), mine, known[:, other], offset)
            if row.final is not None:
                self._compare((slot, ("final", None, 0)), mine, row.final[:length], 0)
            if self._table is not None:
                self._compare((slot, ("embedding", None, 0)), mine, self._table[row.tokens[:length]], 0)
        self._served.append(served)
        self._captured.append(known.clone())
        self.rows += 1
        self.tokens += length

    def found(self) -> tuple[ServedState, ...]:
        """Every served slot with its matches."""
        slots = sorted({slot for slot, _ in self._pairs})
        return tuple(self._state(slot) for slot in slots)

    def _compare(self, key: tuple[int, Known], mine: torch.Tensor, known: torch.Tensor, offset: int) -> None:
        """The state of token t against the known one of token t + offset."""
        if offset:
            shifted = slice(max(0, offset), len(known) + min(0, offset))
            mine, known = mine[slice(max(0, -offset), len(mine) + min(0, -offset))], known[shifted]
        if not len(mine):
            return
        pair = self._pairs.setdefault(key, _Pair())
        fine, coarse = mine.float(), known.float()
        pair.errors.append(relative_error(fine, coarse))
        pair.cosines.append(torch.nn.functional.cosine_similarity(fine, coarse, dim=-1))
        sizes = torch.linalg.vector_norm(coarse, dim=-1).clamp_min(torch.finfo(torch.float32).tiny)
        pair.scales.append(torch.linalg.vector_norm(fine, dim=-1) / sizes)
        if not offset:
            pair.sums.add(fine, coarse)
        shorter = min((mine.dtype, known.dtype), key=lambda dtype: dtype.itemsize)
        pair.exact += int((mine.to(shorter) == known.to(shorter)).all(dim=-1).sum())

    def _state(self, slot: int) -> ServedState:
        matches = [self._match(slot, known, pair) for (mine, known), pair in self._pairs.items() if mine == slot]
        matches.sort(key=lambda match: match.error)
        same = [match for match in matches if match.token_offset == 0]
        others = [match for match in matches if match.token_offset != 0][:KEPT_OF_OTHERS]
        sizes = torch.cat([torch.linalg.vector_norm(row[:, slot].float(), dim=-1) for row in self._served])
        width = self._served[0].shape[2]
        return ServedState(
            slot=slot,
            tokens=self.tokens,
            rms=float(sizes.median()) / width**0.5,
            matches=tuple(sorted([*same, *others], key=lambda match: match.error)),
        )

    def _match(self, slot: int, known: Known, pair: _Pair) -> StateMatch:
        against, other, offset = known
        r2, tokens = self._fit(slot, other) if against == "captured" and other is not None and not offset else (None, 0)
        label = 0 if against == "embedding" else None
        if against == "captured" and self._labels is not None and other is not None and other < len(self._labels):
            label = self._labels[other]
        errors = torch.cat(pair.errors)
        return StateMatch(
            against=against,
            slot=other,
            state=label,
            token_offset=offset,
            tokens=len(errors),
            exact=pair.exact,
            error=float(errors.median()),
            cosine=float(torch.cat(pair.cosines).median()),
            scale=float(torch.cat(pair.scales).median()),
            r2=r2,
            r2_tokens=tokens or None,
            change=None if offset else self._change(slot, other, pair),
        )

    def _change(self, slot: int, other: int | None, pair: _Pair) -> StateChange:
        change = pair.sums.change()
        if other is None:
            return change
        served, known = (
            [row[:, at].float() for row in rows] for rows, at in ((self._served, slot), (self._captured, other))
        )
        normed, unnormed, channels = through_norms(served, known)
        return replace(change, normed_error=normed, unnormed_error=unnormed, channels_error=channels)

    def _fit(self, slot: int, other: int) -> tuple[float | None, int]:
        """Explained share on the other half of the rows, each half once; None below two rows."""
        halves = [self._half(slot, other, first) for first in (0, 1)]
        if any(not len(half[0]) for half in halves):
            return None, 0
        lost = whole = 0.0
        for (inputs, wanted), (new, truth) in (halves, halves[::-1]):
            lost += float((truth - _ridge(inputs, wanted, new)).square().sum())
            whole += float((truth - wanted.mean(dim=0)).square().sum())
        return (1 - lost / whole if whole > 0 else None), sum(len(half[0]) for half in halves)

    def _half(self, slot: int, other: int, first: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Captured (N, Ht) and served (N, Ht) of every second row."""
        inputs = [row[:, other].float() for row in self._captured[first::2]]
        wanted = [row[:, slot].float() for row in self._served[first::2]]
        return _some(inputs), _some(wanted)


def _some(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    whole = torch.cat(list(rows)) if rows else torch.empty(0, 0)
    return whole[:: max(1, -(-len(whole) // FITTED_TOKENS))]


def _ridge(inputs: torch.Tensor, wanted: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """Kernel ridge regression with a linear kernel: as many unknowns as tokens, however wide the states are."""
    centre, middle = inputs.mean(dim=0), wanted.mean(dim=0)
    inputs, new = inputs - centre, new - centre
    kernel = inputs @ inputs.T
    kernel.diagonal().add_(RIDGE * float(kernel.diagonal().mean()) + torch.finfo(torch.float32).tiny)
    fitted: torch.Tensor = new @ inputs.T @ torch.linalg.solve(kernel, wanted - middle) + middle
    return fitted
