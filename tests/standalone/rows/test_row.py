"""Rows: what is read, and what is skipped with which reason; what no row can mend ends the job."""

import gzip
import json
import os
import warnings
import zipfile

import pytest
import torch
from safetensors.torch import save_file

from remote_payload.failure import JobFailure
from remote_payload.standalone.rows import load as row_load
from remote_payload.standalone.rows import row as rows
from remote_payload.standalone.rows.files import find_rows
from remote_payload.standalone.rows.final_state import final_state_kind
from remote_payload.standalone.rows.row import Row, RowReader, beginning
from tests.standalone.running import run_job
from tests.support.tiny import Tiny, row_tensors, target_tensors, write_row, write_rows

TINY = Tiny()


def read(folder, merged=None, steps=4, max_rows=None):
    reader = RowReader(folder=find_rows(folder, merged, max_rows), target_hidden_size=16, vocab_size=40, steps=steps)
    return list(reader.rows(captured=4))


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
        ({"aux_hidden_state": torch.zeros(1, 20, 48)}, "3 captured states, expected: 4"),
        ({"aux_hidden_state": torch.full((1, 20, 64), float("nan"))}, "NaN"),
        ({"aux_hidden_state": torch.zeros(2, 20, 64)}, "shape [1, T, width]"),
        ({"aux_hidden_state": torch.zeros(1, 20, 64, dtype=torch.int64)}, "found: torch.int64"),
        ({"hidden_state": torch.zeros(1, 20, 8)}, "16 wide, found: 8"),
        ({"hidden_state": torch.zeros(1, 20, 16).to_sparse()}, "torch.sparse_coo"),
        ({"aux_hidden_state": torch.zeros(1, 20, 0)}, "n * 16 wide"),
        ({"input_ids": torch.full((20,), 1.5)}, "whole numbers"),
        ({"input_ids": [2**80] * 20}, "whole numbers"),
        ({"input_ids": torch.zeros(0, dtype=torch.int64)}, "lengths differ: 0 tokens"),
        ({"input_ids": torch.zeros(20).to(torch.float8_e4m3fn)}, "whole numbers in a list or tensor, found: torch.flo"),
        ({"loss_mask": torch.zeros(20).to(torch.float8_e5m2)}, "found: torch.float8_e5m2"),
        ({"loss_mask": torch.full((20,), float("nan"))}, "fractions or NaN"),
        ({"input_ids": torch.zeros(20, dtype=torch.complex64)}, "found: torch.complex64"),
        (
            {"aux_hidden_state": torch.zeros(1, 20, 64).to(torch.float8_e4m3fn)},
            "plain floats, found: torch.float8_e4m3fn",
        ),
        ({"hidden_state": torch.zeros(1, 20, 16).to(torch.float8_e5m2)}, "plain floats, found: torch.float8_e5m2"),
        ({"aux_hidden_state": torch.zeros(1).expand(1, 10**11, 64)}, "repeating view of 4 bytes"),
        ({"input_ids": torch.ones(1, dtype=torch.int64).expand(10**11)}, "repeating view of 8 bytes"),
        (
            {"aux_hidden_state": torch.full((1, 20, 64), 2e38)},
            "a model's captured states stay below 1e+09, found: 2e+38",
        ),
        ({"hidden_state": torch.full((1, 20, 16), float("-inf"))}, "NaN or infinity in its final states"),
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


def test_a_row_without_tokens(tmp_path):
    assert "it has 0 tokens" in reason(tmp_path, row_tensors(TINY, 0, 0))


def test_nested_tensors_are_named(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nested tensors are a prototype of torch
        nested = torch.nested.nested_tensor([good()["aux_hidden_state"][0]])
    assert "found: torch.float32, nested" in reason(tmp_path, good() | {"aux_hidden_state": nested})


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "uint32", "uint64", "float64"])
def test_whole_numbers_of_any_width_are_read(tmp_path, dtype):
    row = good()
    for name in ("input_ids", "loss_mask"):
        row[name] = row[name].to(getattr(torch, dtype))
    write_row(tmp_path, 0, row)
    (found,) = read(tmp_path)
    assert (found.tokens.dtype, found.tokens.tolist()) == (torch.int64, good()["input_ids"].tolist())
    assert found.loss_mask.tolist() == [False] * 6 + [True] * 14


class Dangerous:
    """Unpickled, it would leave a file behind."""

    def __init__(self, call, canary):
        self.call, self.canary = call, canary

    def __reduce__(self):
        return self.call, (f"touch {self.canary}" if self.call is os.system else f"open({str(self.canary)!r}, 'w')",)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize(
    ("call", "told"), [(os.system, "posix.system"), (exec, "found: exec"), (print, "found: print")]
)
def test_pickled_object_is_refused_by_name_and_does_not_run(tmp_path, capsys, call, told, zipped):
    path, canary = write_row(tmp_path, 0, good()), tmp_path / "canary"
    torch.save(good() | {"x": Dangerous(call, canary)}, path, _use_new_zipfile_serialization=zipped)
    (skipped,) = read(tmp_path)
    assert "it holds pickled objects, which are refused" in skipped.reason
    assert told in skipped.reason
    assert not canary.exists()
    assert capsys.readouterr().out == ""


def test_a_gzip_bomb_is_refused_before_it_fills_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(row_load, "UNPACKED_FREE_BYTES", 1 << 20)
    path = write_row(tmp_path, 0, good()).with_name("data_1.ckpt.gz")
    path.write_bytes(gzip.compress(bytes(8 << 20)) * 4)
    size = path.stat().st_size
    assert read(tmp_path)[1].reason == f"it must not unpack to more than {1 << 20} bytes for its size on disk: {size}"


def test_a_bomb_among_the_zip_members_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(row_load, "UNPACKED_FREE_BYTES", 1 << 20)
    path = write_row(tmp_path, 0, good())
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data/9", bytes(8 << 20))
    assert "it must not unpack to 83" in read(tmp_path)[0].reason


def test_a_merged_line_nested_too_deeply_is_that_rows_alone(tmp_path):
    merged = tmp_path / "m.jsonl"
    merged.write_bytes(b"[" * 100_000 + b"\n{}\n")
    write_row(tmp_path, 0, good())
    write_row(tmp_path, 1, good())
    first, second = read(tmp_path, merged)
    assert first.reason == "line 1 of the merged JSONL is nested too deeply"
    assert isinstance(second, Row)


@pytest.mark.parametrize(
    "error", [RecursionError("deep"), MemoryError(), IndexError("i"), OverflowError("o"), KeyError("k")]
)
def test_whatever_goes_wrong_in_one_row_is_that_rows_alone(tmp_path, monkeypatch, error):
    """As when a torch of another version raises something that today's does not."""

    def fail(*_):
        raise error

    monkeypatch.setattr(rows, "matrix", fail)
    write_row(tmp_path, 0, good())
    (skipped,) = read(tmp_path)
    assert skipped.reason.startswith("it cannot be used: ")
    assert type(error).__name__ in skipped.reason


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
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(JobFailure) as caught:
        read(tmp_path)
    assert caught.value.failure.hint == "it holds: model.safetensors"


def test_what_stands_in_a_rows_place_is_counted(tmp_path, made):
    folder = made["rows"]
    (folder / "data_7.ckpt").symlink_to(tmp_path / "gone")
    (folder / "data_8.ckpt").symlink_to("data_8.ckpt")
    os.mkfifo(folder / "data_9.ckpt")
    (folder / "data_10.ckpt").mkdir()
    (folder / "data_11.ckpt").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n")
    rows = run_job(tmp_path / "out", **made, sweep="wiring", search_rows=2).result.rows
    assert (rows.found, rows.used) == (8, 3)
    assert {row.name: row.reason for row in rows.skipped} == {
        "data_7.ckpt": "it is no file but a link that leads nowhere",
        "data_8.ckpt": "it is no file but a link that leads nowhere",
        "data_9.ckpt": "it is no file but a pipe, a device or a socket",
        "data_10.ckpt": "it is no file but a folder",
        "data_11.ckpt": "it is a pointer of Git LFS, not the file itself: fetch it with `git lfs pull`",
    }


def test_half_of_one_layout_and_half_of_another(tmp_path):
    row = row_tensors(Tiny(), 20, 6)
    write_row(tmp_path / "rows", 5, row)
    for number in range(3):
        save_file({"token_ids": row["input_ids"]}, tmp_path / "rows" / f"hs_{number}.safetensors")
    with pytest.raises(JobFailure, match="hold no loss mask") as caught:
        find_rows(tmp_path / "rows", None, None)
    assert caught.value.failure.hint.startswith(
        "1 row file(s) of another layout lie there as well, the first rows_0-2000/data_5"
    )


def test_a_file_where_a_folder_should_be(tmp_path):
    (tmp_path / "rows").touch()
    with pytest.raises(JobFailure, match="the folder of captured rows is no folder on this machine"):
        find_rows(tmp_path / "rows", None, None)


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


def test_an_unusable_row_is_read_once(tmp_path):
    path = write_row(tmp_path, 0, good())
    write_row(tmp_path, 1, good())
    reader = RowReader(folder=find_rows(tmp_path, None, None), target_hidden_size=16, vocab_size=40, steps=4)
    path.unlink()
    assert [row.name for row in reader.rows(4, {"rows_0-2000/data_0.ckpt"})] == ["rows_0-2000/data_1.ckpt"]
    assert next(reader.rows(4)).reason == "it cannot be read: No such file or directory"


@pytest.mark.parametrize("name", ["~no-such-user/rows", "x" * 5000, "a\0b"])
@pytest.mark.parametrize("key", ["draft", "target", "rows", "merged"])
def test_paths_that_cannot_be(tmp_path, made, key, name):
    with pytest.raises(JobFailure, match=r"does not exist|cannot be read") as caught:
        run_job(tmp_path / "out", **(made | {key: name}))
    assert caught.value.failure.kind == ("checkpoint" if key in ("draft", "target") else "rows")


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
