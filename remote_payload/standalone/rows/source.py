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
from remote_payload.standalone.measure.acceptance import JudgedRow, judge_row
from remote_payload.standalone.measure.tally import Measurer
from remote_payload.standalone.rows.embedding_slots import embedding_slots
from remote_payload.standalone.rows.final_state import final_state_kind
from remote_payload.standalone.rows.fit import no_usable_row
from remote_payload.standalone.rows.row import Row, RowReader, beginning

SEARCH_RESPONSES = 256
"""Response tokens of a row that the search looks at: long rows would cost much and tell little more."""
SAMPLE_ROWS = 5
"""Rows looked at before anything is measured: what most of them hold is what the rows hold."""
SAMPLE_TOKENS = 256
"""About so many of a row's tokens are compared with the target's embedding."""
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


class RowSource:
    """Streams the rows of one job; only one row is in memory."""

    def __init__(self, reader: RowReader, measurer: Measurer, journal: Journal) -> None:
        self.reader = reader
        self.skipped: dict[str, SkippedRow] = {}
        self._captured: int | None = None
        self._dialect: str | None = None
        self._measurer, self._journal = measurer, journal

    def look(self, checkpoint: Checkpoint, labels: int | None) -> RowKind:
        """Look at the first usable rows; a final state before the target's norm will be normed from now on.

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
        norm = checkpoint.target_norm
        if most.final_state == "pre_norm" and norm is not None:
            self._measurer.teacher.expect_pre_norm(norm, checkpoint.target.rms_norm_eps)
            self._journal.warn(
                "final_state", "the rows' final state is not normed; the target's final norm was applied"
            )
        return most

    def first(self, count: int, doing: str) -> Iterator[JudgedRow]:
        """The beginnings of the first usable rows, with progress told as `doing`: enough to choose by."""
        total = min(count, len(self.reader.folder.files))
        for index, row in enumerate(islice(self.usable(), count)):
            self._journal.progress("wirings", index, total, doing)
            yield self.judge(beginning(row, SEARCH_RESPONSES, self.reader.steps))

    def first_done(self, count: int, doing: str) -> None:
        """Tell that enough was seen of what `first` gave, which may be less than all of it."""
        total = min(count, len(self.reader.folder.files))
        self._journal.progress("wirings", total, total, doing, last=True)

    def tell_more_skipped(self) -> None:
        """Tell how many rows were skipped beyond those told one by one."""
        more = len(self.skipped) - TOLD_ROWS
        if more > 0:
            self._journal.tell_skipped(f"{more} more", "skipped as well; the result names them")

    def _sample(self, checkpoint: Checkpoint) -> list[RowKind]:
        norm, table = checkpoint.target_norm, checkpoint.target.embedding(checkpoint.config)
        kinds: list[RowKind] = []
        for row in islice(self.usable(), SAMPLE_ROWS):
            few = slice(None, None, max(1, len(row.tokens) // SAMPLE_TOKENS))  # all over the row, and small as floats
            kinds.append(
                RowKind(
                    captured=row.states.shape[1],
                    dtype=str(row.states.dtype).removeprefix("torch."),
                    final_state=_final_state(row, norm),
                    dialect=row.dialect,
                    embedding_slots=None if table is None else embedding_slots(row.states[few], row.tokens[few], table),
                )
            )
            if kinds.count(kinds[-1]) == AGREEING_ROWS:
                break
        if not kinds:
            raise no_usable_row(self.reader.folder.folder, tuple(self.skipped.values()))
        return kinds

    def judge(self, row: Row) -> JudgedRow:
        """Prepare a row for readings."""
        return judge_row(self._measurer.drafter, self._measurer.teacher, row, self.reader.steps)

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
    return "post_norm" if norm is None else final_state_kind(row.final, norm)
