"""The rows of a job, again and again from the start: read, checked, prepared; unusable ones noted once by name."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from remote_payload.schema.standalone import SkippedRow
from remote_payload.standalone.acceptance import JudgedRow, judge_row
from remote_payload.standalone.checkpoint import Checkpoint
from remote_payload.standalone.final_state import final_state_kind
from remote_payload.standalone.fit import no_usable_row
from remote_payload.standalone.journal import Journal
from remote_payload.standalone.rows import Row, RowReader, beginning
from remote_payload.standalone.wiring import Measurer

SEARCH_RESPONSES = 256
"""Response tokens of a row that the search looks at: long rows would cost much and tell little more."""


@dataclass(frozen=True, kw_only=True)
class RowKind:
    """What the rows hold, by the first usable one."""

    captured: int
    """How many captured states."""
    dtype: str
    final_state: Literal["post_norm", "pre_norm"]


class RowSource:
    """Streams the rows of one job; only one row is in memory."""

    def __init__(self, reader: RowReader, measurer: Measurer, journal: Journal) -> None:
        self.reader = reader
        self.skipped: dict[str, SkippedRow] = {}
        self._measurer, self._journal = measurer, journal

    def look(self, checkpoint: Checkpoint) -> RowKind:
        """Look at the first usable row; a final state before the target's norm will be normed from now on.

        Raises JobFailure(rows) when no row can be used.
        """
        row = next(self._usable(), None)
        if row is None:
            raise no_usable_row(self.reader.folder.folder, tuple(self.skipped.values()))
        norm = checkpoint.target_norm
        kind = "post_norm" if norm is None else final_state_kind(row.final, norm)
        if kind == "pre_norm" and norm is not None:
            self._measurer.teacher.expect_pre_norm(norm, checkpoint.target.rms_norm_eps)
            self._journal.warn(
                "final_state", "the rows' final state is not normed; the target's final norm was applied"
            )
        return RowKind(
            captured=row.states.shape[1], dtype=str(row.states.dtype).removeprefix("torch."), final_state=kind
        )

    def judged(self) -> Iterator[JudgedRow]:
        """Every usable row, prepared for readings."""
        for row in self._usable():
            yield self._judge(row)

    def first(self, count: int, doing: str) -> Iterator[JudgedRow]:
        """The beginnings of the first usable rows, with progress told as `doing`: enough to choose by."""
        for index, row in enumerate(islice(self._usable(), count)):
            self._journal.progress("wirings", index, count, doing)
            yield self._judge(beginning(row, SEARCH_RESPONSES, self.reader.steps))

    def _judge(self, row: Row) -> JudgedRow:
        return judge_row(self._measurer.drafter, self._measurer.teacher, row, self.reader.steps)

    def _usable(self) -> Iterator[Row]:
        for row in self.reader.rows():
            if isinstance(row, Row):
                yield row
            elif row.name not in self.skipped:
                self.skipped[row.name] = row
                self._journal.tell_skipped(row.name, row.reason)
