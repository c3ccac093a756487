"""Runs of the store -> what a decision may rest on."""

from collections.abc import Iterator

from orchestrator.compare.served import LoadFigures
from orchestrator.compare.served_acceptance import acceptance
from orchestrator.compare.step_cost import StepCost, known_cost, stored_costs
from orchestrator.config import Config
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.mended import predicted, unforetold
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosis.decision.from_capture import fed_of, resolved_by, resolved_of
from orchestrator.diagnosis.decision.inputs import (
    Fed,
    Known,
    Offline,
    Resolved,
    Served,
    ServedSplit,
    SplitName,
)
from orchestrator.diagnosis.installed_ids import Source
from orchestrator.diagnosis.served_states import source_of
from orchestrator.records import RunRecord
from orchestrator.report.bench_content import BenchReport
from orchestrator.report.content import StandaloneReport
from orchestrator.review import review
from orchestrator.store import Store
from orchestrator.store.results import read_capture
from remote_payload.schema.bench import RequestSample


def take(stage: str, record: RunRecord, store: Store, tag: str, results: Results) -> None:
    """Keep a stage's run with the others, tagged with the diagnosis. Raises StoreError."""
    results.records[stage] = record
    if tag not in store.labels(record.run_id).tags:
        store.label(record.run_id, tags=(f"+{tag}",))
    if stage == "capture" and results.succeeded(stage) is not None:
        results.captured = read_capture(store.run_dir(record.run_id))


def known_of(asked: Asked, config: Config, results: Results, store: Store) -> Known:
    """Everything the stages brought home. Raises StoreError, InvalidRunError where a result is broken, ConfigError."""
    offline = _offline(results.succeeded("offline"), store)
    served = _served(asked, results.succeeded("serve"), store)
    replay = _replay(results, store)
    trained = asked.trained_states or (None if offline is None else offline.read)
    return Known(
        offline=offline,
        served=served,
        predicted=tuple(predicted(asked, results, replay, served, trained)),
        unforetold=None if replay is None else unforetold(replay, trained),
        fed=_fed(asked, results),
        resolved=_resolved(results),
        cost=_cost(offline, config),
        planned=results.planned,
        earlier=results.earlier,
        source=_source(results),
        said=asked.trained_states,
    )


def _offline(record: RunRecord | None, store: Store) -> Offline | None:
    report = None if record is None else review(store, record).standalone
    if record is None or report is None:
        return None
    return Offline(run_id=record.run_id, measured=report.measured, wiring=report.wiring, diagnosis=report.diagnosis)


def _replay(results: Results, store: Store) -> StandaloneReport | None:
    """The test on the rows that a capture made of prompts and answers."""
    record = results.succeeded("replay")
    return None if record is None or results.captured is None else review(store, record).standalone


def _cost(offline: Offline | None, config: Config) -> StepCost | None:
    """`[[step_costs]]` of eagle3.toml for this target and device."""
    if offline is None:
        return None
    result = offline.measured.result
    return known_cost(
        stored_costs(config.step_costs, str(config.path)),
        target=result.checkpoint.target,
        target_class=result.declared.target_class,
        device=result.device_name,
    )


def _served(asked: Asked, record: RunRecord | None, store: Store) -> Served | None:
    report = None if record is None else review(store, record).bench
    if record is None or report is None:
        return None
    splits = tuple(splits_of(asked, record.run_id, report))
    return Served(
        run_id=record.run_id,
        result=report.result,
        figures=report.figures,
        diagnosis=report.diagnosis,
        splits=splits,
    )


def splits_of(asked: Asked, run_id: str, report: BenchReport) -> Iterator[ServedSplit]:
    """The speculating side at its lowest load, training and held-out prompts apart where the run told them apart."""
    loads = [load for load in report.figures.loads if load.side == "spec" and (load.requests or load.answered)]
    if not loads:
        return
    load = min(loads, key=_how_loaded)
    border = report.result.workload.heldout_from
    parts: dict[SplitName, list[RequestSample]] = {}
    for request in load.answered or load.requests:  # the same, but for prompts that are too long
        trained = asked.only_training if border is None else request.prompt < border
        name: SplitName = "train" if trained else "held-out"
        parts.setdefault(name, []).append(request)
    for name, requests in parts.items():
        contents = report.result.workload.prompt_sha256
        found = acceptance(requests, contents, report.figures.draft.depth)
        yield ServedSplit(split=name, run_id=run_id, requests=tuple(requests), acceptance=found)


def _how_loaded(load: LoadFigures) -> tuple[bool, float]:
    return load.request_rate is not None, float(load.concurrency or load.request_rate or 0)


def _resolved(results: Results) -> Resolved | None:
    """What the source of the host's SGLang says: that of the server that was asked, else what was read before."""
    found, facts = results.captured, results.facts
    if found is not None and found.rule is not None:
        return resolved_of(found)
    if facts is None:
        return None
    return resolved_by(facts.rule, facts.draft_config, facts.target_config, results.pipeline_stages)


def _source(results: Results) -> Source | None:
    """The source that `_resolved` goes by."""
    found, facts = results.captured, results.facts
    if found is not None and found.rule is not None:
        return source_of(found)
    if facts is None:
        return None
    return Source(rule=facts.rule, target_config=facts.target_config, pipeline_stages=results.pipeline_stages)


def _fed(asked: Asked, results: Results) -> Fed | None:
    """What the server surely feeds, as states of the training rows."""
    found, record = results.captured, results.succeeded("capture")
    return None if found is None or record is None else fed_of(found, record.run_id, asked.trained_states)
