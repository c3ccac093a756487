"""Runs of the store -> what a decision may rest on."""

from collections.abc import Iterator, Mapping

from orchestrator.compare.served import LoadFigures
from orchestrator.compare.served_acceptance import acceptance
from orchestrator.compare.step_cost import StepCost, known_cost, stored_costs
from orchestrator.config import Config
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.replay import rows_of
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosis.decision.foretelling import Asked as Walked
from orchestrator.diagnosis.decision.foretelling import foretell
from orchestrator.diagnosis.decision.from_capture import fed_of, resolved_by, resolved_of
from orchestrator.diagnosis.decision.inputs import (
    Fed,
    Known,
    Offline,
    Predicted,
    Resolved,
    Served,
    ServedSplit,
    SplitName,
)
from orchestrator.diagnosis.installed_ids import Source
from orchestrator.diagnosis.measured import Split
from orchestrator.records import RunRecord
from orchestrator.report.bench_content import BenchReport
from orchestrator.review import review
from orchestrator.store import Store
from orchestrator.store.results import read_capture
from remote_payload.schema.bench import RequestSample
from remote_payload.schema.capture import CaptureResult


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
    return Known(
        offline=offline,
        served=served,
        predicted=tuple(_predicted(asked, results, store, served)),
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
    loads = [load for load in report.figures.loads if load.side == "spec" and load.requests]
    if not loads:
        return
    load = min(loads, key=_how_loaded)
    border = report.result.workload.heldout_from
    parts: dict[SplitName, list[RequestSample]] = {}
    for request in load.requests:
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
    return None if facts is None else resolved_by(facts.rule, facts.draft_config, facts.target_config)


def _source(results: Results) -> Source | None:
    """The source that `_resolved` goes by."""
    found, facts = results.captured, results.facts
    if found is not None and found.rule is not None:
        return Source(rule=found.rule, target_config=found.target_config)
    return None if facts is None else Source(rule=facts.rule, target_config=facts.target_config)


def _fed(asked: Asked, results: Results) -> Fed | None:
    """What the server surely feeds, as states of the training rows."""
    found, record = results.captured, results.succeeded("capture")
    return None if found is None or record is None else fed_of(found, record.run_id, asked.trained_states)


def _predicted(asked: Asked, results: Results, store: Store, served: Served | None) -> Iterator[Predicted]:
    """The served reading, and the best one, walked over the rows that a capture made of prompts and answers."""
    record, captured = results.succeeded("replay"), results.captured
    if record is None or captured is None or served is None:
        return
    report = review(store, record).standalone
    outputs = answers_of(captured)
    steps = served.figures.draft.num_steps
    if report is None or steps is None or report.wiring.declared is None:
        return
    measured = report.measured
    names: tuple[SplitName, ...] = ("train", "held-out")
    if rows_of(captured, "answered") is None or rows_of(captured, "heldout") is None:
        alone = rows_of(captured, "answered") is not None or asked.only_training
        names = ("train",) if alone else ("held-out",)
    for name, rows in zip(names, (measured.train, measured.heldout), strict=False):
        walked = None if rows is None else walked_of(name, rows, served, steps, outputs)
        if rows is None or walked is None:
            continue
        dtype = report.result.dtype
        declared, best = report.wiring.declared.facts, report.wiring.best.facts
        yield foretell(declared, rows, walked, part="as served", run_id=record.run_id, dtype=dtype)
        if best.name in rows.figures:
            yield foretell(best, rows, walked, part="best", run_id=record.run_id, dtype=dtype)


def answers_of(captured: CaptureResult) -> dict[str, tuple[int, ...]]:
    """What the server that was captured answered, by the prompt's digest."""
    return {answer.prompt_sha256: answer.output_ids for rows in captured.made for answer in rows.answers}


def walked_of(
    name: SplitName, rows: Split, served: Served, steps: int, outputs: Mapping[str, tuple[int, ...]]
) -> Walked | None:
    """What was asked of the prompts that rows were made of; None = this split was not served.

    `outputs`: what those rows hold as answers, by the prompt's digest; what was served is the same text only if it
    begins them.
    """
    split, workload = served.split(name), served.result.workload
    if split is None:
        return None
    here = {item.prompt for item in split.requests}  # a prompt may stand in both files
    places = {digest: index for index, digest in enumerate(workload.prompt_sha256) if index in here}
    sources = {row.name: (row.source or "").split() for row in rows.rows}
    ends = {
        item.prompt: item.completion_tokens
        for item in split.requests
        if item.error is None and item.completion_tokens is not None
    }
    return Walked(
        split=name,
        prompts={row: places[words[1]] for row, words in sources.items() if len(words) > 1 and words[1] in places},
        steps=steps,
        max_new_tokens=workload.max_new_tokens,
        ends=ends,
        outputs={index: outputs[digest] for digest, index in places.items() if digest in outputs},
    )
