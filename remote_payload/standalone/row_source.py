"""The rows of a job, again and again from the start: read, checked, prepared; unusable ones noted once by name."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import torch

from remote_payload.schema.standalone import SkippedRow
from remote_payload.standalone.acceptance import JudgedRow, judge_row
from remote_payload.standalone.checkpoint import Checkpoint
from remote_payload.standalone.embedding_slots import embedding_shares, embedding_slots
from remote_payload.standalone.final_state import final_state_kind
from remote_payload.standalone.fit import no_usable_row
from remote_payload.standalone.journal import Journal
from remote_payload.standalone.rows import Row, RowReader, beginning
from remote_payload.standalone.wiring import Measurer

SEARCH_RESPONSES = 256
"""Response tokens of a row that the search looks at: long rows would cost much and tell little more."""


SAMPLE_ROWS = 5
"""Rows looked at before anything is measured: what most of them hold is what the rows hold."""
AGREEING_ROWS = 3
"""So many of one kind end the look."""
TOLD_ROWS = 5
"""Skipped rows told one by one; the result names them all."""


@dataclass(frozen=True, kw_only=True)
class RowKind:
    """What the rows hold, by the first few usable ones."""

    captured: int
    """How many captured states."""
    dtype: str
    final_state: Literal["post_norm", "pre_norm"]
    embedding_slots: tuple[int, ...] | None
    """Captured states that are the target's embedding output; None = its embedding is unknown."""


class RowSource:
    """Streams the rows of one job; only a few short ones are ever in memory together."""

    def __init__(self, reader: RowReader, measurer: Measurer, journal: Journal) -> None:
        self.reader = reader
        self.skipped: dict[str, SkippedRow] = {}
        self._captured: int | None = None
        self._measurer, self._journal = measurer, journal

    def look(self, checkpoint: Checkpoint, labels: int | None) -> RowKind:
        """Look at the first usable rows; a final state before the target's norm will be normed from now on.

        Rows with another number of states than most of them, or than there are `labels`, are skipped from now on.
        Raises JobFailure(rows) when no row can be used.
        """
        captured = self._captured = self._count_states(labels)
        row = next(self._usable())
        norm = checkpoint.target_norm
        kind = "post_norm" if norm is None else final_state_kind(row.final, norm)
        if kind == "pre_norm" and norm is not None:
            self._measurer.teacher.expect_pre_norm(norm, checkpoint.target.rms_norm_eps)
            self._journal.warn(
                "final_state", "the rows' final state is not normed; the target's final norm was applied"
            )
        return RowKind(
            captured=captured,
            dtype=str(row.states.dtype).removeprefix("torch."),
            final_state=kind,
            embedding_slots=self._embedding_slots(checkpoint),
        )

    def judged(self) -> Iterator[JudgedRow]:
        """Every usable row, prepared for readings."""
        for row in self._usable():
            yield self._judge(row)

    def first(self, count: int, doing: str) -> Iterator[JudgedRow]:
        """The beginnings of the first usable rows, with progress told as `doing`: enough to choose by."""
        total = min(count, len(self.reader.folder.files))
        for index, row in enumerate(islice(self._usable(), count)):
            self._journal.progress("wirings", index, total, doing)
            yield self._judge(beginning(row, SEARCH_RESPONSES, self.reader.steps))

    def told(self) -> None:
        """Tell how many rows were skipped beyond those told one by one."""
        more = len(self.skipped) - TOLD_ROWS
        if more > 0:
            self._journal.tell_skipped(f"{more} more", "skipped as well; the result names them")

    def _count_states(self, labels: int | None) -> int:
        counts: Counter[int] = Counter()
        for row in islice(self._usable(), SAMPLE_ROWS):
            counts[row.states.shape[1]] += 1
            if row.states.shape[1] == labels or max(counts.values()) == AGREEING_ROWS:
                break
        if not counts:
            raise no_usable_row(self.reader.folder.folder, tuple(self.skipped.values()))
        return labels if labels in counts else counts.most_common(1)[0][0]

    def _embedding_slots(self, checkpoint: Checkpoint) -> tuple[int, ...] | None:
        table = checkpoint.target_embedding()
        if table is None:
            return None
        rows = (beginning(row, SEARCH_RESPONSES, 0) for row in islice(self._usable(), AGREEING_ROWS))
        shares = [embedding_shares(row.states, row.tokens, table) for row in rows]
        return embedding_slots(torch.stack(shares).mean(dim=0))

    def _judge(self, row: Row) -> JudgedRow:
        return judge_row(self._measurer.drafter, self._measurer.teacher, row, self.reader.steps)

    def _usable(self) -> Iterator[Row]:
        for row in self.reader.rows(self._captured):
            if isinstance(row, Row):
                yield row
            elif row.name not in self.skipped:
                self.skipped[row.name] = row
                if len(self.skipped) <= TOLD_ROWS:
                    self._journal.tell_skipped(row.name, row.reason)
