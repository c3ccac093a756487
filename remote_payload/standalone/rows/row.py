"""Reading captured rows one at a time, weights-only, and refusing what cannot be measured, with the reason.

A row file is a torch.save'd dict: input_ids, loss_mask, aux_hidden_state [1, T, n * Ht], hidden_state [1, T, Ht] (after
the final norm, as SpecForge writes it). With a merged JSONL, tokens and mask come from its line. Only one row at a time
is in memory.
"""

import math
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from remote_payload.schema.standalone import SkippedRow
from remote_payload.standalone.rows.files import RowFile, RowFolder
from remote_payload.standalone.rows.load import UNREADABLE, load_dict
from remote_payload.standalone.rows.values import RowError, first_line, first_of, integers, matrix

AUX_NAMES = ("aux_hidden_state", "aux_hidden_states")
FINAL_NAMES = ("hidden_state", "hidden_states")
LARGEST_STATE = 1e9
"""Beyond it numbers are not a model's: the largest real activations are some ten thousands."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One captured row, on the CPU, in its stored dtype."""

    name: str
    tokens: torch.Tensor  # (T,) int64
    loss_mask: torch.Tensor  # (T,) bool
    states: torch.Tensor  # (T, n, Ht)
    final: torch.Tensor | None  # (T, Ht); None where the rows store the teacher's choices instead
    prompt_tokens: int
    source: str | None
    answers: torch.Tensor | None = None  # (T,) int64 the teacher's stored choices y_j, -1 = unknown


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
        final=None if row.final is None else row.final[:stop],
        answers=None if row.answers is None else row.answers[:stop],
    )


@dataclass(frozen=True, kw_only=True)
class RowReader:
    """Reads rows for one drafter: what a row must look like to be measured."""

    folder: RowFolder
    target_hidden_size: int
    vocab_size: int
    steps: int

    def rows(self, captured: int | None = None, unusable: Container[str] = ()) -> Iterator[Row | SkippedRow]:
        """Every row in order but the ones known to be `unusable`, one at a time.

        Those with another number of states than `captured` are skipped.
        """
        for file in self.folder.files:
            if file.name in unusable:
                continue
            row = self._try(file)
            if isinstance(row, Row) and row.states.shape[1] != (captured or row.states.shape[1]):
                reason = f"it holds {row.states.shape[1]} captured states, expected: {captured}"
                row = SkippedRow(name=file.name, reason=reason)
            yield row

    def _try(self, file: RowFile) -> Row | SkippedRow:
        """The one place where whatever a file may do to its reader becomes a skipped row with a reason."""
        try:
            return self.read(file)
        except RowError as error:
            reason = str(error)
        except OSError as error:
            reason = f"it cannot be read: {error.strerror or first_line(error)}"
        except UNREADABLE as error:
            reason = f"it cannot be used: {first_line(error)} ({type(error).__name__})"
        return SkippedRow(name=file.name, reason=reason)

    def read(self, file: RowFile) -> Row:
        """Read and check one row. Raises RowError, or UNREADABLE where a file is odd in a way nobody thought of."""
        value = load_dict(file.path)
        merged = self._merged_line(file)
        tokens = self._tokens(value, merged)
        mask = integers(merged if "loss_mask" in merged else value, "loss_mask").ne(0)
        states = self._states(first_of(value, AUX_NAMES))
        final = matrix(first_of(value, FINAL_NAMES), "the final state")
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
        tokens = integers(merged if "input_ids" in merged else value, "input_ids")
        if "input_ids" in merged and "input_ids" in value and not torch.equal(tokens, integers(value, "input_ids")):
            raise RowError("its input_ids differ from its line of the merged JSONL")
        return tokens

    def _states(self, found: object) -> torch.Tensor:
        flat = matrix(found, "the captured states")
        size = self.target_hidden_size
        if flat.shape[1] == 0 or flat.shape[1] % size:
            raise RowError(
                f"its captured states must be n * {size} wide (the drafter's target), found: {flat.shape[1]}"
            )
        return flat.reshape(len(flat), flat.shape[1] // size, size)

    def _check(self, tokens: torch.Tensor, mask: torch.Tensor, states: torch.Tensor, final: torch.Tensor) -> None:
        lengths = {len(tokens), len(mask), len(states), len(final)}
        if len(lengths) > 1:
            raise RowError(
                f"lengths differ: {len(tokens)} tokens, {len(mask)} of loss mask, {len(states)} captured, "
                f"{len(final)} final states"
            )
        if final.shape[1] != self.target_hidden_size:
            raise RowError(f"its final state must be {self.target_hidden_size} wide, found: {final.shape[1]}")
        if len(tokens) <= self.steps:
            raise RowError(
                f"it has {len(tokens)} tokens; a chain of {self.steps} steps needs at least: {self.steps + 1}"
            )
        if not bool(mask.any()):
            raise RowError("its loss mask is all zero: there is no response token to judge")
        if int(tokens.min()) < 0 or int(tokens.max()) >= self.vocab_size:
            raise RowError(
                f"its token ids must be 0..{self.vocab_size - 1}, found: {int(tokens.min())}..{int(tokens.max())}"
            )
        for what, found in (("captured states", states), ("final states", final)):
            largest = max(abs(float(bound)) for bound in torch.aminmax(found))  # NaN comes through; ten times isfinite
            if not math.isfinite(largest):
                raise RowError(f"there is NaN or infinity in its {what}")
            if largest > LARGEST_STATE:
                raise RowError(f"a model's {what} stay below {LARGEST_STATE:.0e}, found: {largest:.3g}")
