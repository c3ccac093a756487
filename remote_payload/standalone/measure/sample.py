"""The rows that readings are chosen on: the beginnings of a few, on which nothing is measured twice."""

import time
from collections.abc import Iterator, Sequence

import torch

from remote_payload.standalone.graph import Reading
from remote_payload.standalone.journal import Journal
from remote_payload.standalone.measure.acceptance import JudgedRow, judge_row, measure
from remote_payload.standalone.measure.partial import Partial
from remote_payload.standalone.measure.tally import Measurer, Tally, counted_hits
from remote_payload.standalone.rows.source import RowSource

KEPT_BYTES = 512 << 20
"""Prepared rows are kept between passes while all they may come to hold stays below; else they are read again."""


class Sample:
    """`count` usable rows after the first `skip`, gone through again and again."""

    def __init__(
        self,
        source: RowSource,
        measurer: Measurer,
        journal: Journal,
        partial: Partial,
        span: tuple[int, int],
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        """`span` is (skip, count)."""
        self._source, self._measurer, self._journal, self._partial = source, measurer, journal, partial
        self._skip, self._count = span
        self._kept_bytes = kept_bytes
        self._kept: dict[int, JudgedRow] = {}
        self._complete = False

    @property
    def rows_in_all(self) -> int:
        """Rows that the final readings are measured on, about: unusable ones are among them."""
        return len(self._source.reader.folder.files)

    def rows(self, doing: str) -> Iterator["SampleRow"]:
        """Every row of the sample, prepared; progress is told as `doing`."""
        total = min(self._count, max(0, len(self._source.reader.folder.files) - self._skip))
        if self._complete:
            for index, judged in self._kept.items():
                self._journal.progress("wirings", index - self._skip, total, doing)
                yield self._row(index, judged)
        else:
            seen = 0
            for index, row in enumerate(self._source.first(self._skip + self._count, doing)):
                if index < self._skip:
                    continue
                seen += 1
                judged = judge_row(self._measurer.drafter, self._measurer.teacher, row, self._source.reader.steps)
                if _room(judged, self._measurer) * self._count <= self._kept_bytes:
                    self._kept[index] = judged
                yield self._row(index, judged)
            self._complete = len(self._kept) == seen
        self._journal.progress("wirings", total, total, doing, last=True)

    def _row(self, index: int, judged: JudgedRow) -> "SampleRow":
        return SampleRow(index, judged, self._measurer, self._partial)


class SampleRow:
    """One row of a sample."""

    def __init__(self, index: int, judged: JudgedRow, measurer: Measurer, partial: Partial) -> None:
        self.index, self.judged = index, judged
        self._measurer, self._partial = measurer, partial

    def add(self, tallies: Sequence[Tally], steps: int) -> None:
        """Measure the tallies' readings here, as far as they were not measured before, and add to them."""
        known = {tally.reading.name: self._partial.hits(self.index, tally.reading, steps) for tally in tallies}
        missing = [tally.reading for tally in tallies if known[tally.reading.name] is None]
        started = time.perf_counter()
        fresh = self._measure(missing, steps)
        seconds = (time.perf_counter() - started) / max(1, len(missing))
        for tally in tallies:
            found = known[tally.reading.name]
            took = 0.0 if found is not None else seconds
            tally.add(fresh[tally.reading.name] if found is None else found, took)

    def _measure(self, readings: list[Reading], steps: int) -> dict[str, torch.Tensor]:
        if not readings:
            return {}
        hits = measure(self._measurer.drafter, self._measurer.teacher, self.judged, readings, steps)
        fresh = dict(zip((reading.name for reading in readings), counted_hits(self.judged, hits), strict=True))
        for name, own in fresh.items():
            self._partial.keep_hits(self.index, name, own)
        return fresh


def _room(judged: JudgedRow, measurer: Measurer) -> int:
    """Bytes that a prepared row may come to hold: its states, and the projection of each for about three fc slots."""
    tokens, captured, width = judged.row.states.shape
    hidden = measurer.drafter.config.hidden_size
    return int(tokens) * (captured * width + (3 * captured + 8) * hidden) * 4
