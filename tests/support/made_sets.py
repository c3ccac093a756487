"""Served benchmarks in a store, and bare measurement sets, for everything that compares."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.compare import definitions
from orchestrator.compare.fingerprint import SERVED
from orchestrator.records import RunRecord
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series
from orchestrator.store import Store
from remote_payload.schema import to_json
from remote_payload.schema.bench import BenchResult, RequestSample
from remote_payload.schema.bench_job import BenchJob
from tests.support.made_runs import made_run, packed_json_lines, put_files

CASE = {"side": "spec", "concurrency": "1"}
HARD = {
    **dict.fromkeys(SERVED, "as ever"),
    "target": "/srv/target",
    "draft": "/srv/draft",
    "gpu": "NVIDIA H200",
    "prompts_sha256": "ab" * 8,
}


def put_bench(
    store: Store,
    run_id: str,
    made: tuple[BenchResult, Sequence[RequestSample]],
    *,
    created: float = 1.0,
    tags: tuple[str, ...] = (),
    more: Mapping[str, bytes] | None = None,
) -> RunRecord:
    """A finished served benchmark in the store; `more`: other files of its result."""
    result, requests = made
    base = made_run(run_id, created_unix_s=created)
    spec = dataclasses.replace(
        base.spec, job_kind="bench", job_json=to_json(BenchJob(model="/srv/target", draft="/srv/draft"))
    )
    record = dataclasses.replace(base, spec=spec, tags=tags)
    files = {"bench.json": to_json(result).encode(), "requests.jsonl.gz": packed_json_lines(requests)}
    files |= more or {}
    put_files(store.begin(record), files)
    return record


def facts(values: Mapping[str, str | None]) -> tuple[Fact, ...]:
    """A mapping as facts."""
    return tuple(Fact(name=name, value=value) for name, value in values.items())


def throughputs(*values: float, run_id: str = "run", definition: str = definitions.OUTPUT_THROUGHPUT) -> Series:
    """Output throughput, a value a repeat, each on a server start of its own."""
    keys = tuple(f"{run_id}/{index}" for index in range(len(values)))
    return Series(
        metric="output_throughput_tok_s",
        unit="tok/s",
        definition=definition,
        level="run",
        keys=keys,
        clusters=keys,
        y=values,
    )


def lengths(tokens: Sequence[float], verifies: Sequence[float]) -> Series:
    """Accept length, a pair a prompt."""
    return Series(
        metric="accept_length_pooled",
        unit="tokens",
        definition=definitions.ACCEPT_LENGTH_POOLED,
        level="prompt",
        keys=tuple(f"p#{index}" for index in range(len(tokens))),
        y=tuple(tokens),
        x=tuple(verifies),
    )


def measurement(*series: Series, case: Mapping[str, str | None] = CASE, **more: Any) -> Measurement:
    """One load, with the circumstances of `HARD` unless said otherwise."""
    other = more.pop("hard", {})
    unknown = {f"{name}_weights": None for name in ("target", "draft") if name in other}  # a path tells no weights
    hard = {**HARD, **unknown, **other}
    soft, arguments = more.pop("soft", {}), more.pop("arguments", {})
    return Measurement(
        case=facts(case), series=series, hard=facts(hard), soft=facts(soft), arguments=facts(arguments), **more
    )


def measurement_set(*measurements: Measurement, run_id: str = "run", **more: Any) -> MeasurementSet:
    """A served run of these loads."""
    values: dict[str, Any] = {"origin": "own", "tool": "eagle3-remote 0.1.0", "job_kind": "bench", "host": "gpu1"}
    return MeasurementSet(run_id=run_id, measurements=measurements, **{**values, **more})
