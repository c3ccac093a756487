"""The facts of one split of rows, gathered while it is measured."""

from dataclasses import dataclass, field

import torch

from remote_payload.schema.standalone import RowsFacts
from remote_payload.standalone.checkpoint.load import Checkpoint
from remote_payload.standalone.measure.finals import Counts
from remote_payload.standalone.rows.lint import Lint
from remote_payload.standalone.rows.row import Row
from remote_payload.standalone.rows.slots import SlotLook
from remote_payload.standalone.rows.source import RowKind, RowSource
from remote_payload.standalone.rows.teacher_look import TeacherLook

LOOKED_ROWS = 64
"""Rows whose captured states are looked at; every row is looked at as data."""


@dataclass
class SplitLook:
    """What rows say about themselves; `look` takes them in one by one."""

    lint: Lint
    slots: SlotLook
    teacher: TeacherLook
    seen: int = field(default=0)

    @classmethod
    def of(cls, checkpoint: Checkpoint, train: "SplitLook | None") -> "SplitLook":
        """A look at rows; `train` is that of the train rows, done."""
        target, norm = checkpoint.target, checkpoint.target_norm
        table = target.embedding(checkpoint.config)
        return cls(
            lint=Lint(train.lint if train else None),
            slots=SlotLook(table, checkpoint.teacher_head, norm, target.rms_norm_eps),
            teacher=TeacherLook(norm),
        )

    def look(self, row: Row, answers: torch.Tensor) -> None:
        """Take in a row and the teacher's choices (T,)."""
        self.lint.add(row)
        self.teacher.add(row, answers)
        if self.seen < LOOKED_ROWS:
            self.slots.add(row)
        self.seen += 1

    def facts(self, source: RowSource, kind: RowKind, states: tuple[int, ...] | None, counts: Counts) -> RowsFacts:
        """The split's record; `states` labels its captured states."""
        folder, skipped = source.reader.folder, tuple(source.skipped.values())
        return RowsFacts(
            folder=str(folder.folder),
            layout=folder.layout,
            found=len(folder.files),
            used=counts.rows,
            skipped=skipped,
            tokens=counts.tokens,
            response_tokens=counts.response_tokens,
            captured_states=kind.captured,
            states=states,
            computed=() if source.reader.table is None else (0,),
            final_state=kind.final_state,
            dtype=kind.dtype,
            embedding_slots=kind.embedding_slots,
            dialect=kind.dialect,
            slots=self.slots.facts(),
            teacher=self.teacher.facts(),
            lint=self.lint.facts(skipped),
        )
