"""What captured states say about where they were captured: token purity, direction of the embedding, size, logit lens.

The embedding output is a pure function of the token id; no layer's output is, because attention mixes positions. The
last layer's output answers the next token through lm_head, with the final norm before it or after it was applied.
"""

import torch

from remote_payload.schema.standalone import SlotFacts
from remote_payload.standalone.mapped import let_go, picked
from remote_payload.standalone.rows.embedding_slots import SAME_DIRECTION
from remote_payload.standalone.rows.row import Row

TOKENS = 256
"""Tokens of a row that are looked at, spread evenly over it."""
BESIDE_TOKENS = 2048
"""Tokens in all whose states are held against the embeddings of the tokens beside them."""
ENOUGH_NUMBERS = 10**9
"""Numbers of states looked at in all: some seconds' work, and thousands of tokens even of many wide states."""
LENS_POSITIONS = 128
"""Response positions of a row that the logit lens is held against."""
LENS_OPERATIONS = 10**13
"""Floating-point operations the lens may cost in all: each position and slot is a product with the whole vocabulary."""
LENS_COPIES = 6
"""Float32 copies of the lens's states: as they are and normed, while they are made and joined."""
FEWEST_LENS, MOST_LENS = 32, 2048
"""Positions in all, whatever they cost."""
RMS_KEPT = 4096
"""Sizes kept a slot for the median."""
REMEMBERED = 4096
"""Different token ids whose first vector is remembered, as a checksum."""
PIECE_BYTES = 32 << 20
"""Logits and states are made in pieces of about this size."""


class SlotLook:
    """Looks at the captured states of rows, one row at a time; memory and time a row are bounded.

    `table` is the target's embedding (V, Ht), `head` its lm_head (V, Ht), `norm` its final norm (Ht,) with `eps`; None
    where unknown. The lens is computed in float32 where `head` is, all else on the CPU.
    """

    def __init__(
        self, table: torch.Tensor | None, head: torch.Tensor | None, norm: torch.Tensor | None, eps: float
    ) -> None:
        self._table, self._head, self._norm, self._eps = table, head, norm, eps
        self._slots: list[_Slot] = []
        self._looked = 0
        self._first: dict[int, list[int]] = {}  # token id -> checksums of its first state, slot by slot

    def add(self, row: Row) -> None:
        """Take one row in, until enough was seen; rows with another number of states than the first are left out."""
        if not self._slots:
            self._slots = [_Slot() for _ in range(row.states.shape[1])]
        if row.states.shape[1] != len(self._slots) or self._looked >= ENOUGH_NUMBERS:
            return
        step = max(1, len(row.tokens) // TOKENS)
        few = torch.arange(0, len(row.tokens), step)[:TOKENS]
        states, tokens = picked(row.states, few), row.tokens[few]  # (t, n, Ht), (t,)
        self._looked += states.numel()
        beside = [row.tokens[(few + shift).clamp(0, len(row.tokens) - 1)] for shift in (-1, 1)]
        for index, slot in enumerate(self._slots):
            self._look(slot, states[:, index].float(), tokens)
            self._look_beside(slot, states[:, index].float(), beside)
        sums = checksums(states)  # (t, n)
        self._note_equal(sums)
        self._note_constant(sums)
        self._note_repeats(sums, tokens)
        self._note_lens(row)
        let_go(row.states)
        if self._table is not None:
            let_go(self._table)

    def facts(self) -> tuple[SlotFacts, ...]:
        """One record a slot; empty where no row was added."""
        known = self._table is not None
        return tuple(
            SlotFacts(
                slot=index,
                tokens=slot.tokens,
                rms=float(torch.cat(slot.rms).median()) if slot.rms else 0.0,
                embedding_share=slot.embedding / slot.tokens if known and slot.tokens else None,
                embedding_share_beside=tuple(hits / slot.beside_tokens for hits in slot.beside)
                if slot.beside_tokens
                else (),
                repeats=slot.repeats,
                repeats_equal=slot.repeats_equal,
                lens_positions=slot.lens,
                lens_normed_hits=slot.normed_hits,
                lens_raw_hits=slot.raw_hits,
                equals_slot=next((other for other in range(index) if other in slot.equals), None),
                constant=slot.constant if slot.tokens > 1 else None,
            )
            for index, slot in enumerate(self._slots)
        )

    def _look(self, slot: "_Slot", states: torch.Tensor, tokens: torch.Tensor) -> None:
        """Size and direction of one slot's states (t, Ht)."""
        slot.tokens += len(tokens)
        if slot.kept < RMS_KEPT:
            slot.rms.append(states.square().mean(dim=1).sqrt())
            slot.kept += len(tokens)
        if self._table is not None:
            cosine = torch.nn.functional.cosine_similarity(states, self._table[tokens].float(), dim=1)
            slot.embedding += int((cosine > SAME_DIRECTION).sum())

    def _look_beside(self, slot: "_Slot", states: torch.Tensor, beside: list[torch.Tensor]) -> None:
        """Whether states (t, Ht) point along the embedding of the token before or after theirs."""
        if self._table is None or slot.beside_tokens >= BESIDE_TOKENS:
            return
        slot.beside_tokens += len(states)
        for place, tokens in enumerate(beside):
            cosine = torch.nn.functional.cosine_similarity(states, self._table[tokens].float(), dim=1)
            slot.beside[place] += int((cosine > SAME_DIRECTION).sum())

    def _note_equal(self, sums: torch.Tensor) -> None:
        """Which earlier slots hold the very numbers of a slot, in every row so far."""
        for index, slot in enumerate(self._slots):
            before = range(index) if slot.fresh else slot.equals
            slot.equals = {other for other in before if torch.equal(sums[:, other], sums[:, index])}
            slot.fresh = False

    def _note_constant(self, sums: torch.Tensor) -> None:
        """Whether a slot has had one vector only, over all rows so far."""
        for slot, own in zip(self._slots, sums.T.unbind(), strict=True):
            slot.vector = int(own[0]) if slot.vector is None else slot.vector
            slot.constant &= bool((own == slot.vector).all())

    def _note_repeats(self, sums: torch.Tensor, tokens: torch.Tensor) -> None:
        """Whether tokens that occurred before have the very numbers they had before."""
        for own, token in zip(sums.tolist(), tokens.tolist(), strict=True):
            known = self._first.get(token)
            if known is None:
                if len(self._first) < REMEMBERED:
                    self._first[token] = own
                continue
            for slot, before, now in zip(self._slots, known, own, strict=True):
                slot.repeats += 1
                slot.repeats_equal += before == now

    def _note_lens(self, row: Row) -> None:
        """Hold lm_head of each slot, with and without the norm, against the next token of the response."""
        head, done = self._head, self._slots[0].lens
        both = row.loss_mask[:-1] & row.loss_mask[1:]
        at = both.nonzero()[:, 0]
        few = min(LENS_POSITIONS, 0 if head is None else self._lens_total(head) - done)
        if head is None or few <= 0 or len(at) == 0:
            return
        at = at[:: max(1, len(at) // few)][:few]
        wanted, states = row.tokens[at + 1], picked(row.states, at).float()  # (p,), (p, n, Ht)
        variants = [states] if self._norm is None else [states, self._normed(states)]
        choices = best_tokens(torch.stack(variants).flatten(0, 2), head)  # (variants * p * n,)
        hits = (choices.view(len(variants), len(at), -1) == wanted[:, None]).sum(dim=1).tolist()
        for index, slot in enumerate(self._slots):
            slot.lens += len(at)
            slot.raw_hits += hits[0][index]
            slot.normed_hits += hits[1][index] if len(variants) > 1 else 0

    def _lens_total(self, head: torch.Tensor) -> int:
        """How many positions the budget allows for so many slots, so wide a vocabulary."""
        one = 4 * len(self._slots) * head.numel()  # multiply and add, with and without the norm
        return max(FEWEST_LENS, min(MOST_LENS, LENS_OPERATIONS // one))

    def _normed(self, states: torch.Tensor) -> torch.Tensor:
        assert self._norm is not None
        scale = torch.rsqrt(states.square().mean(dim=-1, keepdim=True) + self._eps)
        return states * scale * self._norm.float()


def look_bytes(captured: int, width: int, vocabulary: int, number_bytes: int) -> int:
    """What a look at a row holds at most beside the row: its sampled states, the lens's states, pieces of the head."""
    lens = min(LENS_POSITIONS, max(FEWEST_LENS, LENS_OPERATIONS // (4 * captured * vocabulary * width)))
    return captured * width * (TOKENS * number_bytes + LENS_COPIES * lens * 4) + 2 * PIECE_BYTES


def checksums(states: torch.Tensor) -> torch.Tensor:
    """A number for each vector of states (t, n, Ht) that tells different ones apart, bit by bit; (t, n) int64.

    The bits of each entry, as a whole number, times a fixed random one, summed modulo 2**64.
    """
    generator = torch.Generator().manual_seed(0)
    factors = torch.randint(-(2**62), 2**62, (states.shape[2],), generator=generator)
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[states.element_size()]
    slots = (states[:, slot].contiguous().view(bits).to(torch.int64) for slot in range(states.shape[1]))
    return torch.stack([(slot * factors).sum(dim=1) for slot in slots], dim=1)


def best_tokens(states: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
    """The token lm_head (V, Ht) chooses for each of states (p, Ht), the vocabulary taken piece by piece; (p,) int64."""
    states = states.to(head.device)
    best = torch.full((len(states),), -torch.inf, device=head.device)
    choice = torch.full((len(states),), -1, dtype=torch.int64, device=head.device)
    rows = max(1, PIECE_BYTES // (4 * max(head.shape[1], len(states))))
    for start in range(0, len(head), rows):
        top, where = (states @ head[start : start + rows].float().T).max(dim=1)
        better = top > best
        best, choice = torch.where(better, top, best), torch.where(better, where + start, choice)
    return choice.cpu()


class _Slot:
    """What is counted of one slot."""

    def __init__(self) -> None:
        self.tokens = self.embedding = self.repeats = self.repeats_equal = 0
        self.beside, self.beside_tokens = [0, 0], 0
        self.lens = self.normed_hits = self.raw_hits = self.kept = 0
        self.rms: list[torch.Tensor] = []
        self.equals: set[int] = set()
        self.vector: int | None = None
        self.constant = True
        self.fresh = True
