import base64
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.compare.chains import segments, unpack_hits, unpack_row
from orchestrator.errors import InvalidRunError
from tests.support.made_results import leading, made_hits, made_row

MASK = [0, 0, 1, 1, 1, 0, 0, 0, 1, 1]


def test_bitmaps_come_back_as_they_were_written() -> None:
    row = unpack_row(made_row(0, MASK, in_vocab=[1, 0] * 5, greedy=[0] * 9 + [1]))
    assert row.loss_mask.tolist() == [bool(bit) for bit in MASK]
    assert row.in_vocab.tolist() == [True, False] * 5
    assert np.flatnonzero(row.greedy).tolist() == [9]


@pytest.mark.parametrize("steps", [1, 3, 8, 9, 16])
def test_hits_come_back_and_end_with_the_row(steps: int) -> None:
    row = unpack_row(made_row(0, MASK))
    chains = unpack_hits(made_hits("r", 0, MASK, steps, lambda j, s: (j + s) % 2 == 0), row)
    assert chains.hits.shape == (len(chains.positions), steps)
    for index, j in enumerate(chains.positions.tolist()):
        expected = [(j + s) % 2 == 0 and j + 1 + s < len(MASK) for s in range(steps)]
        assert chains.hits[index].tolist() == expected


def test_segments_are_half_open_runs() -> None:
    assert segments(unpack_row(made_row(0, MASK)).loss_mask) == [(2, 5), (8, 10)]
    assert segments(np.zeros(4, dtype=bool)) == []
    assert segments(np.ones(3, dtype=bool)) == [(0, 3)]


def test_what_does_not_fit_is_refused_with_the_row_named() -> None:
    facts = made_row(0, MASK, name="data_7.ckpt")
    row = unpack_row(facts)
    hits = made_hits("r", 0, MASK, 3, leading({}))
    with pytest.raises(InvalidRunError, match=r"data_7\.ckpt.*found bytes: 1"):
        unpack_row(replace(facts, loss_mask=base64.b64encode(b"x").decode()))
    with pytest.raises(InvalidRunError, match="expected base64"):
        unpack_row(replace(facts, loss_mask="*"))
    with pytest.raises(InvalidRunError, match=r"expected \d+ bytes"):
        unpack_hits(replace(hits, hits=""), row)
    with pytest.raises(InvalidRunError, match="ascending runs"):
        unpack_hits(replace(hits, starts=(5, 0), stops=(10, 2)), row)
    with pytest.raises(InvalidRunError, match="within 10 tokens"):
        unpack_hits(replace(hits, starts=(0,), stops=(11,)), row)
