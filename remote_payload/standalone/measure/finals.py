"""The readings that are measured on all rows, and the measuring."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from remote_payload.standalone.graph import Graph, Reading, distinct
from remote_payload.standalone.journal import Journal
from remote_payload.standalone.machine import trim_heap
from remote_payload.standalone.measure.acceptance import (
    JudgedRow,
    aims,
    judge_row,
    proposals,
    reading_hits,
    row_facts,
    unpacked,
)
from remote_payload.standalone.measure.hits_file import HitsFile
from remote_payload.standalone.measure.partial import FullRow, Partial
from remote_payload.standalone.measure.sweep import Found
from remote_payload.standalone.measure.tally import Measurer, Tally, counted_hits
from remote_payload.standalone.measure.task import Task
from remote_payload.standalone.rows.row import Row
from remote_payload.standalone.rows.source import RowSource

MOST = 8
"""So many readings are measured on all rows at most."""

Split = Literal["train", "heldout"]
Look = Callable[[Row, torch.Tensor], None]
"""Takes in a row and the teacher's choices (T,)."""


def finalists(found: Found, task: Task, served: Graph, missing: Callable[[Graph], str | None]) -> list[Reading]:
    """Best, runner-up, as served, as declared, as wanted; then the best one with each of its differences taken back.

    `served` is what the engine computes; `missing` says what the drafter lacks for a graph, and such readings are left
    out. Each difference thus has its own pair, on all rows.
    """
    best, graph = found.best, task.graph(found.best)
    slots = task.declared.slots if task.declared else best.slots
    as_served = task.under(Reading(slots=slots, token_offset=1), served)
    wanted = [best, found.runner_up, as_served, task.declared]
    wanted += [None if task.wanted is None else task.under(task.wanted, graph)]
    wanted += [task.under(replace(best, slots=slots), graph), task.under(replace(best, token_offset=1), graph)]
    for other in (served, task.own):
        for name in vars(graph):
            back = replace(graph, **{name: getattr(other, name)})
            wanted.append(task.under(best, back))
    named = distinct(reading for reading in wanted if reading is not None)
    return [reading for reading in named if missing(task.graph(reading)) is None][:MOST]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What was gone through."""

    rows: int
    tokens: int
    response_tokens: int


@dataclass(frozen=True, kw_only=True)
class FullMeasure:
    """Measures readings on every usable row of one split."""

    measurer: Measurer
    journal: Journal
    partial: Partial
    split: Split

    def run(self, finals: list[Tally], source: RowSource, hits_file: HitsFile, look: Look) -> Counts:
        """Every final reading on every row, all steps, into the file; rows that another run measured are taken over."""
        rows = tokens = responses = 0
        total, started, speed = len(source.reader.folder.files), time.perf_counter(), ""
        for row in source.usable():
            facts, hits = self._row(rows, row, finals, source, look)
            hits_file.add_row(facts)
            for record in hits:
                hits_file.add_hits(record)
            trim_heap()
            rows += 1
            tokens += len(row.tokens)
            responses += int(row.loss_mask.sum())
            speed = f"{tokens / (time.perf_counter() - started):.0f} tokens/s"
            self.journal.progress("rows", rows + len(source.skipped), total, speed)
        self.journal.progress("rows", total, total, speed, last=True)
        return Counts(rows=rows, tokens=tokens, response_tokens=responses)

    def _row(self, index: int, row: Row, finals: list[Tally], source: RowSource, look: Look) -> FullRow:
        known = self.partial.full_row(self.split, row.name, [tally.reading.name for tally in finals])
        judged = judge_row(self.measurer.drafter, self.measurer.teacher, row, source.reader.steps)
        look(row, judged.answers)
        if known is None:
            known = self._measure(index, judged, finals, source.reader.steps)
            self.partial.keep_row(self.split, *known)
        else:
            for tally, record in zip(finals, known[1], strict=True):
                tally.add(counted_hits(judged, unpacked(record.hits, record.steps)[None])[0], 0.0, keep=False)
        return known

    def _measure(self, index: int, judged: JudgedRow, finals: Sequence[Tally], steps: int) -> FullRow:
        teacher, started = self.measurer.teacher, time.perf_counter()
        readings = [tally.reading for tally in finals]
        proposed = proposals(self.measurer.drafter, teacher, judged, readings, steps)  # (R, P, K)
        hits = (proposed == judged.wanted[:, :steps]).cpu()
        share = (time.perf_counter() - started) / len(finals)
        for tally, own in zip(finals, counted_hits(judged, hits), strict=True):
            tally.add(own, share, keep=False)
        wanted = self._wanted_in_vocab(judged, readings, steps)
        records = tuple(
            reading_hits(index, judged, reading, own, None if aim is None else (tokens == aim).cpu())
            for reading, own, tokens, aim in zip(readings, hits, proposed, wanted, strict=True)
        )
        return row_facts(index, judged, teacher, readings[0].graph), records

    def _wanted_in_vocab(
        self, judged: JudgedRow, readings: Sequence[Reading], steps: int
    ) -> Sequence[torch.Tensor | None]:
        """For each reading the teacher's choices among the drafter's tokens, (P, K); None = no final state is stored.

        The head speaks once for all readings of one vocabulary, which are mostly all of them.
        """
        teacher, final = self.measurer.teacher, judged.row.final
        if final is None:
            return [None] * len(readings)
        made: dict[str | None, torch.Tensor] = {}
        for reading in readings:
            name = reading.graph.vocabulary if reading.graph else None
            if name not in made:
                choices = teacher.answers_in_vocab(final, judged.answers, reading.graph)
                made[name] = aims(choices, judged.positions, steps).to(judged.wanted.device)
        return [made[reading.graph.vocabulary if reading.graph else None] for reading in readings]
