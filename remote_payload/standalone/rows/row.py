"""Reading captured rows one at a time, weights-only, and refusing what cannot be measured, with the reason.

Every dialect becomes the same `Row`; states stay mapped in the file where the file allows it. Only one row at a time is
in memory.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace

import torch

from remote_payload.schema.standalone import DataDialectFacts, SkippedRow
from remote_payload.standalone.rows.files import RowFile, RowFolder
from remote_payload.standalone.rows.length import longest_tokens
from remote_payload.standalone.rows.load import UNREADABLE
from remote_payload.standalone.rows.masks import ORDINARY, MaskSigns
from remote_payload.standalone.rows.raw import RawRow, read_raw
from remote_payload.standalone.rows.stacks import stacked
from remote_payload.standalone.rows.values import LENGTHS_DIFFER, RowError, check_numbers, first_line, matrix


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
    prompt_stated: bool = False
    """Whether the merged line says where the prompt ends."""
    answers: torch.Tensor | None = None  # (T,) int64 the teacher's stored choices y_j, -1 = unknown
    dialect: DataDialectFacts | None = None
    mask_signs: MaskSigns = ORDINARY


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
    table: torch.Tensor | None = field(default=None, repr=False, compare=False)
    """The target's embedding (V, Ht), where its output goes before the states that a row holds."""
    _sound: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    """Rows whose numbers were looked at and found finite: each is looked at once."""

    def rows(
        self, captured: int | None = None, unusable: Container[str] = (), dialect: str | None = None
    ) -> Iterator[Row | SkippedRow]:
        """Every row in order but the ones known to be `unusable`, one at a time.

        Those with another number of states than `captured`, or of another `dialect`, are skipped.
        """
        for file in self.folder.files:
            if file.name in unusable:
                continue
            row = self._try(file)
            if isinstance(row, Row):
                row = _like_the_others(row, captured, dialect)
            yield row

    def longest_tokens(self, captured: int | None = None) -> int:
        """No usable row has more tokens: a bound from headers and sizes, closer where `captured` is known."""
        added = 0 if self.table is None else 1
        return longest_tokens(self.folder, self.target_hidden_size, None if captured is None else captured - added)

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
        if file.odd is not None:
            raise RowError(file.odd)
        raw = read_raw(file, self.folder)
        states = stacked(raw.states, "captured states", self.target_hidden_size, raw.stored)
        final = None if raw.final is None else matrix(raw.final, "the final state")
        if raw.final is None and raw.answers is None:
            states, final = _split_final(states)
        part = slice(raw.start, raw.stop)
        row = Row(
            name=file.name,
            tokens=raw.tokens,
            loss_mask=raw.loss_mask,
            states=self._cut(states, raw, part),
            final=None if final is None else self._cut(final, raw, part),
            prompt_tokens=_prompt(raw),
            source=raw.source,
            prompt_stated=_states_prompt(raw),
            answers=raw.answers,
            dialect=raw.dialect,
            mask_signs=raw.mask_signs,
        )
        self._check(row)
        return row if self.table is None else _with_embedding(row, self.table)

    def _cut(self, states: torch.Tensor, raw: RawRow, part: slice) -> torch.Tensor:
        """Without the padding, where states were stored for it as well; another length is told by the check."""
        return states[part] if len(states) == raw.stored else states

    def _check(self, row: Row) -> None:
        tokens, final = row.tokens, row.final
        lengths = {len(tokens), len(row.loss_mask), len(row.states), len(tokens if final is None else final)}
        if len(lengths) > 1:
            raise RowError(
                f"{LENGTHS_DIFFER}{len(tokens)} tokens, {len(row.loss_mask)} of loss mask, {len(row.states)} captured, "
                f"{'no' if final is None else len(final)} final states"
            )
        if final is not None and final.shape[1] != self.target_hidden_size:
            raise RowError(f"its final state must be {self.target_hidden_size} wide, found: {final.shape[1]}")
        if len(tokens) <= self.steps:
            raise RowError(
                f"it has {len(tokens)} tokens; a chain of {self.steps} steps needs at least: {self.steps + 1}"
            )
        if not bool(row.loss_mask.any()):
            raise RowError("its loss mask is all zero: there is no response token to judge")
        if int(tokens.min()) < 0 or int(tokens.max()) >= self.vocab_size:
            raise RowError(
                f"its token ids must be 0..{self.vocab_size - 1}, found: {int(tokens.min())}..{int(tokens.max())}"
            )
        if row.answers is not None and int(row.answers.max()) >= self.vocab_size:
            raise RowError(f"its teacher's choices must be 0..{self.vocab_size - 1}, found: {int(row.answers.max())}")
        if row.name in self._sound:
            return
        check_numbers(row.states, "captured states")
        if final is not None:
            check_numbers(final, "final states")
        self._sound.add(row.name)


def _like_the_others(row: Row, captured: int | None, dialect: str | None) -> Row | SkippedRow:
    found = row.states.shape[1]
    if dialect is not None and row.dialect is not None and row.dialect.name != dialect:
        return SkippedRow(name=row.name, reason=f"it is a row of {row.dialect.name}, most rows are of: {dialect}")
    if captured is not None and found != captured:
        return SkippedRow(name=row.name, reason=f"it holds {found} captured states, expected: {captured}")
    return row


def _with_embedding(row: Row, table: torch.Tensor) -> Row:
    """With the target's embedding output before its captured states, in their dtype: that in which a server embeds."""
    return replace(row, states=torch.cat((table[row.tokens].to(row.states.dtype)[:, None], row.states), dim=1))


def _split_final(states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if states.shape[1] < 2:
        raise RowError(f"its states must be captured ones and the final one last, found: {states.shape[1]}")
    return states[:, :-1], states[:, -1]


def _prompt(raw: RawRow) -> int:
    """Tokens before the first response token, unless the merged JSONL says better."""
    first = int(raw.loss_mask.to(torch.int64).argmax()) if len(raw.loss_mask) else 0
    return raw.prompt_tokens if raw.prompt_tokens is not None and _states_prompt(raw) else first


def _states_prompt(raw: RawRow) -> bool:
    return raw.prompt_tokens is not None and 0 < raw.prompt_tokens <= len(raw.tokens)
