"""Runs of the store -> what a decision may rest on."""

from collections.abc import Iterator

from orchestrator.compare.served import LoadFigures
from orchestrator.compare.served_acceptance import acceptance
from orchestrator.diagnosing.replay import served_states
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosis.decision.foretelling import Asked as Walked
from orchestrator.diagnosis.decision.foretelling import foretell
from orchestrator.diagnosis.decision.from_capture import fed_of, resolved_of
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
from orchestrator.records import RunRecord
from orchestrator.report.bench_content import BenchReport
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


def known_of(results: Results, store: Store) -> Known:
    """Everything the stages brought home. Raises StoreError, InvalidRunError where a result is broken."""
    offline = _offline(results.succeeded("offline"), store)
    served = _served(results.succeeded("serve"), store)
    return Known(
        offline=offline,
        served=served,
        predicted=tuple(_predicted(results, store, served)),
        fed=_fed(results),
        resolved=_resolved(results),
    )


def _offline(record: RunRecord | None, store: Store) -> Offline | None:
    report = None if record is None else review(store, record).standalone
    if record is None or report is None:
        return None
    return Offline(run_id=record.run_id, measured=report.measured, wiring=report.wiring, diagnosis=report.diagnosis)


def _served(record: RunRecord | None, store: Store) -> Served | None:
    report = None if record is None else review(store, record).bench
    if record is None or report is None:
        return None
    splits = tuple(_splits(record.run_id, report))
    return Served(
        run_id=record.run_id,
        result=report.result,
        figures=report.figures,
        diagnosis=report.diagnosis,
        splits=splits,
    )


def _splits(run_id: str, report: BenchReport) -> Iterator[ServedSplit]:
    """The speculating side at its lowest load, training and held-out prompts apart where the run told them apart."""
    loads = [load for load in report.figures.loads if load.side == "spec" and load.requests]
    if not loads:
        return
    load = min(loads, key=_how_loaded)
    border = report.result.workload.heldout_from
    parts: dict[SplitName, list[RequestSample]] = {}
    for request in load.requests:
        name: SplitName = "train" if border is not None and request.prompt < border else "held-out"
        parts.setdefault(name, []).append(request)
    for name, requests in parts.items():
        contents = report.result.workload.prompt_sha256
        found = acceptance(requests, contents, report.figures.draft.depth)
        yield ServedSplit(split=name, run_id=run_id, requests=tuple(requests), acceptance=found)


def _how_loaded(load: LoadFigures) -> tuple[bool, float]:
    return load.request_rate is not None, float(load.concurrency or load.request_rate or 0)


def _resolved(results: Results) -> Resolved | None:
    """What the source of the host's SGLang says."""
    found = results.captured
    return None if found is None or found.rule is None else resolved_of(found)


def _fed(results: Results) -> Fed | None:
    """What the server surely feeds, as states of the training rows."""
    found, record = results.captured, results.succeeded("capture")
    return None if found is None or record is None else fed_of(found, record.run_id)


def _predicted(results: Results, store: Store, served: Served | None) -> Iterator[Predicted]:
    """The served reading walked over the rows that a capture made of prompts and answers."""
    record, captured = results.succeeded("replay"), results.captured
    if record is None or captured is None or served is None or served_states(captured) is None:
        return
    report = review(store, record).standalone
    steps = served.figures.draft.num_steps
    if report is None or steps is None or report.wiring.declared is None:
        return
    workload = served.result.workload
    places = {digest: index for index, digest in enumerate(workload.prompt_sha256)}
    prompts = {}
    for row in report.measured.train.rows:
        words = (row.source or "").split()
        if len(words) > 1 and words[1] in places:
            prompts[row.name] = places[words[1]]
    walked = Walked(split="held-out", prompts=prompts, steps=steps, max_new_tokens=workload.max_new_tokens)
    yield foretell(
        report.wiring.declared.facts,
        report.measured.train,
        walked,
        part="as served",
        run_id=record.run_id,
        dtype=report.result.dtype,
    )
