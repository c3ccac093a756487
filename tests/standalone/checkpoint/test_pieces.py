"""Large tensors a piece at a time."""

import pytest
import torch

from remote_payload.standalone.checkpoint import pieces


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int64])
def test_no_number_is_overlooked(monkeypatch, dtype):
    monkeypatch.setattr(pieces, "NUMBERS", 7)
    tensor = torch.arange(50).to(dtype).reshape(5, 10)
    assert pieces.count_not_finite(tensor) == 0
    assert pieces.count_not_finite(tensor[:0]) == 0
    if dtype.is_floating_point:
        tensor[0, 6], tensor[0, 7], tensor[4, 9] = float("nan"), float("inf"), float("-inf")
        assert pieces.count_not_finite(tensor) == 3


def test_pieces_are_views_in_order():
    tensor = torch.arange(10)
    found = list(pieces.pieces(tensor, 4))
    assert [len(piece) for piece in found] == [4, 4, 2]
    assert torch.equal(torch.cat(found), tensor)
    assert found[1].data_ptr() == tensor[4:].data_ptr()
