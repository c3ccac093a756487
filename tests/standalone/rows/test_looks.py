"""What rows say about themselves: slots, the teacher, oddities of the data; each on rows made to be odd in one way."""

import hashlib
import struct
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remote_payload.schema.standalone import SkippedRow
from remote_payload.standalone.rows import slots as slots_module
from remote_payload.standalone.rows.lint import Lint, tokens_sha256
from remote_payload.standalone.rows.masks import MaskSigns
from remote_payload.standalone.rows.row import Row
from remote_payload.standalone.rows.slots import SlotLook, best_tokens, checksums
from remote_payload.standalone.rows.teacher_look import TeacherLook
from tests.standalone.rows.reading import HIDDEN, TINY
from tests.support.tiny import target_tensors

TARGET = target_tensors(TINY)
TABLE, NORM, HEAD = (TARGET[name] for name in ("model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"))
EPS = 1e-6


def normed(states, weight=NORM):
    return states * torch.rsqrt(states.square().mean(-1, keepdim=True) + EPS) * weight


def greedy(tokens=60, prompt=10, salt=0):
    """A row whose final states say just the tokens that follow, before the norm, and after it."""
    generator = torch.Generator().manual_seed(salt)
    final = torch.randn(tokens, HIDDEN, generator=generator) * 4
    said = (normed(final) @ HEAD.T).argmax(-1)
    ids = torch.cat((torch.tensor([salt % 40]), said[:-1]))
    mask = torch.arange(tokens) >= prompt
    states = torch.stack((TABLE[ids], torch.randn(tokens, HIDDEN, generator=generator), final, TABLE[ids]), 1)
    row = Row(
        name=f"data_{salt}.ckpt", tokens=ids, loss_mask=mask, states=states, final=normed(final),
        prompt_tokens=prompt, source=None,
    )  # fmt: skip
    return row, said


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_slots_are_told_apart(dtype):
    look = SlotLook(TABLE, HEAD, NORM, EPS)
    for salt in range(3):
        row, _ = greedy(salt=salt)
        look.add(replace(row, states=row.states.to(dtype)))
    embed, noise, final, again = look.facts()
    assert (embed.embedding_share, embed.repeats_equal, embed.equals_slot) == (1.0, embed.repeats, None)
    assert embed.repeats > 100
    assert (again.equals_slot, again.embedding_share) == (0, 1.0)
    assert noise.embedding_share == noise.repeats_equal == 0
    assert noise.rms == pytest.approx(1, abs=0.1)
    assert final.rms == pytest.approx(4, abs=0.4)
    assert final.lens_positions == 3 * 49
    assert final.lens_normed_hits >= 0.98 * final.lens_positions
    assert final.lens_raw_hits < final.lens_normed_hits
    assert noise.lens_normed_hits < 0.2 * noise.lens_positions


def test_a_slot_with_one_vector_for_all_tokens_is_told_over_all_rows():
    look = SlotLook(TABLE, HEAD, NORM, EPS)
    for salt in range(2):
        row, _ = greedy(salt=salt)
        states = row.states.clone()
        states[:, 0], states[:, 1], states[:, 2] = 0, 0.5, salt  # the last one differs from row to row
        look.add(replace(row, states=states))
    assert [(slot.constant, slot.rms) for slot in look.facts()[:2]] == [(True, 0), (True, 0.5)]
    assert [slot.constant for slot in look.facts()[2:]] == [False, False]


def test_purity_needs_no_table_and_a_post_norm_final_state_shows_without_the_norm():
    row, _ = greedy()
    states = torch.stack((row.states[:, 0], row.final), 1)
    look = SlotLook(None, HEAD, None, EPS)
    look.add(replace(row, states=states))
    embed, final = look.facts()
    assert embed.embedding_share is None
    assert embed.repeats == embed.repeats_equal > 10
    assert final.lens_raw_hits == final.lens_positions
    assert final.lens_normed_hits == 0


def test_a_slot_that_differs_in_one_row_is_no_copy():
    look = SlotLook(None, None, None, EPS)
    for salt in range(2):
        row, _ = greedy(salt=salt)
        if salt == 1:
            row.states[3, 3, 0] += 1
        look.add(row)
    assert look.facts()[3].equals_slot is None
    assert look.facts()[3].lens_positions == 0


def test_the_look_is_bounded(monkeypatch):
    monkeypatch.setattr(slots_module, "LENS_OPERATIONS", 1)
    look = SlotLook(TABLE, HEAD, NORM, EPS)
    for salt in range(4):
        look.add(greedy(tokens=900, salt=salt)[0])
    facts = look.facts()[0]
    assert facts.lens_positions == slots_module.FEWEST_LENS
    assert facts.tokens == 4 * slots_module.TOKENS
    assert SlotLook(None, None, None, EPS).facts() == ()
    monkeypatch.setattr(slots_module, "ENOUGH_NUMBERS", 1)
    look.add(greedy()[0])
    assert look.facts()[0] == facts


@settings(max_examples=30, deadline=None)
@given(count=st.integers(1, 9), vocab=st.integers(1, 50), piece=st.sampled_from([1, 64, 4000]), seed=st.integers(0, 9))
def test_choices_in_pieces_are_the_choices(count, vocab, piece, seed):
    generator = torch.Generator().manual_seed(seed)
    head, states = (torch.randn(size, 5, generator=generator).round() for size in (vocab, count))  # with ties
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slots_module, "PIECE_BYTES", piece)
        found = best_tokens(states, head)
    logits = states @ head.T
    assert torch.equal(logits.gather(1, found[:, None])[:, 0], logits.max(1).values)


def test_checksums_tell_bits_apart():
    states = torch.zeros(4, 2, 8, dtype=torch.bfloat16)
    states[1, 0, 7] = 2**-130
    states[2, 1, 0], states[3, 1, 1] = 1, 1
    sums = checksums(states)
    assert len(set(sums[:, 1].tolist())) == 3
    assert sums[0, 0] == sums[2, 0] == sums[3, 0] != sums[1, 0]


def test_a_greedy_row_agrees_and_a_shift_shows():
    row, said = greedy()
    look = TeacherLook(NORM)
    look.add(row, said)
    facts = look.facts()
    assert facts.positions == facts.agrees == 49
    assert facts.rows_agreeing == (1.0,)
    assert facts.norm_rms == pytest.approx(1, abs=1e-3)
    assert max(facts.shifted_agrees) < 15

    early, late = TeacherLook(NORM), TeacherLook(NORM)
    early.add(row, said.roll(1))  # states one token too late in the file
    late.add(row, said.roll(-1))
    assert early.facts().shifted_agrees[0] == 49
    assert late.facts().shifted_agrees[1] == 48
    assert max(early.facts().agrees, late.facts().agrees) < 15


def test_unknown_choices_do_not_count_and_a_raw_state_has_its_own_size():
    row, said = greedy()
    look = TeacherLook(NORM)
    said[20:30] = -1
    look.add(replace(row, final=row.states[:, 2]), said)
    assert look.facts().positions == look.facts().agrees == 39
    assert look.facts().norm_rms == pytest.approx(4, abs=0.5)
    empty = TeacherLook(None)
    empty.add(replace(row, final=None), torch.full((60,), -1))
    assert (empty.facts().positions, empty.facts().norm_rms, empty.facts().rows_agreeing) == (0, None, ())


def test_gemmas_norm_is_one_plus_its_weight():
    row, said = greedy()
    look = TeacherLook(NORM - 1)
    look.add(row, said)
    assert look.facts().norm_rms == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("weight", [0.0, 1e-30, -1.0])
def test_a_norm_that_nothing_can_be_divided_by(weight):
    row, said = greedy()
    look = TeacherLook(torch.full_like(NORM, weight))
    look.add(row, said)
    plain = float(row.final[:: max(1, len(row.final) // 64)].square().mean(dim=1).sqrt().median())
    assert look.facts().norm_rms == (pytest.approx(plain, rel=1e-3) if weight < 0 else None)


def lint_row(ids, mask, name="a"):
    return Row(
        name=name, tokens=torch.tensor(ids), loss_mask=torch.tensor(mask, dtype=torch.bool),
        states=torch.zeros(len(ids), 1, 1), final=None, prompt_tokens=0, source=None,
    )  # fmt: skip


def test_lint_counts_what_it_is_given():
    lint = Lint()
    lint.add(lint_row([1, 2, 9, 5, 6, 7, 3], [0, 0, 0, 1, 1, 1, 0]))
    lint.add(lint_row([8, 2, 9, 5, 5, 7, 3, 9, 4], [0, 0, 0, 1, 1, 1, 0, 0, 1]))
    lint.add(lint_row([8, 2, 9, 5, 5, 7, 3, 9, 4], [0, 0, 0, 1, 1, 1, 0, 0, 0], "again"))
    skipped = [
        SkippedRow(name=name, reason=reason)
        for name, reason in (
            ("b", "there is NaN or infinity in its captured states"),
            ("c", "lengths differ: 3 tokens, 2 of loss mask, 3 captured, 3 final states"),
            ("d", "it has 2 tokens"),
        )
    ]
    facts = lint.facts(skipped)
    assert (facts.with_nan, facts.lengths_differ, facts.duplicates) == (1, 1, 1)
    assert (facts.longest, facts.at_longest, facts.cut_at_longest) == (9, 2, 1)
    assert facts.distinct_response_tokens == len({5, 6, 7, 4})
    assert facts.also_in_train is facts.prompts_in_train is None
    edges = {edge.place: (edge.responses, edge.most_common, edge.token) for edge in facts.edges}
    assert edges == {
        "two_before": (4, 3, 2),
        "before": (4, 4, 9),
        "first": (4, 3, 5),
        "second": (3, 2, 5),
        "last": (3, 3, 7),
        "after": (3, 3, 3),
    }


def test_lint_counts_masks():
    lint = Lint()
    row = lint_row([1, 2, 3, 4], [0, 0, 1, 1])
    for change in ({}, {"loss_mask": ~row.loss_mask}, {"mask_signs": MaskSigns(contradicts="inverse")},
                   {"mask_signs": MaskSigns(contradicts="other", odd_values=True)},
                   {"mask_signs": MaskSigns(stored=False), "loss_mask": row.loss_mask | True}):  # fmt: skip
        lint.add(replace(row, **change))
    facts = lint.facts()
    assert (facts.mask_at_first_token, facts.unmarked_at_last_token, facts.without_mask) == (2, 1, 1)
    assert (facts.masks_contradict, facts.masks_inverse, facts.odd_mask_values) == (2, 1, 1)
    assert [warning[:36] for warning in lint.warnings()] == [
        "1 of 5 rows hold no loss mask; all t",
        "the loss mask of 2 of 5 rows differs",
        "the loss mask of 1 of 5 rows holds n",
    ]


def test_held_out_rows_that_were_trained_on():
    train, heldout = Lint(), Lint(None)
    for lint in (train, heldout):
        lint.add(lint_row([1, 2, 3, 4], [0, 0, 1, 1]))
    heldout = Lint(train)
    heldout.add(lint_row([1, 2, 3, 4], [0, 0, 1, 1]))
    heldout.add(lint_row([1, 2, 9, 9], [0, 0, 1, 1]))
    heldout.add(lint_row([1, 2, 9, 9], [1, 1, 1, 1]))
    facts = heldout.facts()
    assert (facts.also_in_train, facts.prompts_in_train, facts.duplicates) == (1, 2, 1)


def test_the_hash_of_a_row_is_of_its_little_endian_ids():
    row = lint_row([1, 163839, 0], [0, 0, 1])
    assert tokens_sha256(row) == hashlib.sha256(struct.pack("<3q", 1, 163839, 0)).hexdigest()
    assert tokens_sha256(replace(row, tokens=row.tokens.flip(0))) != tokens_sha256(row)
