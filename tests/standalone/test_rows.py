"""Rows: what is read, and what is skipped with which reason; what no row can mend ends the job."""

import gzip
import json

import pytest
import torch

from remote_payload.failure import JobFailure
from remote_payload.standalone.final_state import final_state_kind
from remote_payload.standalone.row_files import find_rows
from remote_payload.standalone.rows import Row, RowReader, beginning
from tests.standalone.running import run_job
from tests.support.tiny import Tiny, row_tensors, target_tensors, write_row, write_rows

TINY = Tiny()


def read(folder, merged=None, steps=4, max_rows=None):
    reader = RowReader(folder=find_rows(folder, merged, max_rows), target_hidden_size=16, vocab_size=40, steps=steps)
    return list(reader.rows())


def good():
    return row_tensors(TINY, 20, 6)


def reason(folder, row, **more):
    """Why a row is skipped; the good row before it is not."""
    write_row(folder, 0, good())
    write_row(folder, 1, row)
    first, second = read(folder, **more)
    assert isinstance(first, Row)
    assert second.name == "rows_0-2000/data_1.ckpt"
    return second.reason


def test_a_row_is_read_whole(tmp_path):
    write_row(tmp_path, 0, good(), compress=True)
    (row,) = read(tmp_path)
    assert row.name == "rows_0-2000/data_0.ckpt.gz"
    assert torch.equal(row.tokens, good()["input_ids"])
    assert row.loss_mask.tolist() == [False] * 6 + [True] * 14
    assert torch.equal(row.states.flatten(1), good()["aux_hidden_state"][0])
    assert (row.prompt_tokens, row.source) == (6, None)


def test_rows_come_in_natural_order_and_max_rows_cuts(tmp_path):
    write_rows(tmp_path, TINY, lengths=(20,) * 12)
    second = tmp_path / "rows_2000-4000"
    second.mkdir()
    (tmp_path / "rows_0-2000" / "data_11.ckpt").rename(second / "data_2000.ckpt")
    names = [row.name for row in read(tmp_path)]
    assert names == [f"rows_0-2000/data_{i}.ckpt" for i in range(11)] + ["rows_2000-4000/data_2000.ckpt"]
    assert [row.name for row in read(tmp_path, max_rows=3)] == names[:3]


def test_merged_jsonl_gives_tokens_masks_and_sources(tmp_path):
    full = good()
    states = {name: full[name] for name in ("aux_hidden_state", "hidden_state")}
    write_row(tmp_path, 0, states)
    write_row(tmp_path, 1, states)
    line = {
        "input_ids": full["input_ids"].tolist(),
        "loss_mask": full["loss_mask"].tolist(),
        "n_prompt_tokens": 6,
        "source": "a|b",
    }
    merged = tmp_path / "merged.jsonl"  # in the folder itself, so it is found
    merged.write_text(json.dumps(line) + "\n\n" + json.dumps(line | {"n_prompt_tokens": 5}) + "\n", encoding="utf-8")
    first, second = read(tmp_path)
    assert torch.equal(first.tokens, full["input_ids"])
    assert (first.prompt_tokens, first.source, second.prompt_tokens) == (6, "a|b", 5)

    merged.write_text(json.dumps(line) + "\n{\n", encoding="utf-8")
    assert "is not JSON" in read(tmp_path)[1].reason
    merged.write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert "only 1 lines" in read(tmp_path)[1].reason


def test_merged_line_of_another_row_is_noticed(tmp_path):
    merged = tmp_path / "m.jsonl"
    other = {"input_ids": [1] * 20, "loss_mask": [1] * 20}
    merged.write_text(json.dumps(other) + "\n", encoding="utf-8")
    write_row(tmp_path, 0, good())
    assert "differ from its line" in read(tmp_path, merged)[0].reason
    with pytest.raises(JobFailure, match="cannot be read"):
        read(tmp_path, tmp_path / "nowhere.jsonl")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"loss_mask": torch.zeros(20)}, "all zero"),
        ({"loss_mask": torch.ones(19)}, "20 tokens, 19 of loss mask"),
        ({"input_ids": torch.zeros(21, dtype=torch.int64)}, "21 tokens"),
        ({"hidden_state": torch.zeros(1, 18, 16)}, "18 final states"),
        ({"input_ids": torch.full((20,), 40)}, "0..39, found: 40..40"),
        ({"input_ids": torch.full((20,), -1)}, "found: -1..-1"),
        ({"input_ids": "text"}, "found: str"),
        ({"aux_hidden_state": torch.zeros(1, 20, 63)}, "n * 16 wide"),
        ({"aux_hidden_state": torch.zeros(1, 20, 48)}, "3 captured states, the rows before it: 4"),
        ({"aux_hidden_state": torch.full((1, 20, 64), float("nan"))}, "NaN"),
        ({"aux_hidden_state": torch.zeros(2, 20, 64)}, "shape [1, T, width]"),
        ({"aux_hidden_state": torch.zeros(1, 20, 64, dtype=torch.int64)}, "found: torch.int64"),
        ({"hidden_state": torch.zeros(1, 20, 8)}, "16 wide, found: 8"),
        ({"hidden_state": torch.zeros(1, 20, 16).to_sparse()}, "torch.sparse_coo"),
        ({"aux_hidden_state": torch.zeros(1, 20, 0)}, "n * 16 wide"),
        ({"input_ids": torch.full((20,), 1.5)}, "whole numbers"),
        ({"input_ids": [2**80] * 20}, "whole numbers"),
        ({"input_ids": torch.zeros(0, dtype=torch.int64)}, "lengths differ: 0 tokens"),
    ],
)
def test_reasons(tmp_path, change, says):
    assert says in reason(tmp_path, good() | change)


def test_missing_key(tmp_path):
    row = good()
    del row["aux_hidden_state"]
    assert "lacks `aux_hidden_state`; it holds: input_ids" in reason(tmp_path, row)


def test_more_steps_than_tokens(tmp_path):
    assert "at least: 5" in reason(tmp_path, row_tensors(TINY, 4, 1))


class Dangerous:
    def __reduce__(self):
        return (print, ("a row must never run this",))


def test_pickled_object_is_refused_and_does_not_run(tmp_path, capsys):
    write_row(tmp_path, 0, {"input_ids": Dangerous()})
    assert "pickled objects, which are refused" in read(tmp_path)[0].reason
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("keep", [0, 5, 1000, -30])
@pytest.mark.parametrize("compress", [False, True])
def test_damaged_files(tmp_path, keep, compress):
    path = write_row(tmp_path, 0, good(), compress=compress)
    path.write_bytes(path.read_bytes()[:keep])
    assert "not a torch.save file" in read(tmp_path)[0].reason


def test_other_content(tmp_path):
    path = write_row(tmp_path, 0, good())
    path.write_bytes(b"hello, this is text\n" * 9)
    assert "not a torch.save file" in read(tmp_path)[0].reason
    torch.save(torch.zeros(3), path)
    assert "found: Tensor" in read(tmp_path)[0].reason
    gz = path.with_name("data_1.ckpt.gz")
    gz.write_bytes(gzip.compress(b"no row"))
    assert "not a torch.save file" in read(tmp_path)[1].reason


def test_folders_without_rows(tmp_path):
    with pytest.raises(JobFailure, match="does not exist") as caught:
        read(tmp_path / "nowhere")
    assert caught.value.failure.kind == "rows"
    with pytest.raises(JobFailure) as caught:
        read(tmp_path)
    assert caught.value.failure.hint == "it is empty"
    (tmp_path / "hs_0.safetensors").touch()
    with pytest.raises(JobFailure) as caught:
        read(tmp_path)
    assert caught.value.failure.hint == "it holds: hs_0.safetensors"


def test_corrupt_row_among_good_ones_is_named_and_counted(tmp_path, made):
    (made["rows"] / "rows_0-2000" / "data_1.ckpt").write_bytes(b"garbage")
    out = run_job(tmp_path / "out", **made)
    facts = out.result.rows
    assert (facts.found, facts.used, [row.name for row in facts.skipped]) == (3, 2, ["rows_0-2000/data_1.ckpt"])
    assert [row.name for row in out.rows] == ["rows_0-2000/data_0.ckpt", "rows_0-2000/data_2.ckpt"]
    assert [event.name for event in out.events if event.kind == "warning"] == ["row_skipped"]
    assert out.events[-1].done == out.events[-1].total == 3


def test_every_row_bad(tmp_path, made):
    for path in made["rows"].rglob("*.ckpt"):
        path.write_bytes(b"garbage")
    with pytest.raises(JobFailure, match="none of the 3 rows") as caught:
        run_job(tmp_path / "out", **made)
    assert len(caught.value.failure.details) == 3
    assert list((tmp_path / "out").iterdir()) == []


def test_rows_drafter_and_labels_that_do_not_fit(tmp_path, made):
    with pytest.raises(JobFailure, match="labels 3 captured states"):
        run_job(tmp_path / "out", **made, states=(0, 2, 4))
    with pytest.raises(JobFailure, match=r"indices 0\.\.8"):
        run_job(tmp_path / "out", **made, states=(0, 2, 4, 9))
    narrow = write_rows(tmp_path / "narrow", Tiny(captured=2))
    with pytest.raises(JobFailure, match="the rows hold only: 2"):
        run_job(tmp_path / "out", **(made | {"rows": narrow}))


def test_final_state_before_the_norm_is_noticed_and_normed(tmp_path, made):
    plain = run_job(tmp_path / "plain", **made)
    for number, tokens in enumerate((20, 17, 23)):
        row = row_tensors(TINY, tokens, tokens // 3, salt=number)
        weight = target_tensors(TINY)["model.norm.weight"]
        assert final_state_kind(row["hidden_state"][0], weight) == "post_norm"
        row["hidden_state"] = row["hidden_state"] / weight * 7.3
        assert final_state_kind(row["hidden_state"][0], weight) == "pre_norm"
        write_row(made["rows"], number, row)
    out = run_job(tmp_path / "out", **made)
    assert (plain.result.rows.final_state, out.result.rows.final_state) == ("post_norm", "pre_norm")
    assert out.hits == plain.hits


def test_beginning_of_a_row(tmp_path):
    write_row(tmp_path, 0, good())
    (row,) = read(tmp_path)
    cut = beginning(row, 5, 3)
    assert len(cut.tokens) == len(cut.loss_mask) == len(cut.states) == len(cut.final) == 6 + 5 + 3
    assert torch.equal(cut.states, row.states[:14])
    assert len(beginning(row, 500, 3).tokens) == 20
    assert len(beginning(row, 13, 3).tokens) == 20
