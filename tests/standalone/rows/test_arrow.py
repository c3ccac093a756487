"""Arrow files as `datasets` and pyarrow really wrote them, and the same files damaged in every way."""

import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remote_payload.failure import JobFailure
from remote_payload.standalone.rows.arrow import ArrowError, open_arrow
from remote_payload.standalone.rows.lines import COLUMNS, open_prepared
from tests.support.golden_rows import GOLDEN, MASKS, ROWS

LARGE = (GOLDEN / "large.arrow").read_bytes()


@pytest.mark.parametrize("name", ["large.arrow", "prepared"])
def test_real_files_are_read_in_order(name):
    """Two shards of int32 and bool lists; or large lists of int64 and lists of uint8 in batches of two."""
    if name == "prepared":
        data = open_prepared(GOLDEN / name)
        lines = [data.line(number) for number in range(data.count)]
    else:
        file = open_arrow(GOLDEN / name, COLUMNS)
        lines = [{column: file.read(column, row) for column in COLUMNS} for row in range(file.rows)]
    assert [line["input_ids"].tolist() for line in lines] == ROWS
    assert [line["loss_mask"].tolist() for line in lines] == MASKS
    assert {column.dtype for line in lines for column in line.values()} == {torch.int64}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("compressed", "compressed"),
        ("strings", "column `input_ids` must be a list of whole numbers, found: a list of something else"),
        ("floats", "column `input_ids` must be a list of whole numbers, found: floating point"),
        ("nulls", "column `input_ids` holds nulls"),
        ("no_mask", "lacks the column `loss_mask`; it holds: nested, input_ids"),
        ("words", "column `nested` has a type that is not known here"),
    ],
)
def test_what_is_refused_by_name(name, says):
    with pytest.raises(ArrowError) as caught:
        open_arrow(GOLDEN / f"{name}.arrow", COLUMNS)
    assert says in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"ARROW1\0\0" * 9, LARGE[4:], LARGE[:600], b"\xff\xff\xff\xff" + b"\x7f" * 9])
def test_files_that_are_no_stream(tmp_path, data):
    path = tmp_path / "a.arrow"
    path.write_bytes(data)
    with pytest.raises(ArrowError, match=r"Arrow IPC stream|truncated|metadata"):
        open_arrow(path, COLUMNS)


@settings(max_examples=300, deadline=None)
@given(at=st.integers(0, len(LARGE) - 1), value=st.integers(0, 255), cut=st.integers(0, len(LARGE)))
def test_a_damaged_file_is_read_or_refused_and_nothing_else(tmp_path_factory, at, value, cut):
    path = tmp_path_factory.getbasetemp() / "damaged"
    data = bytearray(LARGE)
    data[at] = value
    path.write_bytes(data[: max(cut, at)])
    try:
        file = open_arrow(path, COLUMNS)
        for row in range(min(file.rows, 9)):
            for column in COLUMNS:
                assert file.read(column, row).dim() == 1
    except ArrowError:
        pass


def copied(folder: Path) -> Path:
    shutil.copytree(GOLDEN / "prepared", folder)
    return folder


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("{", "state.json cannot be read"),
        ("[]", "must list `_data_files`"),
        ('{"_data_files": [{"filename": "../a.arrow"}]}', "must list `_data_files` of its folder"),
        ('{"_data_files": [{"filename": "gone.arrow"}]}', "cannot be read (No such file"),
        (
            '{"_data_files": [{"filename": "data-00000-of-00002.arrow"}], "_indices_data_files": [{"filename": "i"}]}',
            "a selection of rows",
        ),
    ],
)
def test_a_dataset_folder_that_cannot_be_read(tmp_path, state, says):
    folder = copied(tmp_path / "prepared")
    (folder / "state.json").write_text(state, encoding="utf-8")
    with pytest.raises(JobFailure) as caught:
        open_prepared(folder)
    assert caught.value.failure.kind == "rows"
    assert says in caught.value.failure.message


def test_without_a_state_the_files_come_by_name(tmp_path):
    folder = copied(tmp_path / "prepared")
    (folder / "state.json").unlink()
    data = open_prepared(folder)
    assert data.count == 5
    assert data.line(4)["input_ids"].tolist() == ROWS[4]
    assert data.line(5) == "the prepared dataset has only 5 rows, no row 5"
