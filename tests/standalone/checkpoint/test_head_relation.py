"""Whether head and vocabulary map belong together, on the bundled drafters: heads that were trained from nothing."""

import pytest
import torch

from remote_payload.standalone.checkpoint.head_relation import head_relation
from remote_payload.standalone.checkpoint.load import load_checkpoint
from tests.standalone.checkpoint.writing import DEMO, Scene, demo_target, demo_tensors

THEIRS, TENSORS = demo_target("lm_head.weight"), demo_tensors()
HEAD, D = TENSORS["lm_head.weight"], 640
IDS = torch.arange(D) + TENSORS["d2t"]


def order(count, salt=0):
    return torch.randperm(count, generator=torch.Generator().manual_seed(salt))


def relation(head=HEAD, ids=IDS, marked=IDS):
    return head_relation(head, THEIRS, ids, marked)


def shifted(start):
    ids = IDS.clone()
    ids[start:] += 1
    return relation(ids=ids)


@pytest.mark.parametrize("name", ["drafter_std", "drafter_embed"])
def test_a_sound_map(name):
    found = load_checkpoint(DEMO / name, DEMO / "target").facts.vocabulary.head
    assert (found.sampled, found.related, found.elsewhere, found.shifts, found.row_shift) == (D, D, 0, (), None)
    assert found.correlation == pytest.approx(0.72, abs=0.01)
    assert found.t2d_related is None


@pytest.mark.parametrize(("start", "first"), [(0, 0), (50, 64), (320, 320)])
def test_a_map_that_is_off_by_one_from_somewhere_on(start, first):
    found = shifted(start)
    (run,) = found.shifts
    assert (run.first, run.last, run.ids, run.shift) == (first, D - 1, D - first, -1)
    assert run.correlation > 0.65
    assert run.as_mapped < 0.1
    assert (found.row_shift, found.t2d_related) == (None, D)
    assert found.related < 460


@pytest.mark.parametrize("by", [1, -1, 2])
def test_a_head_rolled_against_its_map(by):
    found = relation(HEAD.roll(by, 0))
    assert (found.row_shift, found.shifts) == (by, ())


@pytest.mark.parametrize("count", [20, 200])
def test_permuted_rows(count):
    head, some = HEAD.clone(), order(D)[:count]
    head[some] = HEAD[some[order(count, 1)]]
    moved = int((head != HEAD).any(dim=1).sum())
    found = relation(head)
    assert 0.6 * moved <= found.elsewhere <= moved
    assert D - moved <= found.related <= D - 0.6 * moved
    assert (found.shifts, found.row_shift) == ((), None)


def test_the_map_of_another_set_of_tokens_beside_the_right_t2d():
    found = relation(ids=order(1280, 3)[:D].sort().values)
    assert found.related < 0.1 * D
    assert abs(found.correlation) < 0.05
    assert (found.t2d_related, found.t2d_correlation) == (D, pytest.approx(0.72, abs=0.01))


@pytest.mark.parametrize(
    "head", [torch.randn(D, 96, generator=torch.Generator().manual_seed(0)), HEAD[order(D)], torch.zeros(D, 128)],
    ids=["random, of another width", "all permuted", "zeros"],
)  # fmt: skip
def test_heads_that_know_nothing_of_their_tokens(head):
    found = relation(head)
    assert (found.related, found.elsewhere, found.shifts, found.row_shift) == (0, 0, (), None)
    assert abs(found.correlation) < 0.01


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_size_does_not_matter(factor):
    assert relation(HEAD.float() * factor).related == D


def test_ids_that_lead_nowhere_and_too_few(tmp_path):
    ids = IDS.clone()
    ids[::4] = -1
    assert (relation(ids=ids).sampled, relation(ids=ids).related) == (480, 480)
    assert Scene(tmp_path).load().facts.vocabulary.head is None
