"""Memory-mapped tensors: told from others, and let go of without a number changing."""

import sys
from pathlib import Path

import pytest
import torch

from remote_payload.standalone.machine import peak_memory_bytes
from remote_payload.standalone.mapped import is_mapped, let_go, picked
from remote_payload.standalone.rows.load import load_dict
from remote_payload.standalone.rows.values import RowError, check_numbers

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what is mapped")
MIB = 1 << 20
SIZE = (64, 64, 8192)  # 64 MiB in bfloat16


def held_bytes():
    """Pages of files that this process holds."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssFile"))


@pytest.fixture
def mapped(tmp_path):
    torch.save({"states": torch.ones(SIZE, dtype=torch.bfloat16)}, tmp_path / "row.ckpt")
    return load_dict(tmp_path / "row.ckpt")["states"]


def test_what_lies_in_a_file_is_told_from_what_does_not(mapped):
    assert is_mapped(mapped)
    assert is_mapped(mapped[3:, 5])
    assert not is_mapped(torch.ones(3))
    assert not is_mapped(mapped[:0])
    assert not is_mapped(torch.empty(3, device="meta"))


def test_pages_are_let_go_of_and_read_again(mapped):
    assert float(mapped.float().sum()) == mapped.numel()
    before = held_bytes()
    let_go(mapped[:, 7])  # from its first number to its last, and so what lies between
    assert before - held_bytes() > 60 * MIB
    assert float(mapped.float().sum()) == mapped.numel()


def test_rows_picked_all_over_a_file_do_not_hold_the_file(mapped):
    at = torch.arange(0, SIZE[0], 2)
    let_go(mapped)
    before = held_bytes()
    assert torch.equal(picked(mapped, at), torch.ones(len(at), *SIZE[1:], dtype=torch.bfloat16))
    assert held_bytes() - before < 24 * MIB
    assert torch.equal(picked(torch.arange(9), at[:3]), torch.tensor([0, 2, 4]))


def test_other_memory_keeps_its_numbers():
    own = torch.ones(SIZE, dtype=torch.bfloat16)
    let_go(own)
    let_go(own[:, 3])
    assert float(own.float().sum()) == own.numel()


def test_a_check_of_a_long_row_holds_a_piece_of_it_at_most(tmp_path):
    long = torch.ones(4 * SIZE[0], *SIZE[1:], dtype=torch.bfloat16)
    long[-1, -1, -1] = torch.nan
    torch.save({"states": long}, tmp_path / "row.ckpt")
    del long
    states, before = load_dict(tmp_path / "row.ckpt")["states"], held_bytes()
    check_numbers(states[:-1], "states")
    assert held_bytes() - before < 40 * MIB
    with pytest.raises(RowError, match="NaN"):
        check_numbers(states, "states")


def test_the_peak_is_this_programs_own():
    before = peak_memory_bytes()
    assert before > 50 * MIB
    held = torch.ones(peak_memory_bytes() // 4 + 32 * MIB)
    assert peak_memory_bytes() > before + 30 * MIB
    assert held.numel()
