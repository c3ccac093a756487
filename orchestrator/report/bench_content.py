"""What a report on a served benchmark says, before it is a text: the result and what was made of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.compare.served import ServedFigures, served_figures
from orchestrator.compare.served_harness import HarnessFigures, harness_figures
from orchestrator.diagnosis.served import ServedDiagnosis, diagnose_served
from orchestrator.diagnosis.served_sampled import with_sampled
from orchestrator.flags import told_in_flags
from orchestrator.outcome import cause_of
from remote_payload.schema import RunState
from remote_payload.schema.bench import BenchResult, RequestSample
from remote_payload.schema.bench_machine import MachineSample


@dataclass(frozen=True, kw_only=True)
class BenchReport:
    """A served benchmark and everything that was made of it."""

    result: BenchResult
    requests: tuple[RequestSample, ...]
    figures: ServedFigures
    diagnosis: ServedDiagnosis
    machine: tuple[MachineSample, ...]
    harness: tuple[HarnessFigures, ...] = ()
    """What SGLang's own tool says, a call each."""
    folder: str | None = None
    """Where its files lie on this laptop; None = nowhere."""


def report_bench(
    result: BenchResult,
    requests: Sequence[RequestSample],
    machine: Sequence[MachineSample] = (),
    harness: Mapping[str, str] | None = None,
    folder: str | None = None,
    state: RunState | None = None,
) -> BenchReport:
    """Make the figures and judge them; `harness`: the texts of its tool's files by name, `state`: how the run ended."""
    cause = None if state is None else cause_of(state)
    figures = served_figures(result, requests)
    texts = harness or {}
    calls = tuple(harness_figures(run, texts.get(run.result_file or "")) for run in result.harness)
    return BenchReport(
        result=result,
        requests=tuple(requests),
        figures=figures,
        diagnosis=diagnose_served(result, requests, figures, machine, calls, cause and told_in_flags("bench", cause)),
        machine=tuple(machine),
        harness=calls,
        folder=folder,
    )


def sampled_too(report: BenchReport, requests: Sequence[RequestSample]) -> BenchReport:
    """With K19 among what is said; `requests`: those that were asked at another temperature, none where none were."""
    return replace(report, diagnosis=with_sampled(report.diagnosis, report.result, report.figures, requests))
