"""speculators' rows: states in hs_i.safetensors, masks in a prepared dataset that lies in, beside or above them."""

import json
import shutil

import pytest
import torch
from safetensors.torch import save_file

from remote_payload.failure import JobFailure
from remote_payload.standalone.rows.files import find_rows
from remote_payload.standalone.rows.row import Row
from tests.standalone.rows.reading import HIDDEN, TINY, read, reasons
from tests.support.golden_rows import GOLDEN, MASKS, ROWS


def states(row, slots=5):
    return TINY.draw(len(ROWS[row]), slots, HIDDEN, salt=row)


def write(folder, order=(0, 1, 2, 3, 4), **changed):
    """`prepared/` and `hidden_states/`; hs_i holds row order[i]."""
    shutil.copytree(GOLDEN / "prepared", folder / "prepared")
    (folder / "hidden_states").mkdir()
    for number, row in enumerate(order):
        tensors = {"token_ids": torch.tensor(ROWS[row]), "hidden_states": states(row)} | changed
        save_file(tensors, folder / "hidden_states" / f"hs_{number}.safetensors")
    return folder


@pytest.mark.parametrize("given_folder", [".", "hidden_states", "prepared"])
def test_any_of_the_folders_may_be_given(tmp_path, given_folder):
    write(tmp_path)
    rows = read(tmp_path / given_folder)
    assert [row.tokens.tolist() for row in rows] == ROWS
    assert [row.loss_mask.int().tolist() for row in rows] == MASKS
    for number, row in enumerate(rows):
        assert row.name.endswith(f"hs_{number}.safetensors")
        assert torch.equal(row.states, states(number)[:, :-1])
        assert torch.equal(row.final, states(number)[:, -1])
        assert row.dialect.name == "speculators"
    assert find_rows(tmp_path, None, None).layout == "speculators (hs_i.safetensors) + prepared dataset"


def test_arrow_files_right_above_the_states(tmp_path):
    write(tmp_path)
    for path in (tmp_path / "prepared").iterdir():
        path.rename(tmp_path / path.name)
    assert len(read(tmp_path)) == len(read(tmp_path / "hidden_states")) == 5


def test_rows_in_another_order_are_matched_by_their_tokens(tmp_path):
    order = (3, 0, 4, 1, 2)
    rows = read(write(tmp_path, order))
    assert [row.loss_mask.int().tolist() for row in rows] == [MASKS[row] for row in order]


def test_tokens_that_no_line_has(tmp_path):
    write(tmp_path)
    path = tmp_path / "hidden_states" / "hs_1.safetensors"
    save_file({"token_ids": torch.arange(10), "hidden_states": states(1)}, path)
    rows = read(tmp_path)
    assert [isinstance(row, Row) for row in rows] == [True, False, True, True, True]
    assert rows[1].reason == "no row of the prepared dataset has its tokens"


def test_a_merged_jsonl_serves_as_well(tmp_path):
    write(tmp_path)
    shutil.rmtree(tmp_path / "prepared")
    (tmp_path / "other.arrow").write_bytes(b"another program's")
    with pytest.raises(JobFailure, match="hold no loss mask: the prepared dataset") as caught:
        read(tmp_path)
    assert caught.value.failure.kind == "rows"
    merged = tmp_path / "m.jsonl"
    lines = [{"input_ids": ROWS[row], "loss_mask": MASKS[row], "source": f"row {row}"} for row in (4, 3, 2, 1, 0)]
    merged.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    rows = read(tmp_path, merged)
    assert [row.source for row in rows] == [f"row {row}" for row in range(5)]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"hidden_states": torch.zeros(9, HIDDEN)}, "captured ones and the final one last, found: 1"),
        ({"hidden_states": torch.zeros(9, 5, 24)}, "must be 16 wide (the drafter's target), found: 24"),
        ({"hidden_states": torch.zeros(8, 5, HIDDEN)}, "lengths differ: 9 tokens, 9 of loss mask, 8 captured"),
        ({"hidden_states": torch.full((9, 5, HIDDEN), float("nan"))}, "NaN or infinity in its captured states"),
        ({"token_ids": torch.zeros(9)}, "no row of the prepared dataset"),
    ],
)
def test_what_is_refused(tmp_path, changed, says):
    assert says in reasons(write(tmp_path, (0,), **changed))[0]


def test_damaged_files(tmp_path):
    write(tmp_path, (0, 1, 2))
    folder = tmp_path / "hidden_states"
    (folder / "hs_0.safetensors").write_bytes(b"\0" * 20)
    (folder / "hs_1.safetensors").write_bytes((folder / "hs_2.safetensors").read_bytes()[:-9])
    save_file({"token_ids": torch.tensor(ROWS[2])}, folder / "hs_2.safetensors")
    first, second, third = reasons(tmp_path)
    assert "not a whole safetensors file" in first
    assert "not a whole safetensors file" in second
    assert third == "it lacks `hidden_states`; it holds: token_ids"


def test_the_fewer_files_of_another_layout_are_skipped_by_name(tmp_path):
    write(tmp_path)
    torch.save({"input_ids": torch.tensor(ROWS[0])}, tmp_path / "data_7.pt")
    rows = read(tmp_path)
    assert len(rows) == 6
    (odd,) = [row for row in rows if not isinstance(row, Row)]
    assert (odd.name, odd.reason) == (
        "data_7.pt",
        "it is of another layout than most rows, which are hs_i.safetensors",
    )
