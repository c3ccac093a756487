"""A comparison as JSON values; unknown is None. Raw samples stay with the runs."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import CaseComparison, Comparison, SetComparison
from orchestrator.compare.diff import decides, overall
from orchestrator.records.measurement import Measurement, MeasurementSet
from orchestrator.report.diff_verdict import verdict_lines
from orchestrator.report.diff_words import definition, p_value

REPORT_VERSION = 2


def diff_json(found: Sequence[SetComparison], asked: Asked) -> dict[str, Any]:
    """Every comparison with the first side; `verdict` is the one that decides over all."""
    return {
        "report_version": REPORT_VERSION,
        "verdict": overall([one.verdict for one in found]),
        "asked": dataclasses.asdict(asked),
        "comparisons": [_set(one, asked) for one in found],
    }


def _set(found: SetComparison, asked: Asked) -> dict[str, Any]:
    return {
        "verdict": found.verdict,
        "sentence": verdict_lines(found, asked)[0],
        "this": {"label": found.ours_label, "runs": [_run(one) for one in found.ours]},
        "reference": {"label": found.theirs_label, "runs": [_run(one) for one in found.theirs]},
        "cases": [_case(case, asked) for case in found.cases],
        "only_this": [{fact.name: fact.value for fact in case} for case in found.only_ours],
        "only_reference": [{fact.name: fact.value for fact in case} for case in found.only_theirs],
        "notes": list(found.notes),
    }


def _run(one: MeasurementSet) -> dict[str, Any]:
    names = ("run_id", "origin", "tool", "job_kind", "label", "host", "created_unix_s", "source", "unknown")
    return {name: getattr(one, name) for name in names}


def _case(case: CaseComparison, asked: Asked) -> dict[str, Any]:
    return {
        "case": {fact.name: fact.value for fact in case.case},
        "verdict": case.verdict,
        "hard": [dataclasses.asdict(item) for item in case.hard],
        "soft": [dataclasses.asdict(item) for item in case.soft],
        "arguments": [dataclasses.asdict(item) for item in case.arguments],
        "varied": [dataclasses.asdict(item) for item in case.varied],
        "unknown": list(case.unknown),
        "tells_nothing": [{"ours": "this", "theirs": "reference"}[side] for side in case.silent],
        "speeds_not_compared": case.speeds or None,
        "this": _side(case.ours),
        "reference": _side(case.theirs),
        "metrics": [_metric(case, item, asked) for item in case.comparisons],
    }


def _side(side: Measurement) -> dict[str, Any]:
    return {"invalid": side.invalid, "warnings": side.warnings, "histogram": side.histogram or None}


def _metric(case: CaseComparison, item: Comparison, asked: Asked) -> dict[str, Any]:
    value = dataclasses.asdict(item)
    value["this"], value["reference"] = value.pop("ours"), value.pop("theirs")
    value["n_this"], value["n_reference"] = value.pop("n_ours"), value.pop("n_theirs")
    value["definition"] = definition(case, item.metric.name)
    value["decides"] = decides(item, asked, case.comparisons)
    value["p"] = p_value(item)
    return value
