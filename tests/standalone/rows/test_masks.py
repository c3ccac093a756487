"""Loss masks that are lacking, odd, or contradict the merged JSONL's."""

import json

import pytest
import torch

from remote_payload.standalone.rows.masks import MaskSigns
from tests.standalone.rows.reading import TINY, read
from tests.standalone.running import run_job
from tests.support.tiny import row_tensors, write_row


def write_merged(folder, masks):
    rows = [row_tensors(TINY, 20, 6, salt) for salt in range(len(masks))]
    lines = [{"input_ids": row["input_ids"].tolist()} | ({} if mask is None else {"loss_mask": mask})
             for row, mask in zip(rows, masks, strict=True)]  # fmt: skip
    path = folder / "merged.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


PLAIN = [0] * 6 + [1] * 14
CASES = {
    "same": (PLAIN, PLAIN, MaskSigns(), PLAIN),
    "other": (PLAIN, [0] * 7 + [1] * 13, MaskSigns(contradicts="other"), [0] * 7 + [1] * 13),
    "inverse": ([1] * 6 + [0] * 14, PLAIN, MaskSigns(contradicts="inverse"), PLAIN),
    "odd": ([0] * 6 + [7] * 13 + [-1], None, MaskSigns(odd_values=True), PLAIN),
    "odd line": (PLAIN, [0] * 6 + [2] * 14, MaskSigns(odd_values=True), PLAIN),
    "none": (None, None, MaskSigns(stored=False), [1] * 20),
    "in the line alone": (None, PLAIN, MaskSigns(), PLAIN),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_odd_is_noted(tmp_path, case):
    own, line, signs, used = CASES[case]
    row = {key: value for key, value in row_tensors(TINY, 20, 6).items() if key != "loss_mask"}
    write_row(tmp_path / "rows", 0, row if own is None else row | {"loss_mask": torch.tensor(own)})
    (read_row,) = read(tmp_path / "rows", write_merged(tmp_path, [line]))
    assert read_row.mask_signs == signs
    assert read_row.loss_mask.int().tolist() == used


def test_odd_masks_are_warned_of(tmp_path, made):
    rows = [row_tensors(TINY, 20, 6, salt) for salt in range(3)]
    del rows[1]["loss_mask"]
    rows[2]["loss_mask"] = rows[2]["loss_mask"] * 7
    for number, row in enumerate(rows):
        write_row(tmp_path / "odd", number, row)
    result = run_job(tmp_path / "out", **(made | {"rows": tmp_path / "odd"}), sweep="wiring", search_rows=2).result
    assert result.rows.lint.mask_at_first_token == result.rows.lint.without_mask == 1
    assert [warning for warning in result.warnings if "loss mask" in warning] == [
        "1 of 3 rows hold no loss mask; all their tokens were judged",
        "the loss mask of 1 of 3 rows holds numbers other than 0 and 1; all but 0 were taken as marked",
    ]
