"""Whether the stored final states belong to the rows' tokens, judged by what the target would have said.

A response that its target generated greedily is what the target's choices say: at a response token, the choice is the
next token, nearly always. Sampled responses agree less; shifted states, another layer or another target agree at
random, or at another offset.
"""

import math

import torch

from remote_payload.schema.standalone import TeacherFacts
from remote_payload.standalone.mapped import picked
from remote_payload.standalone.rows.final_state import NEAR_ONE
from remote_payload.standalone.rows.row import Row

SHIFTS = (0, 2)
"""The choice after token j is held against tokens j + 1 and, to see a shift, j + these."""
RMS_TOKENS = 64
"""Final states of a row whose size is looked at."""
LEAST_WEIGHT = 1e-3
"""A channel whose norm weight is smaller says nothing after a division by it."""


class TeacherLook:
    """Counts agreement row by row. `norm` is the weight (Ht,) of the target's final norm; None = unknown."""

    def __init__(self, norm: torch.Tensor | None) -> None:
        self._norm = None if norm is None else norm.float().cpu()
        self._positions = self._agrees = 0
        self._shifted = [0 for _ in SHIFTS]
        self._by_row: list[float] = []
        self._rms: list[torch.Tensor] = []  # (t, 2) each: by the weight, and by 1 + weight as Gemma has it

    def add(self, row: Row, answers: torch.Tensor) -> None:
        """Take in a row and the teacher's choices y_j (T,), -1 where unknown."""
        answers = answers.cpu()
        at = (row.loss_mask[:-1] & row.loss_mask[1:] & (answers[:-1] >= 0)).nonzero()[:, 0]
        if len(at):
            agrees = int((answers[at] == row.tokens[at + 1]).sum())
            self._positions += len(at)
            self._agrees += agrees
            self._by_row.append(agrees / len(at))
            for index, shift in enumerate(SHIFTS):
                within = at[at + shift < len(row.tokens)]
                self._shifted[index] += int((answers[within] == row.tokens[within + shift]).sum())
        if row.final is not None and self._norm is not None:
            self._rms.append(self._sizes(row.final, self._norm))

    def facts(self) -> TeacherFacts:
        """What was counted."""
        return TeacherFacts(
            positions=self._positions,
            agrees=self._agrees,
            rows_agreeing=tuple(round(share, 6) for share in self._by_row),
            shifted_agrees=tuple(self._shifted),
            norm_rms=self._norm_rms(),
        )

    def _norm_rms(self) -> float | None:
        """The median by the weight; by 1 + weight only where that makes nearly every token's size 1."""
        if not self._rms:
            return None
        plain, added = torch.cat(self._rms).unbind(dim=1)
        if not bool(plain.isfinite().all()):  # no weight to divide by
            plain = torch.full_like(plain, math.inf)
        if not bool(added.isfinite().all()):
            added = torch.full_like(added, math.inf)
        gemma = float((added - 1).abs().median()) < NEAR_ONE <= float((plain - 1).abs().median())
        found = float((added if gemma else plain).median())
        return found if math.isfinite(found) else None

    def _sizes(self, final: torch.Tensor, norm: torch.Tensor) -> torch.Tensor:
        """Root mean square of a few of the states (T, Ht) over both forms of the norm's weight; (t, 2)."""
        few = picked(final, torch.arange(0, len(final), max(1, len(final) // RMS_TOKENS))[:RMS_TOKENS]).float()
        forms = []
        for weight in (norm, norm + 1):
            usable = weight.abs() > LEAST_WEIGHT
            forms.append((few[:, usable] / weight[usable]).square().mean(dim=1).sqrt())
        return torch.stack(forms, dim=1)
