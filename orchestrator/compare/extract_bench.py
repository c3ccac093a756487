"""A served benchmark as measurements: one a load and side; acceptance a prompt, throughput and latency a repeat.

Prompts are known by the sha256 of the whole rendered workload and their place in it: the same key is the same prompt;
those of one conversation, or of the same content, are one cluster where the workload tells it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.compare.bench_facts import BenchFacts
from orchestrator.compare.bench_prompts import prompt_series
from orchestrator.compare.bench_repeats import repeat_series, speedups
from orchestrator.compare.served import Draft, LoadFigures, ServedFigures
from orchestrator.records.measurement import Fact, Measurement, Series
from remote_payload.schema.bench import BenchResult, RequestSample

LoadKey = tuple[str, int | None, float | None]
"""(side, concurrency, request rate)."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What speaks against a load, a sentence each."""

    invalid: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def bench_measurements(
    run_id: str,
    result: BenchResult,
    figures: ServedFigures,
    judged: Mapping[LoadKey, Judged],
    *,
    more_soft: Mapping[str, str | None],
) -> tuple[Measurement, ...]:
    """Every load of the run. `judged` is the diagnosis' word on each; `more_soft`: more soft circumstances.

    A load without a single figure is there as well, as no measurement: left out, its run would pass for a sound one.
    """
    facts = BenchFacts(result, more_soft)
    found = []
    for load in figures.loads:
        verdict = judged.get(load_key(load), Judged())
        series = _series(run_id, result, figures, load)
        if not series and not verdict.invalid:
            verdict = replace(verdict, invalid=("nothing of it could be counted",))
        found.append(_measurement(load, series, facts, verdict))
    return tuple(found)


def load_key(load: LoadFigures) -> LoadKey:
    """What names a load within its run."""
    return load.side, load.concurrency, load.request_rate


def load_case(load: LoadFigures) -> tuple[Fact, ...]:
    """The same as facts."""
    if load.concurrency is not None:
        return (Fact(name="side", value=load.side), Fact(name="concurrency", value=str(load.concurrency)))
    return (Fact(name="side", value=load.side), Fact(name="request_rate", value=f"{load.request_rate:g}"))


def _series(run_id: str, result: BenchResult, figures: ServedFigures, load: LoadFigures) -> tuple[Series, ...]:
    pair = next((item for item in figures.pairs if item.spec is load), None)
    plain: Sequence[RequestSample] = () if pair is None else pair.plain.requests
    draft = Draft() if load.side == "plain" else figures.draft
    found = [*repeat_series(run_id, load)]
    # A speed-up over a plain side that cannot be, or that did other work, is none.
    if pair is not None and not pair.pairing.suspicious and pair.pairing.refused is None:
        found += speedups(run_id, load, pair.plain)
    found += prompt_series(result.workload, load.requests, plain, draft)
    return tuple(found)


def _measurement(load: LoadFigures, series: tuple[Series, ...], facts: BenchFacts, judged: Judged) -> Measurement:
    acceptance = load.acceptance
    return Measurement(
        case=load_case(load),
        series=series,
        hard=facts.hard(load),
        soft=facts.soft(load),
        arguments=facts.arguments(load),
        invalid=judged.invalid,
        warnings=judged.warnings,
        histogram=() if acceptance is None or acceptance.histogram is None else acceptance.histogram,
    )
