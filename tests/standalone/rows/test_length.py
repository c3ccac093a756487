"""The longest row, told from headers and sizes: never too short, exact where headers tell."""

import gzip
import json

import pytest
import torch
from safetensors.torch import save_file

from remote_payload.standalone.rows import length as length_module
from tests.standalone.rows.reading import HIDDEN, TINY, reader
from tests.support.tiny import row_tensors, write_row, write_rows


def test_plain_rows_are_told_exactly(tmp_path):
    write_rows(tmp_path, TINY, lengths=(20, 71, 23))
    assert reader(tmp_path).longest_tokens() == reader(tmp_path).longest_tokens(4) == 71


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gzip_rows_are_bounded_closely(tmp_path, dtype):
    row = row_tensors(TINY, 3000, 6)
    row = {name: value.to(dtype) if value.is_floating_point() else value for name, value in row.items()}
    write_row(tmp_path, 0, row, compress=True)
    bound = reader(tmp_path).longest_tokens(4)
    assert 3000 <= bound <= 3000 * 2.4
    assert bound <= reader(tmp_path).longest_tokens()


def test_a_row_longer_than_its_gzip_end_tells_is_refused(tmp_path):
    path = write_row(tmp_path, 0, row_tensors(TINY, 20, 6), compress=True)
    data = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(data[:100]) + gzip.compress(data[100:]))
    (row,) = reader(tmp_path).rows()
    assert "must not unpack to more than" in row.reason


def test_a_block_wise_gzip_row_is_read(tmp_path):
    path = write_row(tmp_path, 0, row_tensors(TINY, 20, 6), compress=True)
    data = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(data[:100]) + gzip.compress(data[100:]) + gzip.compress(b""))
    (row,) = reader(tmp_path).rows()
    assert len(row.tokens) == 20


def test_states_alone_safetensors_and_shards(tmp_path):
    row = row_tensors(TINY, 33, 6)
    write_row(tmp_path / "a", 0, {name: row[name] for name in ("aux_hidden_state", "hidden_state")})
    assert reader(tmp_path / "a").longest_tokens() == 33

    (tmp_path / "b").mkdir()
    for number, tokens in enumerate((21, 44)):
        tensors = {"token_ids": torch.arange(tokens), "hidden_states": torch.zeros(tokens, 3, HIDDEN)}
        save_file(tensors, tmp_path / "b" / f"hs_{number}.safetensors")
    (tmp_path / "b" / "merged.jsonl").touch()
    assert reader(tmp_path / "b").longest_tokens() == 44

    (tmp_path / "c").mkdir()
    shard = {"input_ids": torch.zeros(2, 50, dtype=torch.int64), "aux_hidden_states": torch.zeros(2, 50, HIDDEN)}
    save_file(shard, tmp_path / "c" / "shard-000000.safetensors")
    manifest = {"format_version": 2, "selected_token_ids": [1]}
    (tmp_path / "c" / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert reader(tmp_path / "c").longest_tokens() == 50


def test_beyond_the_headers_opened_sizes_bound(tmp_path, monkeypatch):
    write_rows(tmp_path, TINY, lengths=(70, 71, 72))
    monkeypatch.setattr(length_module, "OPENED", 1)
    assert 72 <= reader(tmp_path).longest_tokens(4) <= 72 * 3


def test_files_that_no_one_can_read_do_not_count(tmp_path):
    write_rows(tmp_path, TINY, lengths=(20, 21))
    (tmp_path / "rows_0-2000" / "data_9.ckpt").write_bytes(b"x" * 10**6)
    assert reader(tmp_path).longest_tokens() == 21
