"""The report as values for a machine: every figure with its definition, n and interval; unknown is None."""

import dataclasses
from typing import Any

from orchestrator.compare.comparison import CaseComparison, SetComparison
from orchestrator.compare.stats import CONFIDENCE
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet
from orchestrator.report.document.figures import figure
from orchestrator.report.document.subject import Reported, Subject
from orchestrator.report.json import run_json

REPORT_VERSION = 1


def values(reported: Reported) -> dict[str, Any]:
    """`runs`, `comparisons`, `baseline_moves`, `left_out`. Raw samples stand under `series` of each case.

    `report` of a run is what `runs show --json` prints about it; None where many runs are shown.
    """
    return {
        "report_version": REPORT_VERSION,
        "runs": [_run(subject) for subject in reported.subjects],
        "comparisons": [_comparison(one) for one in reported.comparisons],
        "baseline_moves": [dataclasses.asdict(move) for move in reported.moves],
        "left_out": list(reported.left_out),
    }


def without_samples(found: dict[str, Any]) -> dict[str, Any]:
    """The same without the raw samples: figures alone, for where room is scarce."""
    bare = ("keys", "clusters", "y", "x")
    runs = []
    for run in found["runs"]:
        cases = [
            {**case, "series": [{key: item for key, item in one.items() if key not in bare} for one in case["series"]]}
            for case in run["cases"]
        ]
        runs.append({**run, "cases": cases, "report": None})
    return {**found, "runs": runs, "samples_left_out": True}


def _run(subject: Subject) -> dict[str, Any]:
    measured = subject.measured
    told = {
        name: getattr(measured, name)
        for name in (
            "run_id", "origin", "tool", "job_kind", "label", "host", "created_unix_s", "source", "source_sha256",
        )
    }  # fmt: skip
    verdict, headline = _judged(subject)
    return {
        **told,
        "verdict": verdict,
        "headline": headline,
        "unknown": list(measured.unknown),
        "cases": [_case(one) for one in measured.measurements],
        "report": None if subject.told is None else run_json(subject.told),
    }


def _judged(subject: Subject) -> tuple[str | None, str | None]:
    told = subject.told
    judged = None if told is None else told.standalone or told.bench
    return (None, None) if judged is None else (judged.diagnosis.verdict, judged.diagnosis.headline)


def _case(one: Measurement) -> dict[str, Any]:
    return {
        "case": _facts(one.case),
        "invalid": list(one.invalid),
        "warnings": list(one.warnings),
        "hard": _facts(one.hard),
        "soft": _facts(one.soft),
        "arguments": _facts(one.arguments),
        "histogram": list(one.histogram) or None,
        "series": [_series(one, at) for at in range(len(one.series))],
    }


def _series(one: Measurement, at: int) -> dict[str, Any]:
    series = one.series[at]
    found = figure(series, one)
    return {
        "metric": series.metric,
        "unit": series.unit,
        "definition": series.definition,
        "level": series.level,
        "n": found.n,
        "value": found.estimate.value,
        "low": found.estimate.low,
        "high": found.estimate.high,
        "confidence": CONFIDENCE if found.estimate.low is not None else None,
        "keys": list(series.keys),
        "clusters": list(series.clusters),
        "y": list(series.y),
        "x": list(series.x),
    }


def _facts(facts: tuple[Fact, ...]) -> dict[str, str | None]:
    return {fact.name: fact.value for fact in facts}


def _comparison(found: SetComparison) -> dict[str, Any]:
    return {
        "ours": found.ours_label,
        "theirs": found.theirs_label,
        "ours_runs": _ids(found.ours),
        "theirs_runs": _ids(found.theirs),
        "verdict": found.verdict,
        "cases": [_compared(case) for case in found.cases],
        "only_ours": [_facts(case) for case in found.only_ours],
        "only_theirs": [_facts(case) for case in found.only_theirs],
        "notes": list(found.notes),
    }


def _compared(case: CaseComparison) -> dict[str, Any]:
    return {
        "case": _facts(case.case),
        "verdict": case.verdict,
        **{
            name: [dataclasses.asdict(item) for item in getattr(case, name)]
            for name in ("hard", "soft", "arguments", "varied", "comparisons")
        },
        "unknown": list(case.unknown),
    }


def _ids(sets: tuple[MeasurementSet, ...]) -> list[str]:
    return [one.run_id for one in sets]
