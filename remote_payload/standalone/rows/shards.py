"""Automodel's cache: shards of many samples each, with the teacher's probabilities instead of its final state.

A shard holds, for each sample, captured states h_0, h_1, ... as they are, but ids, mask and probabilities moved one to
the left: at place j stand x_{j+1}, its mask, and the teacher's probabilities after x_{j+1}. Moved back, only x_0 is
missing; no pairing of a trainer reads it, and 0 stands for it, outside the mask.

`position_mask` says where the teacher's choice among all tokens is a draft token; there the most probable draft token
is that choice. Elsewhere it is not known which token the teacher chose (-1): no draft can be it.

Format: https://github.com/NVIDIA-NeMo/Automodel, `components/datasets/llm/eagle3_cache.py` and
`components/speculative/eagle/target.py`.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from remote_payload.failure import rows_failure
from remote_payload.schema.standalone import DataDialectFacts
from remote_payload.standalone.rows.values import (
    FLOATS,
    INTEGERS,
    PIECE_BYTES,
    TOLD_CHARACTERS,
    RowError,
    check_numbers,
    first_line,
)

MANIFEST = "manifest.json"
VERSION = 2
ALWAYS = ("input_ids", "attention_mask", "loss_mask", "aux_hidden_states", "position_mask")
FULL, TOP = "target_probs", ("target_probs_values", "target_probs_indices")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a cache's manifest.json says."""

    selected: torch.Tensor
    """(D,) int64 target token of each draft token."""
    layers: str
    """The captured layers, as text."""

    @property
    def dialect(self) -> DataDialectFacts:
        """The dialect, and what says so."""
        return DataDialectFacts(
            name="automodel",
            evidence=(
                f"{MANIFEST} has `format_version` {VERSION} beside shard-*.safetensors",
                f"aux_layer_ids: {self.layers}",
                "the teacher's probabilities are stored, not its final state; the first token's id is not stored",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One sample, its tokens and mask moved back to where the states are."""

    tokens: torch.Tensor  # (T,) int64, the first one 0
    loss_mask: torch.Tensor  # (T,) bool
    states: torch.Tensor  # (T, n * Ht), a view of the file
    answers: torch.Tensor  # (T,) int64, -1 = unknown


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's manifest; None where there is none, or it is another program's. Raises JobFailure(rows)."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise rows_failure(f"the cache's manifest cannot be read ({type(error).__name__}): {path}") from None
    if not isinstance(value, dict) or "format_version" not in value or "selected_token_ids" not in value:
        return None
    if value["format_version"] != VERSION:
        found = repr(value["format_version"])[:TOLD_CHARACTERS]
        raise rows_failure(
            f"Automodel's cache must have `format_version` {VERSION}, found: {found}: {path}",
            hint="write the cache again with a current Automodel",
        )
    ids = value["selected_token_ids"]
    if not isinstance(ids, list) or not ids or not all(type(item) is int and 0 <= item < 2**31 for item in ids):
        raise rows_failure(f"the cache's manifest must list `selected_token_ids`, ids of target tokens: {path}")
    layers = value.get("aux_layer_ids", "not said")
    return Manifest(selected=torch.tensor(ids, dtype=torch.int64), layers=repr(layers)[:TOLD_CHARACTERS])


def read_sample(path: Path, index: int, manifest: Manifest) -> Sample:
    """Sample `index` of a shard. Raises RowError, OSError."""
    try:
        with safe_open(path, framework="pt") as file:
            names = set(file.keys())
            choice = (FULL,) if FULL in names else TOP
            missing = [name for name in (*ALWAYS, *choice) if name not in names]
            if missing:
                raise RowError(f"its shard lacks: {', '.join(missing)}")
            held = {name: file.get_tensor(name) for name in (*ALWAYS, *choice)}
    except SafetensorError as error:
        raise RowError(f"its shard is not a whole safetensors file: {first_line(error)}") from None
    _check_shapes(held, index)
    return _sample({name: tensor[index] for name, tensor in held.items()}, manifest)


def _check_shapes(held: dict[str, torch.Tensor], index: int) -> None:
    samples, length = held["aux_hidden_states"].shape[:2] if held["aux_hidden_states"].dim() == 3 else (0, 0)
    for name, tensor in held.items():
        dims = 2 if name in ("input_ids", "attention_mask", "loss_mask") else 3
        if name == "position_mask" and tensor.dim() == 2:
            dims = 2
        if tensor.dim() != dims or tensor.shape[:2] != (samples, length) or index >= samples:
            told = ", ".join(f"{key} {list(value.shape)}" for key, value in held.items())
            raise RowError(f"the tensors of its shard must share their first two sizes, found: {told}")
        floats = name in ("aux_hidden_states", FULL, TOP[0])
        if tensor.dtype not in (FLOATS if floats else INTEGERS):
            raise RowError(f"`{name}` of its shard has a type that is not read here: {tensor.dtype}")


def _sample(held: dict[str, torch.Tensor], manifest: Manifest) -> Sample:
    start, stop = real_part(held["attention_mask"])
    states = held["aux_hidden_states"][start:stop]
    own = slice(start, max(start, stop - 1))  # what was moved left from beyond the sample is padding
    tokens, mask, answers = (torch.zeros(stop - start, dtype=torch.int64) for _ in range(3))
    tokens[1:] = held["input_ids"][own].to(torch.int64)
    mask[1:] = held["loss_mask"][own].ne(0).to(torch.int64)
    known = held["position_mask"].flatten()[own].ne(0)
    chosen = _chosen({name: held[name][own][known] for name in held if name.startswith(FULL)}, manifest.selected)
    answers[:] = -1
    answers[1:][known] = chosen
    return Sample(tokens=tokens, loss_mask=mask.ne(0), states=states, answers=answers)


def _chosen(probabilities: dict[str, torch.Tensor], selected: torch.Tensor) -> torch.Tensor:
    """The most probable draft token at each place, as a target token (p,). Raises RowError."""
    values = probabilities[FULL if FULL in probabilities else TOP[0]]  # (p, D) or (p, k)
    if values.shape[-1] == 0:
        raise RowError("its teacher's probabilities are empty")
    if FULL in probabilities and values.shape[-1] != len(selected):
        raise RowError(
            f"its probabilities must be {len(selected)} wide (selected_token_ids), found: {values.shape[-1]}"
        )
    check_numbers(values, "teacher's probabilities")
    rows = max(1, PIECE_BYTES // (values.shape[-1] * values.element_size()))
    places = range(0, max(1, len(values)), rows)
    best = torch.cat([values[at : at + rows].float().argmax(dim=-1) for at in places])  # the first of equal ones
    if FULL not in probabilities:
        best = probabilities[TOP[1]].to(torch.int64).gather(1, best[:, None])[:, 0]
    if len(best) and not 0 <= int(best.min()) <= int(best.max()) < len(selected):
        raise RowError(f"its probabilities' indices must be 0..{len(selected) - 1}, found: {int(best.max())}")
    return selected[best]


def real_part(attention: torch.Tensor) -> tuple[int, int]:
    """The run of ones in an attention mask (T,): [start, stop). Raises RowError where it has holes."""
    ones = attention.ne(0).nonzero()[:, 0]
    if len(ones) == 0:
        raise RowError("its attention mask is all zero: there are no tokens")
    start, stop = int(ones[0]), int(ones[-1]) + 1
    if stop - start != len(ones):
        raise RowError(
            f"its attention mask must be one run of ones (padding at the ends), found {len(ones)} in: {stop}"
        )
    return start, stop
