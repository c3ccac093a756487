"""The map that lm_head's own rows tell where d2t leads elsewhere, on the bundled drafters' heads."""

import torch

from remote_payload.standalone.checkpoint.head_relation import head_relation
from remote_payload.standalone.checkpoint.load import load_checkpoint
from remote_payload.standalone.checkpoint.mended_map import mended_map
from tests.standalone.checkpoint.test_head_relation import DEMO, HEAD, IDS, THEIRS

VOCAB = len(THEIRS)


def mended(ids, head=HEAD, marked=None):
    return mended_map(ids, marked, head_relation(head, THEIRS, ids, marked), VOCAB)


def test_a_sound_map_needs_none():
    assert mended(IDS) is None
    assert mended(IDS, marked=IDS) is None
    assert set(load_checkpoint(DEMO / "drafter_std", DEMO / "target").vocabularies) == {"offset", "identity"}


def test_a_map_that_is_off_by_a_constant_is_shifted_back():
    assert torch.equal(mended(IDS + 1), IDS)
    assert torch.equal(mended(IDS + 1, marked=IDS), IDS)  # t2d says the same


def test_what_t2d_marks_is_the_map_where_the_head_says_so():
    other = torch.randperm(VOCAB, generator=torch.Generator().manual_seed(1))[: len(IDS)].sort().values
    assert torch.equal(mended(other, marked=IDS), IDS)
    assert mended(other, marked=other) is None  # neither is the head's


def test_a_head_that_is_rolled_is_mapped_back():
    found = mended(IDS, head=HEAD.roll(1, 0))
    assert torch.equal(found[1:], IDS[:-1])  # row i + 1 belongs to the token of draft id i


def test_a_head_of_another_vocabulary_tells_none():
    assert mended(IDS, head=torch.randn(HEAD.shape, generator=torch.Generator().manual_seed(2))) is None
    assert mended_map(IDS, None, None, VOCAB) is None


def test_a_shift_whose_ends_are_not_known_is_no_map():
    """From somewhere between two places that were looked at: two ids would lead to one token."""
    part = IDS.clone()
    part[50:] += 1
    found = mended(part)
    assert found is None or len(torch.unique(found)) == len(IDS)
