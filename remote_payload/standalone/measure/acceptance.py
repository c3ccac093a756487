"""From drafts to hits: which positions are judged, what the target would answer there, and which steps agree."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from remote_payload.schema.standalone import ReadingHits, RowFacts
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.model.drafter import Drafter, RowInputs, argmax_in_pieces, rms_norm
from remote_payload.standalone.rows.row import Row

READING_BYTES = 256 << 20
"""Readings are computed together in batches whose largest activations stay about this small."""


class Teacher:
    """The target's head, and the drafter's vocabulary in target tokens; all on the device.

    Answers are computed in the dtype the states were captured in, because that is how the target itself computed them:
    for bfloat16 states a float32 head breaks ties of the target's own bfloat16 logits otherwise than the target did.
    """

    def __init__(self, head: torch.Tensor, target_ids: torch.Tensor, device: torch.device) -> None:
        self._norm: tuple[torch.Tensor, float] | None = None
        sayable = torch.zeros(head.shape[0], dtype=torch.bool)
        sayable[target_ids] = True
        self._stored_head = head
        self._head = head.to(device)  # (V, Ht)
        self.target_ids = target_ids.to(device)  # (D,) target token of each draft token
        self.sayable = sayable.to(device)  # (V,) whether the drafter has this target token

    def expect_pre_norm(self, norm: torch.Tensor, eps: float) -> None:
        """From now on final states come without the target's final norm (Ht,), which is applied first."""
        self._norm = (norm, eps)

    def answers(self, final: torch.Tensor) -> torch.Tensor:
        """The target's greedy token y_j after each position, from final states (T, Ht); (T,)."""
        if self._head.dtype != final.dtype:
            self._head = self._stored_head.to(device=self._head.device, dtype=final.dtype)
        final = final.to(self._head.device)
        if self._norm is not None:
            final = rms_norm(final, self._norm[0].to(final), self._norm[1])
        return argmax_in_pieces(final, self._head, "target")


@dataclass(frozen=True, kw_only=True)
class JudgedRow:
    """A row with everything that does not depend on the reading."""

    row: Row
    positions: torch.Tensor  # (P,) on the CPU
    answers: torch.Tensor  # (T,) y_j on the CPU
    wanted: torch.Tensor  # (P, K) the target token that is a hit, -1 behind the row's end; on the device
    counted: torch.Tensor  # (P,) bool on the CPU: the next token is a response token
    inputs: RowInputs


def judged_positions(loss_mask: torch.Tensor, steps: int) -> torch.Tensor:
    """Every j for which any of loss_mask[j .. j + steps] is set, ascending."""
    judged = loss_mask.clone()
    for step in range(1, steps + 1):
        judged[:-step] |= loss_mask[step:]
    return judged.nonzero()[:, 0]


def judge_row(drafter: Drafter, teacher: Teacher, row: Row, steps: int) -> JudgedRow:
    """Prepare a row for any number of readings."""
    positions = judged_positions(row.loss_mask, steps)
    answers = row.answers if row.final is None else teacher.answers(row.final)
    assert answers is not None, "a row has final states or answers"
    later = positions[:, None] + 1 + torch.arange(steps)  # (P, K) index of the answer that step s aims at
    last = len(row.tokens) - 1
    wanted = answers[later.clamp(max=last).to(answers.device)].masked_fill((later > last).to(answers.device), -1)
    return JudgedRow(
        row=row,
        positions=positions,
        answers=answers.cpu(),
        wanted=wanted,
        counted=(positions < last) & row.loss_mask[(positions + 1).clamp(max=last)],
        inputs=drafter.prepare(row.tokens, row.states, positions),
    )


def measure(
    drafter: Drafter, teacher: Teacher, judged: JudgedRow, readings: Sequence[Reading], steps: int
) -> torch.Tensor:
    """Hits of each reading, (R, P, steps) bool on the CPU; readings are computed in batches of bounded size."""
    config = drafter.config
    widest = max(2 * config.intermediate_size, 4 * config.hidden_size)
    one = len(judged.row.tokens) * widest * 4
    batch = max(1, READING_BYTES // one)
    parts = []
    for start in range(0, len(readings), batch):
        drafted = drafter.draft(judged.inputs, readings[start : start + batch], steps)
        parts.append((teacher.target_ids[drafted] == judged.wanted[:, :steps]).cpu())
    return torch.cat(parts)


def row_facts(index: int, judged: JudgedRow, teacher: Teacher) -> RowFacts:
    """The record of a row that was read."""
    row, answers = judged.row, judged.answers
    following = torch.zeros_like(row.loss_mask)
    following[:-1] = answers[:-1] == row.tokens[1:]
    return RowFacts(
        row=index,
        name=row.name,
        tokens=len(row.tokens),
        loss_mask=bitmap(row.loss_mask),
        teacher_in_draft_vocab=bitmap(teacher.sayable[answers.to(teacher.sayable.device)].cpu()),
        teacher_is_next_token=bitmap(following),
        prompt_tokens=row.prompt_tokens,
        source=row.source,
    )


def reading_hits(index: int, judged: JudgedRow, reading: Reading, hits: torch.Tensor) -> ReadingHits:
    """The record of one reading's hits (P, K) on one row."""
    steps = hits.shape[1]
    starts, stops = _runs(judged.positions)
    codes = (hits.to(torch.int64) << torch.arange(steps)).sum(dim=1)
    width = 1 if steps <= 8 else 2
    data = b"".join(code.to_bytes(width, "little") for code in codes.tolist())
    return ReadingHits(
        reading=reading.name,
        row=index,
        steps=steps,
        starts=starts,
        stops=stops,
        hits=base64.b64encode(data).decode("ascii"),
    )


def bitmap(bits: torch.Tensor) -> str:
    """base64 of bits (T,), least significant bit first within a byte."""
    padded = torch.zeros(-(-len(bits) // 8) * 8, dtype=torch.int64)
    padded[: len(bits)] = bits
    values = (padded.view(-1, 8) << torch.arange(8)).sum(dim=1)
    return base64.b64encode(bytes(values.tolist())).decode("ascii")


def _runs(positions: torch.Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Ascending positions as half-open runs."""
    breaks = (positions[1:] - positions[:-1] > 1).nonzero()[:, 0]
    starts = positions[torch.cat((torch.zeros(1, dtype=torch.int64), breaks + 1))]
    stops = positions[torch.cat((breaks, torch.tensor([len(positions) - 1])))] + 1
    return tuple(starts.tolist()), tuple(stops.tolist())
