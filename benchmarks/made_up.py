"""Drafters, targets and captured rows from random numbers, in sizes the real example does not have."""

import json
from pathlib import Path

import torch

from benchmarks.example_data import ExampleData
from tests.support.tiny import (
    Tiny,
    drafter_config,
    drafter_tensors,
    row_tensors,
    target_tensors,
    write_model,
    write_row,
)

LONGEST = 16384
"""Rotary positions that the configs promise."""


def sizes(*, hidden: int, vocab: int, draft_vocab: int, captured: int = 4) -> Tiny:
    """A drafter of Llama's proportions over a target of the same width."""
    return Tiny(
        hidden=hidden,
        target_hidden=hidden,
        heads=hidden // 64,
        kv_heads=max(1, hidden // 256),
        head_dim=64,
        inner=3 * hidden,
        vocab=vocab,
        draft_vocab=draft_vocab,
        captured=captured,
        layers=max(8, captured),
    )


def write(folder: Path, tiny: Tiny, lengths: tuple[int, ...]) -> ExampleData:
    """Write drafter, target and a row for each length, all bfloat16, in a form that every peer reads as well."""
    llama = {"model_type": "llama", "hidden_act": "silu", "max_position_embeddings": LONGEST, "pad_token_id": None}
    shape = {key: value for key, value in drafter_config(tiny).items() if key not in ("eagle_config", "architectures")}
    target = {**shape, **llama, "architectures": ["LlamaForCausalLM"], "num_hidden_layers": tiny.layers}
    tensors = {name: tensor for name, tensor in target_tensors(tiny).items() if ".layers." not in name}
    write_model(folder / "target", target, _halved(tensors))
    index = {"metadata": {}, "weight_map": dict.fromkeys(tensors, "model.safetensors")}
    (folder / "target" / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    write_model(folder / "draft", {**drafter_config(tiny), **llama}, _halved(drafter_tensors(tiny)))
    add_rows(folder / "rows", tiny, lengths)
    return ExampleData(draft=folder / "draft", target=folder / "target", rows=folder / "rows", wiring=(0, 1, 2))


def add_rows(folder: Path, tiny: Tiny, lengths: tuple[int, ...]) -> Path:
    """A folder of rows that are all response but for the first token: every party judges every position."""
    for number, tokens in enumerate(lengths):
        write_row(folder, number, _halved(row_tensors(tiny, tokens, 1, salt=number)))
    return folder


def _halved(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.bfloat16() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
