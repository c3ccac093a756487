"""What the stages of a diagnosis left, read from the store."""

from dataclasses import dataclass, field
from typing import Any

from orchestrator.diagnosis.decision.planned import EarlierCost, Planned
from orchestrator.errors import HostNotReadyError, JobError, JobTimedOutError
from orchestrator.outcome import error_of
from orchestrator.records import RunRecord
from remote_payload.schema.capture import CaptureResult
from remote_payload.schema.capture_rule import WiringFacts


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A stage that was not run, and why."""

    stage: str
    reason: str


@dataclass(kw_only=True)
class Results:
    """The stages so far: runs by stage, what was left out, and what the capture found."""

    records: dict[str, RunRecord] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    captured: CaptureResult | None = None
    facts: WiringFacts | None = None
    """Both config.json and the installed source, read before anything ran."""
    has_budget: bool = False
    """Whether the diagnosis may take so long and no longer: what ran past its deadline ran past that."""
    pipeline_stages: int = 1
    """Of the server as it will be asked for."""
    planned: Planned | None = None
    earlier: EarlierCost | None = None
    trained: tuple[int, ...] | None = None
    """The states that the drafter was trained on, as far as the stages so far and its trainer tell."""
    named: tuple[Any, ...] = ()
    """Records that name the host and what was planned for it, whether it ran or not."""

    def succeeded(self, stage: str) -> RunRecord | None:
        """The stage's run, if it came to its end."""
        record = self.records.get(stage)
        return record if record is not None and record.phase == "succeeded" else None

    @property
    def failures(self) -> dict[str, JobError | HostNotReadyError]:
        """Why each stage that did not come to its end did not."""
        found = {name: self._failure_of(record) for name, record in self.records.items()}
        return {name: error for name, error in found.items() if error is not None}

    def _failure_of(self, record: RunRecord) -> JobError | HostNotReadyError | None:
        if record.phase == "timed_out" and self.has_budget:
            hint = "the same command with a longer --budget goes on"
            return JobTimedOutError(f"run {record.run_id}: the budget of the diagnosis was used up", hint=hint)
        return failure_of(record)


def failure_of(record: RunRecord) -> JobError | HostNotReadyError | None:
    """What a run's end means as an error; None for one that succeeded."""
    if record.state is None:
        return None
    return error_of(record.state, job_kind=record.job_kind, host=record.host.name)
