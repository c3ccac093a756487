"""Automodel's cache: everything but the states is stored one place to the left, and answers instead of final states."""

import json

import pytest
import torch
from safetensors.torch import save_file

from remote_payload.failure import JobFailure
from tests.standalone.rows.reading import HIDDEN, TINY, made, read, reasons

SELECTED = torch.tensor([3, 5, 8, 13, 21, 34])
LENGTH = 24


def left(value, by=1):
    return torch.cat((value[by:], torch.zeros_like(value[:by])))


def sample(tokens, salt):
    """(the row as it is, what Automodel stores of it padded to LENGTH)."""
    parts = made(tokens, 6, salt)
    answers = torch.randint(0, TINY.vocab, (tokens,), generator=torch.Generator().manual_seed(salt))
    answers[::2] = SELECTED[answers[::2] % len(SELECTED)]  # at least every other one is a draft token
    sayable = torch.isin(answers, SELECTED)
    mask = parts["mask"].bool()
    draft = torch.where(sayable, torch.searchsorted(SELECTED, answers), 0).clamp(max=len(SELECTED) - 1)
    probabilities = torch.full((tokens, len(SELECTED)), 0.1).scatter(1, draft[:, None], 0.5)
    stored = {
        "input_ids": left(parts["ids"]),
        "attention_mask": torch.ones(tokens, dtype=torch.int64),
        "loss_mask": left(parts["mask"]),
        "aux_hidden_states": parts["states"][:, :3].flatten(1),
        "position_mask": left(sayable & mask)[:, None],
        "target_probs": left(probabilities),
    }
    pad = LENGTH - tokens
    padded = {
        key: torch.nn.functional.pad(value, (0, 0, 0, pad) if value.dim() == 2 else (0, pad))
        for key, value in stored.items()
    }
    known = torch.where(sayable & mask, answers, -1)
    return parts | {"answers": known}, padded


def write(folder, samples, shard=0, top=0, **manifest):
    value = {"format_version": 2, "selected_token_ids": SELECTED.tolist(), "aux_layer_ids": [1, 3, 4]} | manifest
    (folder / "manifest.json").write_text(json.dumps(value), encoding="utf-8")
    tensors = {key: torch.stack([one[key] for one in samples]) for key in samples[0]}
    if top:
        values, indices = tensors.pop("target_probs").topk(top, dim=-1)
        tensors |= {"target_probs_values": values, "target_probs_indices": indices.to(torch.int32)}
    save_file(tensors, folder / f"shard-{shard:06d}.safetensors")
    return folder


@pytest.mark.parametrize("top", [0, 3])
def test_samples_are_moved_back_to_their_states(tmp_path, top):
    wanted = [sample(tokens, salt) for salt, tokens in enumerate((LENGTH, 17, 20))]
    write(tmp_path, [stored for _, stored in wanted[:2]], 0, top)
    write(tmp_path, [stored for _, stored in wanted[2:]], 1, top)
    rows = read(tmp_path)
    assert [row.name for row in rows] == [
        "shard-000000.safetensors[0]", "shard-000000.safetensors[1]", "shard-000001.safetensors[0]",
    ]  # fmt: skip
    for row, (parts, _) in zip(rows, wanted, strict=True):
        assert torch.equal(row.tokens[1:], parts["ids"][1:])
        assert int(row.tokens[0]) == 0, "not stored"
        assert torch.equal(row.loss_mask, parts["mask"].bool())
        assert torch.equal(row.states, parts["states"][:, :3])
        assert row.final is None
        assert torch.equal(row.answers, parts["answers"])
        assert (row.answers >= 0).any()
        assert row.dialect.name == "automodel"
        assert "aux_layer_ids: [1, 3, 4]" in row.dialect.evidence


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"attention_mask": torch.zeros(LENGTH, dtype=torch.int64)}, "attention mask is all zero"),
        ({"target_probs": torch.full((LENGTH, 6), float("nan"))}, "NaN or infinity in its teacher's probabilities"),
        ({"target_probs": torch.zeros(LENGTH, 5)}, "probabilities must be 6 wide (selected_token_ids), found: 5"),
        ({"target_probs": torch.zeros(LENGTH, 0)}, "probabilities are empty"),
        ({"aux_hidden_states": torch.zeros(LENGTH, 40)}, "n * 16 wide (the drafter's target), found: 40"),
        ({"aux_hidden_states": torch.full((LENGTH, HIDDEN), float("inf"))}, "NaN or infinity in its captured states"),
        ({"loss_mask": torch.zeros(LENGTH - 1, dtype=torch.int64)}, "must share their first two sizes"),
        ({"input_ids": torch.zeros(LENGTH)}, "`input_ids` of its shard has a type that is not read here"),
        ({"position_mask": None}, "its shard lacks: position_mask"),
        ({"target_probs": None}, "its shard lacks: target_probs_values, target_probs_indices"),
    ],
)
def test_what_is_refused(tmp_path, changed, says):
    stored = {key: value for key, value in (sample(LENGTH, 1)[1] | changed).items() if value is not None}
    assert says in reasons(write(tmp_path, [stored]))[0]


def test_indices_outside_the_draft_vocabulary(tmp_path):
    stored = sample(LENGTH, 1)[1]
    del stored["target_probs"]
    stored |= {"target_probs_values": torch.ones(LENGTH, 2), "target_probs_indices": torch.full((LENGTH, 2), 6)}
    assert "indices must be 0..5, found: 6" in reasons(write(tmp_path, [stored]))[0]


def test_a_choice_outside_the_targets_vocabulary(tmp_path):
    write(tmp_path, [sample(LENGTH, 1)[1]], selected_token_ids=[3, 5, 8, 13, 21, 4000])
    assert "teacher's choices must be 0..39, found: 4000" in reasons(tmp_path)[0]


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        ({"format_version": 1}, "must have `format_version` 2, found: 1"),
        ({"selected_token_ids": []}, "must list `selected_token_ids`"),
        ({"selected_token_ids": [True]}, "must list `selected_token_ids`"),
        ({"selected_token_ids": [-1]}, "must list `selected_token_ids`"),
    ],
)
def test_manifests_that_cannot_be_used(tmp_path, manifest, says):
    write(tmp_path, [sample(LENGTH, 1)[1]], **manifest)
    with pytest.raises(JobFailure) as caught:
        read(tmp_path)
    assert caught.value.failure.kind == "rows"
    assert says in caught.value.failure.message


def test_shards_without_a_manifest(tmp_path):
    write(tmp_path, [sample(LENGTH, 1)[1]])
    (tmp_path / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(JobFailure, match="manifest cannot be read"):
        read(tmp_path)
    (tmp_path / "manifest.json").write_text('{"name": "another program"}', encoding="utf-8")
    with pytest.raises(JobFailure, match=r"need Automodel's manifest\.json"):
        read(tmp_path)


def test_a_damaged_shard_is_one_skipped_row(tmp_path):
    write(tmp_path, [sample(LENGTH, 1)[1]])
    (tmp_path / "shard-000001.safetensors").write_bytes(b"nothing")
    assert "not a whole safetensors file" in reasons(tmp_path)[0]
    assert len(read(tmp_path)) == 2
