"""Every dialect of row dicts becomes the same row, and says whose it is; what is ambiguous is refused by name."""

import gzip
import io
import json
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remote_payload.standalone.rows.row import Row
from remote_payload.standalone.rows.stacks import stacked
from remote_payload.standalone.rows.values import RowError
from tests.standalone.rows.reading import HIDDEN, made, read, reader, reasons, same

PARTS = made()
IDS, MASK, STATES, FINAL = (PARTS[name] for name in ("ids", "mask", "states", "final"))
FLAT = STATES.flatten(1)
MAPS = Path("/proc/self/maps")
TWO = {"input_ids": IDS, "loss_mask": MASK}
BOTH = {"aux_hidden_states": FLAT, "hidden_states": FINAL}

DIALECTS = {
    "specforge": ("data_0.ckpt", TWO | {"aux_hidden_state": FLAT[None], "hidden_state": FINAL[None]}),
    "torchspec": ("data_0.ckpt", TWO | BOTH),
    "modelopt": ("1b2c.pt", TWO | BOTH | {"conversation_id": "1b2c"}),
    "speculators_old_v1": ("data_0.pt", TWO | {"hidden_states": [*STATES.unbind(1), FINAL]}),
    "speculators_old_v0": ("0.pt", TWO | {"hidden_state": FLAT, "target": FINAL}),
    "baldeagle": ("data_0.ckpt", TWO | {"hidden_state": FLAT, "target_hidden_states": FINAL}),
    "angelslim": ("0.pt", TWO | {"hidden_states": FLAT[None], "target_hiddens": FINAL[None]}),
}


def write(folder, name, value):
    folder.mkdir(exist_ok=True, parents=True)
    torch.save(value, folder / name)
    return folder


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_is_the_same_row_and_recognised(tmp_path, dialect, compressed):
    name, value = DIALECTS[dialect]
    write(tmp_path, name, value)
    if compressed:
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
        (tmp_path / name).unlink()
    (row,) = read(tmp_path)
    assert same(row, PARTS)
    assert row.dialect.name == dialect
    assert row.prompt_tokens == 6
    assert all(name in " ".join(row.dialect.evidence) for name in value if "hidden" in name or name == "target")


@pytest.mark.parametrize(
    "value",
    [
        TWO | {"aux_hidden_state": list(STATES.unbind(1)), "hidden_state": FINAL},
        TWO | {"aux_hidden_state": [layer[None] for layer in STATES.unbind(1)], "hidden_state": FINAL},
        TWO | {"aux_hidden_state": STATES, "hidden_state": FINAL},
        TWO | {"aux_hidden_state": STATES[None], "hidden_state": FINAL[None]},
        TWO | {"aux_hidden_state": STATES.transpose(0, 1), "hidden_state": FINAL},
        TWO | {"hidden_states": torch.cat((STATES, FINAL[:, None]), 1)},
        TWO | {"hidden_states": torch.cat((STATES, FINAL[:, None]), 1).transpose(0, 1).contiguous()},
        TWO | {"hidden_states": tuple(layer[None] for layer in (*STATES.unbind(1), FINAL))},
        {"input_ids": IDS[None], "loss_mask": MASK[None].bool(), "aux_hidden_state": FLAT, "hidden_state": FINAL},
        {"input_ids": IDS.to(torch.int32), "loss_mask": MASK.float(), "aux_hidden_state": FLAT, "hidden_state": FINAL},
        {"input_ids": IDS.tolist(), "loss_mask": MASK.tolist(), "aux_hidden_states": FLAT, "hidden_state": FINAL},
    ],
)
def test_whatever_the_arrangement(tmp_path, value):
    (row,) = read(write(tmp_path, "data_0.ckpt", value))
    assert same(row, PARTS)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (TWO | BOTH | {"aux_hidden_state": FLAT}, "under two names: aux_hidden_state, aux_hidden_states"),
        (TWO | {"hidden_states": FLAT, "target": FINAL, "target_hiddens": FINAL}, "two final states"),
        (TWO | {"hidden_state": FLAT}, "lacks `aux_hidden_state`; it holds: input_ids, loss_mask, hidden_state"),
        (TWO | {"aux_hidden_state": FLAT}, "lacks `hidden_state`"),
        (TWO | {"hidden_states": [FINAL]}, "captured ones and the final one last, found: 1"),
        (TWO | {"hidden_states": []}, "an empty list"),
        (TWO | {"hidden_states": [FINAL, FINAL[:, :8], FINAL]}, "must all have shape [T, 16]"),
        (TWO | {"hidden_states": [FINAL, "x", FINAL]}, "a layer of captured states must be a tensor of plain floats"),
        (TWO | {"hidden_states": [FINAL[1:], FINAL[1:], FINAL]}, "20 tokens, 20 of loss mask, 19 captured"),
        (TWO | {"aux_hidden_states": torch.empty(0), "hidden_states": FINAL}, "found: [0]"),
        (TWO | {"aux_hidden_state": torch.zeros(20, 20, HIDDEN), "hidden_state": FINAL}, "T and n are equal"),
        (
            TWO | BOTH | {"attention_mask": torch.ones(19)},
            "attention mask must have 20 entries as its tokens, found: 19",
        ),
        (TWO | BOTH | {"attention_mask": torch.zeros(20)}, "attention mask is all zero"),
        (TWO | BOTH | {"attention_mask": torch.arange(20) % 2}, "one run of ones"),
        ({"loss_mask": MASK} | BOTH, "lacks `input_ids`"),
    ],
)
def test_what_is_refused(tmp_path, value, says):
    (reason,) = reasons(write(tmp_path, "data_0.ckpt", value))
    assert says in reason


def test_modelopt_without_a_mask_counts_every_token(tmp_path):
    (row,) = read(write(tmp_path, "abc.pt", {"input_ids": IDS, "base_hidden_prenorm": True} | BOTH))
    assert row.loss_mask.all()
    assert row.prompt_tokens == 0
    assert row.dialect.name == "modelopt"


@pytest.mark.parametrize("left", [0, 3])
def test_padding_by_an_attention_mask_is_cut_off(tmp_path, left):
    def padded(value):
        return torch.nn.functional.pad(value, (0, 0, left, 5) if value.dim() == 2 else (left, 5), value=1)

    attention = torch.nn.functional.pad(torch.ones_like(IDS), (left, 5))
    states = {"aux_hidden_state": padded(FLAT)[None], "hidden_state": padded(FINAL)[None]}
    nan = states["hidden_state"]
    nan[:, left + 20 :] = float("nan")  # nobody's business
    value = {"input_ids": padded(IDS), "loss_mask": padded(MASK), "attention_mask": attention}
    (row,) = read(write(tmp_path, "data_0.ckpt", value | states))
    assert same(row, PARTS)


def test_a_long_run_of_one_token_at_the_end_is_padding(tmp_path):
    def padded(value, count):
        return torch.nn.functional.pad(value, (0, 0, 0, count) if value.dim() == 2 else (0, count))

    for number, count in enumerate((7, 30)):
        value = {"input_ids": padded(IDS, count), "loss_mask": padded(MASK, count)}
        states = {"aux_hidden_state": padded(FLAT, count)[None], "hidden_state": padded(FINAL, count)[None]}
        write(tmp_path, f"data_{number}.ckpt", value | states)
    few, many = read(tmp_path)
    assert len(few.tokens) == 27
    assert len(many.tokens) == len(many.states) == len(many.final) == 21  # the first may end the response
    assert torch.equal(many.states[:20], STATES)


def test_rows_padded_to_their_batch_are_cut_to_their_line(tmp_path):
    pad = torch.nn.functional.pad
    value = {
        "input_ids": pad(IDS, (0, 5)),
        "aux_hidden_state": pad(FLAT, (0, 0, 0, 5)),
        "hidden_state": pad(FINAL, (0, 0, 0, 5)),
    }
    line = {"input_ids": IDS.tolist(), "loss_mask": MASK.tolist(), "source": "x"}
    (tmp_path / "merged.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(line) + "\n", encoding="utf-8")
    write(tmp_path, "data_0.ckpt", value)
    other = value["input_ids"].clone()
    other[22] = 9
    write(tmp_path, "data_1.ckpt", value | {"input_ids": other})
    cut, odd = read(tmp_path)
    assert same(cut, PARTS)
    assert odd.reason == "its input_ids differ from its line of the merged JSONL"


def test_states_beside_a_merged_jsonl(tmp_path):
    write(tmp_path, "data_0.ckpt", BOTH)
    line = {"input_ids": IDS.tolist(), "loss_mask": MASK.tolist(), "n_prompt_tokens": 5, "source": "a"}
    (tmp_path / "merged.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    (row,) = read(tmp_path)
    assert same(row, PARTS)
    assert (row.dialect.name, row.prompt_tokens, row.source) == ("jsonl_states", 5, "a")


def test_rows_without_a_number_find_their_line_by_their_tokens(tmp_path):
    other = made(24, 7, salt=3)
    lines = [{"input_ids": part["ids"].tolist(), "loss_mask": part["mask"].tolist()} for part in (other, PARTS)]
    (tmp_path / "merged.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    write(tmp_path, "abc.pt", {"input_ids": IDS} | BOTH)
    write(tmp_path, "abd.pt", {"input_ids": IDS.flip(0)} | BOTH)
    found, lost = read(tmp_path)
    assert same(found, PARTS)
    assert lost.reason == "no row of the merged JSONL has its tokens"


def test_the_odd_rows_of_another_dialect_are_skipped_by_name(tmp_path):
    for number in range(3):
        write(tmp_path, f"data_{number}.ckpt", DIALECTS["specforge"][1])
    write(tmp_path, "data_3.ckpt", DIALECTS["torchspec"][1])
    rows = list(reader(tmp_path).rows(captured=4, dialect="specforge"))
    assert [isinstance(row, Row) for row in rows] == [True, True, True, False]
    assert rows[3].reason == "it is a row of torchspec, most rows are of: specforge"


def test_what_writers_leave_beside_rows_is_no_row(tmp_path):
    write(tmp_path, "0.pt", DIALECTS["modelopt"][1])
    write(tmp_path, "token_freq.pt", {"freq": IDS})
    write(tmp_path, "vocab_mapping.pt", {"d2t": IDS})
    assert [row.name for row in read(tmp_path)] == ["0.pt"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_states_of_another_width_are_refused_with_both_numbers(tmp_path, dialect):
    name, value = DIALECTS[dialect]
    wide = {key: _widened(found) if "hidden" in key or key == "target" else found for key, found in value.items()}
    (reason,) = reasons(write(tmp_path, name, wide))
    assert "16" in reason
    assert "17" in reason or "68" in reason


def _widened(found):
    """States of a target that is 17 wide, not 16."""
    if isinstance(found, list):
        return [_widened(layer) for layer in found]
    slots = found.shape[-1] // 16
    return torch.zeros(*found.shape[:-1], slots * 17)


@pytest.mark.skipif(not MAPS.exists(), reason="no /proc on this machine")
def test_a_plain_file_is_mapped_not_read(tmp_path):
    (row,) = read(write(tmp_path, "data_0.ckpt", DIALECTS["specforge"][1]))
    assert str(tmp_path / "data_0.ckpt") in MAPS.read_text(encoding="utf-8")
    assert same(row, PARTS)


def test_a_file_with_compressed_members_is_read_all_the_same(tmp_path):
    buffer = io.BytesIO()
    torch.save(DIALECTS["specforge"][1], buffer)
    with (
        zipfile.ZipFile(buffer) as stored,
        zipfile.ZipFile(tmp_path / "data_0.ckpt", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for member in stored.namelist():
            packed.writestr(member, stored.read(member))
    (row,) = read(tmp_path)
    assert same(row, PARTS)


def test_a_file_of_the_old_format_is_read_all_the_same(tmp_path):
    torch.save(DIALECTS["specforge"][1], tmp_path / "data_0.ckpt", _use_new_zipfile_serialization=False)
    (row,) = read(tmp_path)
    assert same(row, PARTS)


@settings(max_examples=60, deadline=None)
@given(tokens=st.integers(2, 12), slots=st.integers(1, 5), size=st.integers(1, 4), how=st.integers(0, 4))
def test_every_arrangement_gives_back_the_states_or_says_it_is_ambiguous(tokens, slots, size, how):
    states = torch.arange(tokens * slots * size, dtype=torch.float32).view(tokens, slots, size)
    stored = [states, states.transpose(0, 1), states.flatten(1), states.flatten(1)[None], list(states.unbind(1))][how]
    if how < 2 and tokens == slots:
        with pytest.raises(RowError, match="T and n are equal"):
            stacked(stored, "states", size, tokens)
    else:
        assert torch.equal(stacked(stored, "states", size, tokens), states)
