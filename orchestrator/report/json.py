"""The report on one run as JSON values: every figure with its n and interval; unknown is None."""

import dataclasses
from typing import Any

from orchestrator.compare.stats import Estimate
from orchestrator.compare.walk import Walk
from orchestrator.diagnosis.verdict import Effect, MeasuredReading, WiringVerdict
from orchestrator.records import RunRecord
from orchestrator.report.bench_json import bench_json
from orchestrator.report.content import (
    Foretold,
    RunReport,
    StandaloneReport,
    columns,
    predictions,
    rule_figures,
)
from orchestrator.report.diagnosis_json import diagnosis_json
from orchestrator.report.text import DEFINITIONS

REPORT_VERSION = 1


def run_json(report: RunReport) -> dict[str, Any]:
    """What `runs show --json` prints: `run`, and for a standalone test all that was made of its `result`.

    `diagnosis` (verdict, headline, fix, findings), `checks`, `wiring`, `readings`, `prediction`, `gap`, `rules`,
    `coverage`, `definitions`, `result`; for a served benchmark see `bench_json`; for a capture `diagnosis`, `result`.
    """
    value: dict[str, Any] = {"report_version": REPORT_VERSION, "run": _run(report.record)}
    if report.standalone is not None:
        value.update(_standalone(report.standalone))
    if report.bench is not None:
        value.update(bench_json(report.bench))
    if report.capture is not None:
        told = report.capture
        value.update(diagnosis=dataclasses.asdict(told.diagnosis), result=dataclasses.asdict(told.result))
    return value


def estimate_json(estimate: Estimate | None) -> dict[str, Any] | None:
    """A figure with its interval."""
    return None if estimate is None else dataclasses.asdict(estimate)


def _run(record: RunRecord) -> dict[str, Any]:
    return {
        "run_id": record.run_id,
        "job_kind": record.job_kind,
        "phase": record.phase,
        "host": dataclasses.asdict(record.host),
        "created_unix_s": record.created_unix_s,
        "finished_unix_s": record.finished_unix_s,
        "launched_by": record.launched_by,
        "payload_sha256": record.payload_sha256,
        "tags": list(record.tags),
        "settings": [dataclasses.asdict(setting) for setting in record.settings],
        "state": None if record.state is None else dataclasses.asdict(record.state),
    }


def _standalone(report: StandaloneReport) -> dict[str, Any]:
    return {
        **diagnosis_json(report.diagnosis),
        "wiring": _wiring(report.wiring),
        "readings": [_reading(role, item) for role, item in columns(report.wiring)],
        "prediction": [_foretold(one) for one in predictions(report)],
        "gap": None if report.gap is None else dataclasses.asdict(report.gap),
        "rules": {split: [dataclasses.asdict(item) for item in figures] for split, figures in rule_figures(report)},
        "coverage": dataclasses.asdict(report.coverage),
        "definitions": DEFINITIONS,
        "result": dataclasses.asdict(report.result),
    }


def _foretold(one: Foretold) -> dict[str, Any]:
    told = one.prediction
    return {
        "role": one.role,
        "reading": told.reading,
        "rows": one.split,
        "step_cost": None if told.cost is None else dataclasses.asdict(told.cost),
        "best_steps": told.best_steps,
        "judged_steps": told.judged_steps,
        "pays": told.pays,
        "step_cost_below_one": told.suspicious,
        "depths": [
            {
                "steps": depth.steps,
                "accept_length": estimate_json(depth.accept_length),
                "walk": _walk(depth.walk),
                "break_even_accept_length": depth.break_even,
                "speedup": estimate_json(depth.speedup),
            }
            for depth in told.depths
        ],
    }


def _wiring(wiring: WiringVerdict) -> dict[str, Any]:
    return {
        "verdict": wiring.verdict,
        "headline": wiring.headline,
        "fix": list(wiring.fix),
        "config_ids": None if wiring.spelling is None or wiring.spelling.ids is None else list(wiring.spelling.ids),
        "spelling": None if wiring.spelling is None else dataclasses.asdict(wiring.spelling),
        "best": wiring.best.facts.name,
        "declared": None if wiring.declared is None else wiring.declared.facts.name,
        "runner_up": None if wiring.runner_up is None else wiring.runner_up.facts.name,
        "against": wiring.against,
        "first_step_difference": estimate_json(wiring.difference),
        "accept_length_relative_difference": estimate_json(wiring.ratio),
        "effects": [_effect(effect) for effect in wiring.effects],
        "readings_tried": wiring.readings_tried,
    }


def _effect(effect: Effect) -> dict[str, Any]:
    return {
        "keys": list(effect.keys),
        "best": list(effect.best),
        "served": list(effect.served),
        "reverted": None if effect.reverted is None else effect.reverted.facts.name,
        "accepted_difference": estimate_json(effect.difference),
        "proven": effect.proven,
    }


def _reading(role: str, item: MeasuredReading) -> dict[str, Any]:
    figures, walk = item.figures, item.figures.walk
    return {
        "role": role,
        "name": item.facts.name,
        "slots": list(item.facts.slots),
        "states": None if item.facts.states is None else list(item.facts.states),
        "token_offset": item.facts.token_offset,
        "changes": list(item.facts.changes),
        "first_step_accuracy": dataclasses.asdict(figures.first_step),
        "conditional_acceptance": [dataclasses.asdict(share) for share in figures.conditional],
        "accept_length_mean": estimate_json(figures.accept_length_mean),
        "accept_length_walk": estimate_json(figures.accept_length_walk),
        "max_new_tokens": figures.max_new_tokens,
        "walk": _walk(walk),
        "requests": [
            {"row": row.row, "request": index, **_walk(one)}
            for row, walks in zip(figures.counts, figures.requests, strict=True)
            for index, one in enumerate(walks)
        ],
    }


def _walk(walk: Walk) -> dict[str, Any]:
    return {
        "histogram": list(walk.histogram),
        "verify_steps": walk.verifies,
        "accepted": walk.accepted,
        "tokens": walk.tokens,
        "tokens_per_verify": walk.tokens / walk.verifies if walk.verifies else None,
        "exact": walk.greedy,
    }
