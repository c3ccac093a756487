"""What a report is about: runs with everything that is known about them, comparisons, and what baselines meant when."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import SetComparison
from orchestrator.records.measurement import Fact, MeasurementSet
from orchestrator.report.content import RunReport

DRAWN = 4
"""Runs up to which each is drawn in every figure."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One run, of this tool or of another one."""

    measured: MeasurementSet
    told: RunReport | None = None
    """All that is said about an own run; None for other tools' and where many runs are shown."""
    note: str = ""
    """What its owner noted about it."""
    tags: tuple[str, ...] = ()

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.measured.run_id

    @property
    def is_valid(self) -> bool:
        """Whether all of it is a measurement, and there is some."""
        return bool(self.measured.measurements) and not self.invalid

    @property
    def invalid(self) -> tuple[str, ...]:
        """Why some of it is no measurement; empty = all of it is one."""
        return tuple(dict.fromkeys(reason for one in self.measured.measurements for reason in one.invalid))


@dataclass(frozen=True, kw_only=True)
class BaselineMove:
    """From `since_unix_s` on `name` meant that run, or those numbers."""

    name: str
    since_unix_s: float
    run_id: str | None = None
    numbers: tuple[tuple[str, float], ...] = ()
    """(metric, value) of a typed baseline."""
    load: tuple[Fact, ...] = ()
    """What these were measured at; empty = not told."""
    measured: MeasurementSet | None = None
    """The run's measurements, where they are at hand."""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Reported:
    """Everything one report is made of."""

    subjects: tuple[Subject, ...]
    """In the order asked for."""
    comparisons: tuple[SetComparison, ...] = ()
    moves: tuple[BaselineMove, ...] = ()
    """Oldest first."""
    asked: Asked = field(default_factory=Asked)
    """How the comparisons were asked for."""
    left_out: tuple[str, ...] = ()
    """What could not be shown and why; a sentence each."""

    def __post_init__(self) -> None:
        if not self.subjects:
            raise ValueError("expected a run to report on")

    @property
    def drawn(self) -> tuple[Subject, ...]:
        """The runs that figures show, oldest first: of many the oldest and the two newest that are measurements."""
        runs = in_time(self.subjects)
        if len(runs) <= DRAWN:
            return runs
        valid = [run for run in runs if run.is_valid] or list(runs)
        return (valid[0], *valid[1:][-2:])

    @property
    def drawn_words(self) -> str:
        """What a reader must know about the choice; empty where all runs are drawn."""
        if len(self.drawn) == len(self.subjects):
            return ""
        return (
            f"Drawn are the oldest and the two newest measurements of {len(self.subjects)} runs; the tables have all."
        )


def in_time(subjects: Sequence[Subject]) -> tuple[Subject, ...]:
    """Oldest first; runs whose time nobody knows come first of all, as they were asked for."""
    return tuple(sorted(subjects, key=lambda one: one.measured.created_unix_s or -math.inf))
