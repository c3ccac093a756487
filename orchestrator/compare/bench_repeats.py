"""A load's throughput and latencies, a value a repeat: requests of one repeat share batches and are no sample.

Each repeat tells the server's start it was measured on: repeats of one start are one sample of it.
"""

from collections.abc import Sequence

from orchestrator.compare import definitions
from orchestrator.compare.served import LoadFigures
from orchestrator.compare.served_speed import Spread, point_seconds, point_throughput, speed, tokens_of
from orchestrator.records.measurement import Series
from remote_payload.schema.bench import PointFacts, RequestSample

Repeat = tuple[PointFacts, tuple[RequestSample, ...]]
_SUMMARIES = (("", "median"), ("_p90", "90th percentile"), ("_p99", "99th percentile"))


def repeat_series(run_id: str, load: LoadFigures) -> list[Series]:
    """Everything that a repeat has one value of; a metric that a repeat does not tell is left out of that repeat."""
    repeats = _repeats(load)
    speeds = [(point, speed([(point, some)])) for point, some in repeats]
    out = [(point, own.throughput.value) for point, own in speeds]
    total = [(point, _total(point, some)) for point, some in repeats]
    requests = [(point, own.request_throughput) for point, own in speeds]
    rates = (
        ("output_throughput_tok_s", "tok/s", definitions.OUTPUT_THROUGHPUT, out),
        ("total_throughput_tok_s", "tok/s", definitions.TOTAL_THROUGHPUT, total),
        ("request_throughput_req_s", "req/s", definitions.REQUEST_THROUGHPUT, requests),
    )
    found = [_run_level(run_id, *rate) for rate in rates]
    latencies = (
        ("ttft_s", "s", definitions.TTFT, [own.ttft_s for _, own in speeds]),
        ("tpot_s", "s", definitions.TPOT, [own.tpot_s for _, own in speeds]),
        ("e2e_s", "s", definitions.E2E, [own.e2e_s for _, own in speeds]),
        ("user_tok_s", "tok/s", definitions.USER_THROUGHPUT, [own.user_tok_s for _, own in speeds]),
    )
    for name, unit, words, spreads in latencies:
        for suffix, summary in _SUMMARIES:
            values = [(point, _summary(one, suffix)) for (point, _), one in zip(speeds, spreads, strict=True)]
            found.append(_run_level(run_id, f"{name}{suffix}", unit, words.format(summary=summary), values))
    return [series for series in found if series is not None]


def speedups(run_id: str, spec: LoadFigures, plain: LoadFigures) -> list[Series]:
    """Throughput over that of plain decoding, repeat by repeat, where both sides have the repeat."""
    theirs = {point.repeat: point_throughput(point, some) for point, some in _repeats(plain)}
    values = []
    for point, some in _repeats(spec):
        ours, other = point_throughput(point, some), theirs.get(point.repeat)
        values.append((point, ours / other if ours and other else None))
    found = _run_level(run_id, "speedup", "ratio", definitions.SPEEDUP, values)
    return [] if found is None else [found]


def _repeats(load: LoadFigures) -> list[Repeat]:
    good = [point for point in load.points if not point.failed]
    return [(point, tuple(item for item in load.requests if item.point == point.point)) for point in good]


def _run_level(
    run_id: str, metric: str, unit: str, definition: str, values: Sequence[tuple[PointFacts, float | None]]
) -> Series | None:
    known = [(point, value) for point, value in values if value is not None]
    if not known:
        return None
    return Series(
        metric=metric,
        unit=unit,
        definition=definition,
        level="run",
        keys=tuple(f"{run_id}/{point.repeat}" for point, _ in known),
        clusters=tuple(f"{run_id}/start {point.start}" for point, _ in known),
        y=tuple(value for _, value in known),
    )


def _total(point: PointFacts, requests: Sequence[RequestSample]) -> float | None:
    seconds = point_seconds(point)
    prompts = [item.prompt_tokens for item in requests]
    if not seconds or not requests or None in prompts:
        return None
    return (sum(tokens_of(item) for item in requests) + sum(count or 0 for count in prompts)) / seconds


def _summary(item: Spread, suffix: str) -> float | None:
    return {"": item.median, "_p90": item.p90, "_p99": item.p99}[suffix]
