"""Served benchmarks made by hand: servers, points and requests as the host would have written them."""

import dataclasses
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from remote_payload.schema.bench import (
    ArgumentFact,
    BenchResult,
    PointFacts,
    RequestSample,
    ServerFacts,
    SglangFacts,
    Side,
)
from remote_payload.schema.workload import WorkloadFacts

SHAPE = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


def made_server(
    side: Side = "spec",
    *,
    asked: Mapping[str, object] | None = None,
    runs: Mapping[str, object] | None = None,
    **more: Any,
) -> ServerFacts:
    """A server that was asked for and runs EAGLE3 as 3/1/4 (or plain), changed by `asked` and `runs`; None: not."""
    wanted: dict[str, object] = {"model_path": "/srv/target"}
    if side == "spec":
        wanted |= {"speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "/srv/drafter"}
        wanted |= dict(zip(SHAPE, (3, 1, 4), strict=True))
    effective = {**wanted, "quantization": None, **(runs or {})}
    wanted |= asked or {}
    effective = {**{name: value for name, value in wanted.items() if name not in effective}, **effective}
    facts = tuple(
        ArgumentFact(
            name=name,
            requested=None if wanted.get(name) is None else json.dumps(wanted[name]),
            effective=json.dumps(effective[name]),
        )
        for name in sorted(effective)
    )
    values: dict[str, Any] = {
        "start": 0,
        "attached": False,
        "url": "http://127.0.0.1:30000",
        "arguments": facts,
        "model_class": "LlamaForCausalLM",
        "draft_class": "LlamaForCausalLMEagle3" if side == "spec" else None,
        "stopped": "term",
    }
    return ServerFacts(side=side, **{**values, **more})


def made_request(
    point: int,
    prompt: int,
    *,
    tokens: int = 64,
    sent_s: float = 0.0,
    seconds: float = 1.0,
    histogram: Sequence[int] | None = None,
    index: int = 0,
    **more: Any,
) -> RequestSample:
    """A request whose first token comes after a tenth of its time, and the rest evenly, a chunk a verify step."""
    steps = sum(histogram) if histogram else tokens - 1
    first = sent_s + seconds / 10
    times = [first + (seconds * 0.9) * i / steps for i in range(steps + 1)]
    counts = [1, *(len(part) for part in _spread(tokens - 1, steps))]
    values: dict[str, Any] = {
        "chunk_s": tuple(times),
        "chunk_tokens": tuple(counts),
        "done_s": times[-1],
        "output_ids": tuple((prompt * 31 + i) % 1000 for i in range(tokens)),
        "completion_tokens": tokens,
        "finish": "length",
        "cached_tokens": 0,
        "prompt_tokens": 30,
        "status": 200,
    }
    if histogram is not None:
        correct = sum(i * n for i, n in enumerate(histogram))
        values |= {
            "verify_steps": steps,
            "correct_drafts": correct,
            "proposed_drafts": steps * max(len(histogram) - 1, 1),
            "histogram": tuple(histogram),
        }
    return RequestSample(point=point, index=index, prompt=prompt, sent_s=sent_s, **{**values, **more})


def made_point(
    point: int,
    requests: Sequence[RequestSample],
    side: Side = "spec",
    *,
    concurrency: int | None = 1,
    **more: Any,
) -> PointFacts:
    """The point of these requests."""
    ends = [item.chunk_s[-1] for item in requests if item.chunk_s]
    values: dict[str, Any] = {
        "start": 0,
        "repeat": 0,
        "began_unix_s": 1767323045.0,
        "warmup_requests": 2,
        "flushed": True,
        "requests": len(requests),
        "failed": sum(item.error is not None for item in requests),
        "first_sent_s": min(item.sent_s for item in requests),
        "last_token_s": max(ends) if ends else None,
        "client_cpu_s": 0.01,
    }
    return PointFacts(point=point, side=side, concurrency=concurrency, **{**values, **more})


def made_bench(
    servers: Sequence[ServerFacts], points: Sequence[PointFacts], sglang: SglangFacts | None = None, **more: Any
) -> BenchResult:
    """The result of these."""
    values: dict[str, Any] = {
        "sglang": sglang or SglangFacts(version="0.5.23", forces_draft_tokens=True, running_requests_cap=48),
        "servers": tuple(servers),
        "points": tuple(points),
        "workload": WorkloadFacts(
            source="/srv/merged.jsonl",
            form="token_ids",
            prompts=8,
            prompt_tokens=240,
            sha256="cd" * 32,
            max_new_tokens=64,
            ignore_eos=False,
            temperature=0.0,
            seed=0,
        ),
        "python": "3.12.3",
        "host_cpus": 2,
        "seconds": 91.5,
    }
    return BenchResult(**{**values, **more})


def chain_histogram(draws: random.Random, steps: int, accept: Sequence[float]) -> list[int]:
    """Verify steps by drafts accepted, each depth accepted by chance."""
    found = [0] * (len(accept) + 1)
    for _ in range(steps):
        depth = 0
        while depth < len(accept) and draws.random() < accept[depth]:
            depth += 1
        found[depth] += 1
    return found


def made_paired(
    *,
    repeats: int = 3,
    spec_tok_s: float = 56.8,
    plain_tok_s: float = 90.0,
    accept: Sequence[float] = (0.9,),
    **more: Any,
) -> tuple[BenchResult, tuple[RequestSample, ...]]:
    """Both sides in turn at one user, each repeat on a server start of its own: eight prompts a point, throughputs
    around those given, a verify step a chunk. `servers`: a start of each side, which the others are like.
    """
    draws = random.Random(7)
    histograms = [chain_histogram(draws, 30, accept) for _ in range(8)]
    points, requests = [], []
    for repeat in range(repeats):
        for side, speed in (("spec", spec_tok_s), ("plain", plain_tok_s)):
            number = len(points)
            wobble = 1 + 0.01 * (repeat - (repeats - 1) / 2)
            some, clock = [], 0.0
            for prompt in range(8):
                histogram = histograms[prompt] if side == "spec" else None
                tokens = 1 + sum((i + 1) * n for i, n in enumerate(histograms[prompt]))
                seconds = tokens / (speed * wobble)
                item = made_request(
                    number, prompt, tokens=tokens, sent_s=clock, seconds=seconds, histogram=histogram, index=prompt
                )
                some.append(item)
                clock = item.chunk_s[-1]
            points.append(made_point(number, some, "spec" if side == "spec" else "plain", repeat=repeat, start=number))
            requests += some
    like = {server.side: server for server in more.pop("servers", (made_server("spec"), made_server("plain")))}
    servers = [dataclasses.replace(like[point.side], start=point.start) for point in points if point.side in like]
    return made_bench(servers, points, **more), tuple(requests)


def _spread(tokens: int, parts: int) -> list[range]:
    """`tokens` over `parts`, as evenly as whole numbers allow."""
    return [range(tokens * i // parts, tokens * (i + 1) // parts) for i in range(parts)]
