"""What a report is about: runs with everything that is known about them, comparisons, and what baselines meant when."""

from dataclasses import dataclass

from orchestrator.compare.comparison import SetComparison
from orchestrator.records.measurement import MeasurementSet
from orchestrator.report.content import RunReport


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One run, of this tool or of another one."""

    measured: MeasurementSet
    told: RunReport | None = None
    """All that is said about an own run; None for other tools' and where many runs are shown."""

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.measured.run_id

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
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Reported:
    """Everything one report is made of."""

    subjects: tuple[Subject, ...]
    """In the order asked for."""
    comparisons: tuple[SetComparison, ...] = ()
    moves: tuple[BaselineMove, ...] = ()
    """Oldest first."""
    left_out: tuple[str, ...] = ()
    """What could not be shown and why; a sentence each."""

    def __post_init__(self) -> None:
        if not self.subjects:
            raise ValueError("expected a run to report on")
