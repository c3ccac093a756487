"""How many wirings are tried among many captured states, and that the teacher's pieces change no answer."""

from itertools import pairwise

import torch

from remote_payload.standalone.measure import wirings
from remote_payload.standalone.measure.acceptance import Teacher
from remote_payload.standalone.model.budget import Budget
from remote_payload.standalone.model.norm import rms_norm

BEST = [(3, 7, 11), (2, 7, 11)]


def test_starts_are_thinned_evenly_and_likely_ones_stay():
    starts = wirings.starts(62, 3, None, (2, 30, 58))
    few = wirings.thinned(starts, 40)
    assert len(few) == len(set(few)) == 40
    assert few[:10] == starts[:10]
    assert max(starts.index(after) - starts.index(before) for before, after in pairwise(few)) <= 4
    assert wirings.thinned(starts, len(starts)) == starts


def test_rivals_are_all_of_each_or_of_the_first_or_spread():
    every, whole = wirings.rivals(BEST, 1, 20, 100)
    assert whole
    assert set(every) | set(BEST) == {c for best in BEST for c in wirings.replaced(best, 1, 20)}
    firsts, whole = wirings.rivals(BEST, 1, 20, 20)
    assert whole
    assert set(firsts) | {BEST[0]} == set(wirings.replaced(BEST[0], 1, 20))
    spread, whole = wirings.rivals(BEST, 1, 20, 6)
    assert not whole
    assert len(set(spread)) == 6
    assert set(spread) < set(firsts)
    assert max(at[1] for at in spread) - min(at[1] for at in spread) > 12
    assert wirings.rivals(BEST, None, 20, 0) == ([], False)
    neighbours, _ = wirings.rivals(BEST[:1], None, 20, 100)
    assert (4, 8, 12) in neighbours


def test_the_teachers_answers_do_not_depend_on_the_pieces():
    generator = torch.Generator().manual_seed(3)
    head, norm = torch.randn(50, 24, generator=generator), 1 + torch.rand(24, generator=generator)
    final, ids = torch.randn(300, 24, generator=generator), torch.arange(0, 50, 3)
    plain = rms_norm(final, norm, 1e-5)
    wanted = (plain @ head.T).argmax(dim=-1)
    among = ids[(plain @ head.T)[:, ids].argmax(dim=-1)]
    for size in (1, 5000, 1 << 26):
        teacher = Teacher(head, ids, torch.device("cpu"), budget=Budget(logit_bytes=size))
        teacher.expect_pre_norm(norm, 1e-5)
        answers = teacher.answers(final)
        assert torch.equal(answers, wanted)
        assert torch.allclose(teacher.normed(final), plain)
        assert torch.equal(teacher.answers_in_vocab(final, answers, None), among)
