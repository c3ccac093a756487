"""A served benchmark judged: is it a measurement, did the server do what was asked, does speculation pay."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.compare.served import ServedFigures
from orchestrator.compare.served_harness import HarnessFigures
from orchestrator.diagnosis.finding import CheckResult, Severity
from orchestrator.diagnosis.served_arguments import check_arguments
from orchestrator.diagnosis.served_engine import check_engine
from orchestrator.diagnosis.served_headline import top_line
from orchestrator.diagnosis.served_measurement import CACHE, check_load, warm_together
from orchestrator.diagnosis.served_pairs import check_pairs
from orchestrator.diagnosis.served_template import template
from orchestrator.diagnosis.served_verdict import ServedVerdict
from orchestrator.diagnosis.served_whole import check_answers, check_machine, check_warm_up, check_workload
from orchestrator.diagnosis.validity import judge_loads
from remote_payload.schema.bench import BenchResult, RequestSample
from remote_payload.schema.bench_machine import MachineSample

SEVERITIES: tuple[Severity, ...] = ("fatal", "serious", "minor", "note")

CAUSE_CHARACTERS = 300
"""A failed run's message may quote a long line of a log; all of it stands below."""


@dataclass(frozen=True, kw_only=True)
class ServedDiagnosis:
    """What a served benchmark says, all of it."""

    verdict: ServedVerdict
    headline: str
    fix: tuple[str, ...]
    results: tuple[CheckResult, ...]
    findings: tuple[CheckResult, ...]
    """By severity."""


def diagnose_served(
    result: BenchResult,
    requests: Sequence[RequestSample],
    figures: ServedFigures,
    machine: Sequence[MachineSample] = (),
    harness: Sequence[HarnessFigures] = (),
    cause: str | None = None,
) -> ServedDiagnosis:
    """Run every check and choose the top line; `harness`: what SGLang's own tool says, a call each.

    `cause`: why the run ended early, where it did.
    """
    users = max((load.at_once or 0 for load in figures.loads), default=0)
    results: list[CheckResult] = []
    for server in result.servers:
        results += check_arguments(server, result.sglang, users)
        results += check_engine(server, result)
    for load in figures.loads:
        results += [item for item in check_load(load) if item.title != CACHE.title]  # one finding for all loads
    results += [*warm_together(figures.loads), *check_warm_up(result.points)]
    results += [check_answers(requests)] if requests else []
    results += [*check_workload(result.workload), *check_pairs(figures), *check_machine(machine)]
    results += [template(result.workload)] if result.workload.retokenised is not None else []
    unique = tuple({(item.title, item.outcome, item.summary): item for item in results}.values())
    found = [item for item in unique if item.outcome == "finding"]
    findings = tuple(sorted(found, key=lambda item: SEVERITIES.index(item.severity or "note")))
    judged = judge_loads(result, requests, figures, machine)
    voided = tuple(dict.fromkeys(reason for load in judged.values() for reason in load.invalid))
    verdict, line = top_line(result, figures, harness, voided)
    weighty = [item for item in findings if item.severity in ("fatal", "serious")]
    also = [
        f"also: {item.summary}"
        for item in weighty
        if item.title not in _TOLD.get(verdict, ()) and item.summary not in line
    ]
    fix = tuple(dict.fromkeys(text for item in weighty for text in item.remedy))
    if figures.part is not None and cause is not None:
        line = f"{line}; why: {_cut(cause)}"
    headline = "; ".join([line, *dict.fromkeys(also)])
    return ServedDiagnosis(verdict=verdict, headline=headline, fix=fix, results=unique, findings=findings)


def _cut(cause: str) -> str:
    return cause if len(cause) <= CAUSE_CHARACTERS else f"{cause[:CAUSE_CHARACTERS]}..."


_TOLD: dict[ServedVerdict, tuple[str, ...]] = {
    "invalid": ("requests",),
    "simulated": ("simulated acceptance",),
    "not_working": ("drafter at work",),
    "suspicious_baseline": ("plain decoding",),
    "not_comparable": ("same work on both sides",),
}
"""Checks whose findings the verdict's own line tells."""
