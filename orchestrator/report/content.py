"""What a report on one run says, before it is a text: the run, its result and what was made of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.compare.figures import Coverage, coverage
from orchestrator.diagnosis.verdict import MeasuredReading, WiringVerdict
from orchestrator.diagnosis.wiring import judge_wiring
from orchestrator.records import RunRecord
from remote_payload.schema import ReadingHits, RowFacts, StandaloneResult


@dataclass(frozen=True, kw_only=True)
class StandaloneReport:
    """A standalone test and its verdict."""

    result: StandaloneResult
    wiring: WiringVerdict
    coverage: Coverage


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """One run. `standalone` is None for another kind of job, and where no result came home."""

    record: RunRecord
    standalone: StandaloneReport | None = None


def report_standalone(
    result: StandaloneResult,
    rows: Sequence[RowFacts],
    hits: Sequence[ReadingHits],
    *,
    max_new_tokens: int | None = None,
) -> StandaloneReport:
    """Judge a result; `max_new_tokens` as a server's, for the walk.

    Raises InvalidRunError where hits and rows do not fit each other.
    """
    wiring = judge_wiring(result, rows, hits, max_new_tokens=max_new_tokens)
    return StandaloneReport(result=result, wiring=wiring, coverage=coverage(rows))


def columns(wiring: WiringVerdict) -> tuple[tuple[str, MeasuredReading], ...]:
    """The readings a report shows, each once, under the part it plays: declared first."""
    declared, best, runner_up = wiring.declared, wiring.best, wiring.runner_up
    shown = [("declared = best" if declared is best else "best", best)]
    if declared is not None and declared is not best:
        shown.insert(0, ("declared = runner-up" if declared is runner_up else "declared", declared))
    if runner_up is not None and runner_up is not declared:
        shown.append(("runner-up", runner_up))
    return tuple(shown)
