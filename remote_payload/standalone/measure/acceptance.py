"""From drafts to hits: which positions are judged, what the target would answer there, and which steps agree."""

import base64
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import linear

from remote_payload.schema.standalone import ReadingHits, RowFacts
from remote_payload.standalone.graph import Graph, Reading
from remote_payload.standalone.mapped import let_go
from remote_payload.standalone.model.budget import Budget
from remote_payload.standalone.model.drafter import Drafter
from remote_payload.standalone.model.head import argmax_in_pieces, pieces_of
from remote_payload.standalone.model.inputs import RowInputs
from remote_payload.standalone.model.norm import rms_norm
from remote_payload.standalone.rows.lint import tokens_sha256
from remote_payload.standalone.rows.row import Row


class Teacher:
    """The target's head, and the drafter's vocabulary in target tokens; all on the device.

    Answers are computed in the dtype the states were captured in, because that is how the target itself computed them:
    for bfloat16 states a float32 head breaks ties of the target's own bfloat16 logits otherwise than the target did.
    """

    def __init__(
        self,
        head: torch.Tensor,
        target_ids: torch.Tensor,
        device: torch.device,
        vocabularies: Mapping[str, torch.Tensor] | None = None,
        budget: Budget | None = None,
    ) -> None:
        """`target_ids` (D,) by the checkpoint's own reading of d2t; `vocabularies`: by every reading, by name."""
        self._logit_bytes = (budget or Budget()).logit_bytes
        self._norm: tuple[torch.Tensor, float] | None = None
        self._stored_head = head
        self._head = head.to(device)  # (V, Ht)
        # A draft token that leads nowhere (-1) must not equal an answer that is unknown (-1).
        self.target_ids = target_ids.masked_fill(target_ids < 0, -2).to(device)  # (D,) target token of each draft token
        others = (vocabularies or {}).items()
        self._vocabularies = {name: ids.masked_fill(ids < 0, -2).to(device) for name, ids in others}

    def of_other_rows(self) -> "Teacher":
        """The same teacher for rows whose final states may be normed or not, independently of these."""
        other = copy.copy(self)
        other._norm = None
        return other

    def tokens_of(self, graph: Graph | None) -> torch.Tensor:
        """Target token of each draft token (D,) under a reading's graph; None = the checkpoint's own."""
        return self.target_ids if graph is None or not self._vocabularies else self._vocabularies[graph.vocabulary]

    def sayable(self, graph: Graph | None) -> torch.Tensor:
        """Whether the drafter has each target token, (V,) bool, under a reading's graph."""
        ids = self.tokens_of(graph)
        sayable = torch.zeros(self._head.shape[0], dtype=torch.bool, device=ids.device)
        sayable[ids[ids >= 0]] = True
        return sayable

    def expect_pre_norm(self, norm: torch.Tensor, eps: float) -> None:
        """From now on final states come without the target's final norm (Ht,), which is applied first."""
        self._norm = (norm, eps)

    def answers(self, final: torch.Tensor) -> torch.Tensor:
        """The target's greedy token y_j after each position, from final states (T, Ht); (T,)."""
        head = self._head_for(final)
        return argmax_in_pieces(final, head, "target", self._logit_bytes, read=self._normed)

    def normed(self, final: torch.Tensor) -> torch.Tensor:
        """Final states (T, Ht) as lm_head reads them, on the device; made in pieces."""
        size = pieces_of(self._head_for(final), self._logit_bytes)
        return torch.cat([self._normed(piece) for piece in torch.split(final, size)])

    def _head_for(self, final: torch.Tensor) -> torch.Tensor:
        """The head (V, Ht) in the dtype of these states."""
        if self._head.dtype != final.dtype:
            self._head = self._stored_head.to(device=self._head.device, dtype=final.dtype)
        return self._head

    def _normed(self, final: torch.Tensor) -> torch.Tensor:
        """A piece (p, Ht) of final states, whose norm makes copies in float32."""
        final = final.to(self._head.device)
        return final if self._norm is None else rms_norm(final, self._norm[0].to(final), self._norm[1])

    def answers_in_vocab(self, final: torch.Tensor, answers: torch.Tensor, graph: Graph | None) -> torch.Tensor:
        """The target's choice among the tokens the drafter has, (T,), where its free choice is `answers` (T,).

        Only where that choice is another token does the head speak again.
        """
        sayable = self.sayable(graph)
        others = (~sayable[answers.to(sayable.device)]).nonzero()[:, 0]
        found = answers.to(sayable.device, copy=True)
        if len(others) and bool(sayable.any()):
            kept = sayable.nonzero()[:, 0]
            head = self._head_for(final)
            for at in torch.split(others, max(1, pieces_of(head, self._logit_bytes) // 2)):
                logits = linear(self._normed(final[at.to(final.device)]), head)[:, kept]
                found[at] = kept[logits.argmax(dim=-1)]
                let_go(final)
        return found


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
    last = len(row.tokens) - 1
    return JudgedRow(
        row=row,
        positions=positions,
        answers=answers.cpu(),
        wanted=aims(answers, positions, steps),
        counted=(positions < last) & row.loss_mask[(positions + 1).clamp(max=last)],
        inputs=prepared(drafter, teacher, row, positions),
    )


def prepared(drafter: Drafter, teacher: Teacher, row: Row, positions: torch.Tensor) -> RowInputs:
    """The drafter's inputs for draft positions (P,) of a row; with the normed final state where it reads that."""
    final = teacher.normed(row.final) if drafter.graph.input == "final_state" and row.final is not None else None
    return drafter.prepare(row.tokens, row.states, positions, final)


def aims(answers: torch.Tensor, positions: torch.Tensor, steps: int) -> torch.Tensor:
    """The answers (P, K) that drafts at positions (P,) aim at, y_{j+1+s}; -1 behind the row's end."""
    later = positions[:, None] + 1 + torch.arange(steps)
    last = len(answers) - 1
    return answers[later.clamp(max=last).to(answers.device)].masked_fill((later > last).to(answers.device), -1)


def measure(
    drafter: Drafter, teacher: Teacher, judged: JudgedRow, readings: Sequence[Reading], steps: int
) -> torch.Tensor:
    """Hits of each reading, (R, P, steps) bool on the CPU."""
    return (proposals(drafter, teacher, judged, readings, steps) == judged.wanted[:, :steps]).cpu()


def proposals(
    drafter: Drafter, teacher: Teacher, judged: JudgedRow, readings: Sequence[Reading], steps: int
) -> torch.Tensor:
    """Target tokens that each reading proposes, (R, P, steps) on the device."""
    drafted = drafter.draft(judged.inputs, readings, steps)
    maps = (teacher.tokens_of(reading.graph) for reading in readings)
    return torch.stack([tokens[own] for tokens, own in zip(maps, drafted, strict=True)])


def row_facts(index: int, judged: JudgedRow, teacher: Teacher, graph: Graph | None = None) -> RowFacts:
    """The record of a row that was read; the drafter's vocabulary is that of `graph` (None = the checkpoint's own)."""
    row, answers = judged.row, judged.answers
    sayable = teacher.sayable(graph)
    following = torch.zeros_like(row.loss_mask)
    following[:-1] = answers[:-1] == row.tokens[1:]
    return RowFacts(
        row=index,
        name=row.name,
        tokens=len(row.tokens),
        loss_mask=bitmap(row.loss_mask),
        teacher_in_draft_vocab=bitmap((sayable[answers.to(sayable.device)].cpu()) & (answers >= 0)),
        teacher_is_next_token=bitmap(following),
        prompt_tokens=row.prompt_tokens,
        source=row.source,
        tokens_sha256=tokens_sha256(row),
    )


def reading_hits(
    index: int, judged: JudgedRow, reading: Reading, hits: torch.Tensor, in_vocab: torch.Tensor | None
) -> ReadingHits:
    """The record of one reading's hits (P, K) on one row; `in_vocab`: against the choice among the drafter's tokens."""
    starts, stops = _runs(judged.positions)
    return ReadingHits(
        reading=reading.name,
        row=index,
        steps=hits.shape[1],
        starts=starts,
        stops=stops,
        hits=packed(hits),
        hits_in_vocab=None if in_vocab is None else packed(in_vocab),
    )


def packed(hits: torch.Tensor) -> str:
    """base64 of hits (P, K): one number a position, little-endian, bit s = step s; two bytes where K > 8."""
    steps = hits.shape[1]
    codes = (hits.to(torch.int64) << torch.arange(steps)).sum(dim=1)
    width = 1 if steps <= 8 else 2
    return base64.b64encode(b"".join(code.to_bytes(width, "little") for code in codes.tolist())).decode("ascii")


def unpacked(text: str, steps: int) -> torch.Tensor:
    """The hits (P, steps) of a text that `packed` made."""
    data, width = base64.b64decode(text), 1 if steps <= 8 else 2
    codes = [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]
    return (torch.tensor(codes, dtype=torch.int64)[:, None] >> torch.arange(steps)) & 1 == 1


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
