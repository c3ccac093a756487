"""The rows of a job, again and again from the start: read, checked, prepared; unusable ones noted once by name."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import torch

from remote_payload.schema.standalone import DataDialectFacts, SkippedRow
from remote_payload.standalone.checkpoint.load import Checkpoint
from remote_payload.standalone.journal import Journal
from remote_payload.standalone.mapped import is_mapped, let_go, picked
from remote_payload.standalone.rows.embedding_slots import dead_slots, embedding_shift, embedding_slots
from remote_payload.standalone.rows.final_state import final_state_kind
from remote_payload.standalone.rows.fit import check_norm, no_usable_row
from remote_payload.standalone.rows.row import Row, RowReader, beginning

SEARCH_RESPONSES = 256
"""Response tokens of a row that the search looks at: long rows would cost much and tell little more."""
SAMPLE_ROWS = 5
"""Rows looked at before anything is measured: what most of them hold is what the rows hold."""
SAMPLE_TOKENS = 256
"""At most so many of a row's tokens are compared with the target's embedding, and are asked whether they are normed."""
AGREEING_ROWS = 3
"""So many of one kind end the look."""
TOLD_ROWS = 5
"""Skipped rows told one by one; the result names them all."""


@dataclass(frozen=True, kw_only=True)
class RowKind:
    """What a row holds, and so its like."""

    captured: int
    """How many captured states."""
    dtype: str
    final_state: Literal["post_norm", "pre_norm", "answers"]
    dialect: DataDialectFacts | None
    """Whose row it is, and what says so."""
    embedding_slots: tuple[int, ...] | None
    """Captured states that are the target's embedding output; None = its embedding is unknown."""
    embedding_shift: int
    dead_slots: tuple[int, ...]
    """Slots that hold one vector for all tokens."""
    """A captured state is the embedding output of the token so many further on, not of its own; 0 = none is so."""


class RowSource:
    """Streams the rows of one job; only one row is in memory."""

    def __init__(self, reader: RowReader, journal: Journal) -> None:
        self.reader = reader
        self.skipped: dict[str, SkippedRow] = {}
        self._captured: int | None = None
        self._dialect: str | None = None
        self._journal = journal

    def look(self, checkpoint: Checkpoint, labels: int | None) -> RowKind:
        """Look at the first usable rows.

        Rows of another dialect than most, or with another number of states than most of these, or than there are
        `labels`, are skipped from now on.
        Raises JobFailure(rows) when no row can be used.
        """
        kinds = self._sample(checkpoint)
        dialect, _ = Counter(kind.dialect for kind in kinds).most_common(1)[0]
        kinds = [kind for kind in kinds if kind.dialect == dialect]
        counts = Counter(kind.captured for kind in kinds)
        captured = labels if labels in counts else counts.most_common(1)[0][0]
        most, _ = Counter(kind for kind in kinds if kind.captured == captured).most_common(1)[0]
        self._captured, self._dialect = captured, dialect.name if dialect else None
        check_norm(self._dialect, checkpoint.target.folder, known=checkpoint.target_norm is not None)
        return most

    def first(self, count: int, doing: str) -> Iterator[Row]:
        """The beginnings of the first usable rows, with progress told as `doing`: enough to choose by."""
        total = min(count, len(self.reader.folder.files))
        for index, row in enumerate(islice(self.usable(), count)):
            self._journal.progress("wirings", index, total, doing)
            yield beginning(row, SEARCH_RESPONSES, self.reader.steps)

    def tell_more_skipped(self) -> None:
        """Tell how many rows were skipped beyond those told one by one."""
        more = len(self.skipped) - TOLD_ROWS
        if more > 0:
            self._journal.tell_skipped(f"{more} more", "skipped as well; the result names them")

    def _sample(self, checkpoint: Checkpoint) -> list[RowKind]:
        norm, table = checkpoint.target_norm, checkpoint.target.embedding(checkpoint.config)
        kinds: list[RowKind] = []
        for row in islice(self.usable(), SAMPLE_ROWS):
            few = torch.arange(0, len(row.tokens), -(-len(row.tokens) // SAMPLE_TOKENS))  # all over it, small as floats
            known = None if table is None else embedding_slots(picked(row.states, few), row.tokens[few], table)
            shift = embedding_shift(row.states, row.tokens, table) if table is not None and known == () else 0
            let_go(row.states)
            kinds.append(
                RowKind(
                    captured=row.states.shape[1],
                    dtype=str(row.states.dtype).removeprefix("torch."),
                    final_state=_final_state(row, norm),
                    dialect=row.dialect,
                    embedding_slots=known,
                    embedding_shift=shift,
                    dead_slots=dead_slots(picked(row.states, few)),
                )
            )
            if kinds.count(kinds[-1]) == AGREEING_ROWS:
                break
        if not kinds:
            raise no_usable_row(self.reader.folder.folder, tuple(self.skipped.values()))
        return kinds

    def read_by_map(self) -> bool:
        """Whether the rows' states stay in their files until they are looked at, by the first usable row."""
        row = next(self.usable(), None)
        packed = any(file.path.name.endswith(".gz") for file in self.reader.folder.files)
        return row is not None and not packed and is_mapped(row.states) and (row.final is None or is_mapped(row.final))

    def usable(self) -> Iterator[Row]:
        """Usable rows; an unusable one is read once, however often the rows are gone through."""
        for row in self.reader.rows(self._captured, self.skipped, self._dialect):
            if isinstance(row, Row):
                yield row
                continue
            self.skipped[row.name] = row
            if len(self.skipped) <= TOLD_ROWS:
                self._journal.tell_skipped(row.name, row.reason)


def _final_state(row: Row, norm: torch.Tensor | None) -> Literal["post_norm", "pre_norm", "answers"]:
    if row.final is None:
        return "answers"
    few = picked(row.final, torch.arange(0, len(row.final), -(-len(row.final) // SAMPLE_TOKENS)))
    return "post_norm" if norm is None else final_state_kind(few, norm)
