"""Reading captured rows one at a time, weights-only, and refusing what cannot be measured, with the reason.

A row file is a torch.save'd dict: input_ids, loss_mask, aux_hidden_state [1, T, n * Ht], hidden_state [1, T, Ht] (after
the final norm, as SpecForge writes it). With a merged JSONL, tokens and mask come from its line. Only one row at a time
is in memory.
"""

import gzip
import io
import pickle
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import torch

from remote_payload.schema.standalone import SkippedRow
from remote_payload.standalone.row_files import RowFile, RowFolder

AUX_NAMES = ("aux_hidden_state", "aux_hidden_states")
FINAL_NAMES = ("hidden_state", "hidden_states")
PICKLED = ("Unsupported global", "Unsupported class")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One captured row, on the CPU, in its stored dtype."""

    name: str
    tokens: torch.Tensor  # (T,) int64
    loss_mask: torch.Tensor  # (T,) bool
    states: torch.Tensor  # (T, n, Ht)
    final: torch.Tensor  # (T, Ht)
    prompt_tokens: int
    source: str | None


def beginning(row: Row, responses: int, steps: int) -> Row:
    """The row cut behind its first `responses` response tokens and one chain more.

    Attention is causal, so what is left behaves as it does in the whole row.
    """
    at = row.loss_mask.nonzero()[:, 0]
    stop = int(at[responses - 1]) + steps + 1 if len(at) >= responses else len(row.tokens)
    return replace(
        row,
        tokens=row.tokens[:stop],
        loss_mask=row.loss_mask[:stop],
        states=row.states[:stop],
        final=row.final[:stop],
    )


class RowError(Exception):
    """Why one row cannot be used."""


@dataclass(frozen=True, kw_only=True)
class RowReader:
    """Reads rows for one drafter: what a row must look like to be measured."""

    folder: RowFolder
    target_hidden_size: int
    vocab_size: int
    steps: int

    def rows(self) -> Iterator[Row | SkippedRow]:
        """Every row in order, one at a time. The first usable row sets how many states the others must hold."""
        captured: int | None = None
        for file in self.folder.files:
            row = self._try(file)
            if isinstance(row, Row):
                captured = captured or row.states.shape[1]
                if row.states.shape[1] != captured:
                    reason = f"it holds {row.states.shape[1]} captured states, the rows before it: {captured}"
                    row = SkippedRow(name=file.name, reason=reason)
            yield row

    def _try(self, file: RowFile) -> Row | SkippedRow:
        try:
            return self.read(file)
        except RowError as error:
            return SkippedRow(name=file.name, reason=str(error))

    def read(self, file: RowFile) -> Row:
        """Read and check one row. Raises RowError."""
        value = _load(file)
        merged = self._merged_line(file)
        tokens = self._tokens(value, merged)
        mask = _integers(merged if "loss_mask" in merged else value, "loss_mask").ne(0)
        states = self._states(_first(value, AUX_NAMES))
        final = _matrix(_first(value, FINAL_NAMES), "the final state")
        self._check(tokens, mask, states, final)
        first_response = int(mask.to(torch.int64).argmax())
        prompt = merged.get("n_prompt_tokens")
        source = merged.get("source")
        return Row(
            name=file.name,
            tokens=tokens,
            loss_mask=mask,
            states=states,
            final=final,
            prompt_tokens=prompt if isinstance(prompt, int) and 0 < prompt <= len(tokens) else first_response,
            source=source if isinstance(source, str) else None,
        )

    def _merged_line(self, file: RowFile) -> dict[str, Any]:
        if self.folder.merged is None:
            return {}
        line = self.folder.merged.line(file.number)
        if isinstance(line, str):
            raise RowError(line)
        return line

    def _tokens(self, value: dict[str, Any], merged: dict[str, Any]) -> torch.Tensor:
        tokens = _integers(merged if "input_ids" in merged else value, "input_ids")
        if "input_ids" in merged and "input_ids" in value and not torch.equal(tokens, _integers(value, "input_ids")):
            raise RowError("its input_ids differ from its line of the merged JSONL")
        return tokens

    def _states(self, found: object) -> torch.Tensor:
        flat = _matrix(found, "the captured states")
        size = self.target_hidden_size
        if flat.shape[1] == 0 or flat.shape[1] % size:
            raise RowError(
                f"its captured states must be n * {size} wide (the drafter's target), found: {flat.shape[1]}"
            )
        return flat.reshape(len(flat), -1, size)

    def _check(self, tokens: torch.Tensor, mask: torch.Tensor, states: torch.Tensor, final: torch.Tensor) -> None:
        lengths = {len(tokens), len(mask), len(states), len(final)}
        if len(lengths) > 1:
            raise RowError(
                f"lengths differ: {len(tokens)} tokens, {len(mask)} of loss mask, {len(states)} captured, "
                f"{len(final)} final states"
            )
        if final.shape[1] != self.target_hidden_size:
            raise RowError(f"its final state must be {self.target_hidden_size} wide, found: {final.shape[1]}")
        if not bool(mask.any()):
            raise RowError("its loss mask is all zero: there is no response token to judge")
        if len(tokens) <= self.steps:
            raise RowError(
                f"it has {len(tokens)} tokens; a chain of {self.steps} steps needs at least: {self.steps + 1}"
            )
        if int(tokens.min()) < 0 or int(tokens.max()) >= self.vocab_size:
            raise RowError(
                f"its token ids must be 0..{self.vocab_size - 1}, found: {int(tokens.min())}..{int(tokens.max())}"
            )
        if not bool(torch.isfinite(states).all()) or not bool(torch.isfinite(final).all()):
            raise RowError("its states hold NaN or infinity")


def _load(file: RowFile) -> dict[str, Any]:
    """The row's dict, weights-only: a file that would build objects or call functions is refused."""
    try:
        data = file.path.read_bytes()
        if file.name.endswith(".gz"):
            data = gzip.decompress(data)
        value = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if any(word in str(error) for word in PICKLED):
            raise RowError("it holds pickled objects, which are refused: only plain tensors are loaded") from None
        raise RowError("it is not a torch.save file") from None
    except (OSError, EOFError, zlib.error, RuntimeError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RowError(f"it is damaged or not a torch.save file: {reason[:200]}") from None
    if not isinstance(value, dict):
        raise RowError(f"it must hold a dict of tensors, found: {type(value).__name__}")
    return value


def _first(value: dict[str, Any], names: tuple[str, ...]) -> object:
    for name in names:
        if name in value:
            return value[name]
    raise RowError(f"it lacks `{names[0]}`; it holds: {', '.join(map(str, value)) or 'nothing'}")


def _integers(value: dict[str, Any], name: str) -> torch.Tensor:
    """A (T,) int64 vector from a tensor [T] or [1, T], or a JSON list."""
    found = _first(value, (name,))
    if isinstance(found, list) and all(isinstance(item, int | float) and abs(item) < 2**53 for item in found):
        found = torch.tensor(found, dtype=torch.float64)
    if not _is_plain(found) or bool((found != found.to(torch.int64)).any()):
        raise RowError(f"`{name}` must be whole numbers in a list or tensor, found: {_kind(found)}")
    flat = found[0] if found.dim() == 2 and found.shape[0] == 1 else found
    if flat.dim() != 1:
        raise RowError(f"`{name}` must have shape [T] or [1, T], found: {list(found.shape)}")
    return flat.to(torch.int64)


def _matrix(found: object, what: str) -> torch.Tensor:
    """A (T, width) float matrix from [T, width] or [1, T, width]."""
    if not _is_plain(found) or not found.is_floating_point():
        raise RowError(f"{what} must be a tensor of floats, found: {_kind(found)}")
    flat = found[0] if found.dim() == 3 and found.shape[0] == 1 else found
    if flat.dim() != 2:
        raise RowError(f"{what} must have shape [1, T, width] or [T, width], found: {list(found.shape)}")
    return flat


def _is_plain(found: object) -> TypeGuard[torch.Tensor]:
    """Whether a value is an ordinary tensor: not sparse, quantised, complex or without data."""
    return (
        isinstance(found, torch.Tensor)
        and found.layout is torch.strided
        and not found.is_quantized
        and not found.is_complex()
        and found.device.type == "cpu"
    )


def _kind(found: object) -> str:
    return f"{found.dtype}, {found.layout}" if isinstance(found, torch.Tensor) else type(found).__name__
