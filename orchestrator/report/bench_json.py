"""The report on a served benchmark as JSON values: every figure with its n and interval; unknown is None."""

import dataclasses
from typing import Any

from orchestrator.compare.served import LoadFigures, PairedLoad
from orchestrator.compare.served_acceptance import Acceptance
from orchestrator.compare.served_harness import HarnessLoad, harness_loads, harness_speedups
from orchestrator.compare.stats import Estimate
from orchestrator.report.bench_content import BenchReport
from orchestrator.report.bench_tables import HARNESS_DEFINITIONS
from orchestrator.report.bench_text import DEFINITIONS
from orchestrator.report.diagnosis_json import diagnosis_json


def bench_json(report: BenchReport) -> dict[str, Any]:
    """`diagnosis`, `checks`, `loads`, `pairs`, `draft`, `definitions`, `result`, and a line a request."""
    figures = report.figures
    return {
        **diagnosis_json(report.diagnosis),
        "valid": figures.valid,
        "part": None if figures.part is None else dataclasses.asdict(figures.part),
        "draft": {**dataclasses.asdict(figures.draft), "ceiling": figures.draft.ceiling},
        "loads": [_load(load, figures.draft.num_draft_tokens) for load in figures.loads],
        "pairs": [_pair(item) for item in figures.pairs],
        "harness": [{**dataclasses.asdict(one), "failed": one.failed} for one in report.harness],
        "harness_pairs": [_harness_pair(*one) for one in harness_speedups(harness_loads(report.harness))],
        "harness_definitions": HARNESS_DEFINITIONS,
        "folder": report.folder,
        "requests": [
            {
                name: getattr(item, name)
                for name in ("point", "index", "prompt", "verify_steps", "correct_drafts", "histogram", "error")
            }
            for item in report.requests
        ],
        "definitions": DEFINITIONS,
        "result": dataclasses.asdict(report.result),
    }


def _harness_pair(ours: HarnessLoad, theirs: HarnessLoad, speedup: Estimate) -> dict[str, Any]:
    first = ours.calls[0]
    sides = {"spec": list(ours.throughputs), "plain": list(theirs.throughputs)}
    return {
        "concurrency": first.concurrency,
        "request_rate": first.request_rate,
        "output_throughputs": sides,
        "speedup": dataclasses.asdict(speedup),
    }


def _load(load: LoadFigures, draft_tokens: int | None) -> dict[str, Any]:
    return {
        "side": load.side,
        "concurrency": load.concurrency,
        "request_rate": load.request_rate,
        "valid": load.valid,
        "requests": len(load.requests),
        "failed": load.failed,
        **dataclasses.asdict(load.speed),
        "acceptance": None if load.acceptance is None else _acceptance(load.acceptance, draft_tokens),
        "cached_share": load.cached_share,
        "client_cpu": load.client_cpu,
        "client_waited": load.client_waited,
        "client_bound": load.client_bound,
    }


def _acceptance(found: Acceptance, draft_tokens: int | None) -> dict[str, Any]:
    value = dataclasses.asdict(found)
    value["accept_length_pooled"] = value.pop("accept_length")
    return {**value, "accept_rate": found.rate(draft_tokens)}


def _pair(item: PairedLoad) -> dict[str, Any]:
    pairing = item.pairing
    return {
        "concurrency": item.spec.concurrency,
        "request_rate": item.spec.request_rate,
        **dataclasses.asdict(pairing),
        "break_even_accept_length": pairing.break_even,
        "suspicious_baseline": pairing.suspicious,
        "pays": pairing.pays,
    }
