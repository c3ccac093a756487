"""All figures of a served benchmark: a load (so many users, or such a rate) on a side, over its repeats."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from orchestrator.compare.served_acceptance import Acceptance, acceptance, samples_of
from orchestrator.compare.served_pairing import LEAST_TOKENS, LENGTHS_APART, Pairing, corrected, pair
from orchestrator.compare.served_part import Part, unfinished
from orchestrator.compare.served_refused import Refused, is_too_long, refused_of
from orchestrator.compare.served_speed import Speed, point_seconds, speed
from orchestrator.compare.stats import UNKNOWN
from remote_payload.schema.bench import BenchResult, PointFacts, RequestSample, ServerFacts, Side

CLIENT_BOUND = 0.7
"""CPU seconds of the client a second of wall time from which on it may be what holds the load back: it has one
interpreter, which cannot use more than one core."""
MOST_STEPS = 64
CACHED_APART = 0.05
"""Difference of the cached shares of the prompt tokens beyond which two sides did not do the same work."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """How the server really drafts; None = it does not tell."""

    num_steps: int | None = None
    eagle_topk: int | None = None
    num_draft_tokens: int | None = None
    adaptive: bool = False
    """Whether the number of steps changes while it runs: `num_steps` is then where it began."""

    @property
    def ceiling(self) -> int | None:
        """The largest accept length there is: num_steps + 1, never the number of draft tokens; None = not known."""
        return None if self.num_steps is None or self.adaptive else self.num_steps + 1

    @property
    def depth(self) -> int | None:
        """How many drafts of a chain there are; None = not known, or more than any drafter makes."""
        return None if self.ceiling is None or not 1 <= self.ceiling - 1 <= MOST_STEPS else self.ceiling - 1

    @property
    def nodes(self) -> int | None:
        """Draft tokens of a tree; None for a chain, where they say the same as the ceiling."""
        return None if self.eagle_topk in (None, 1) else self.num_draft_tokens


@dataclass(frozen=True, kw_only=True)
class LoadFigures:
    """One load on one side."""

    side: Side
    concurrency: int | None
    request_rate: float | None
    points: tuple[PointFacts, ...]
    """Its repeats, in order."""
    requests: tuple[RequestSample, ...]
    """The good ones."""
    failed: int
    speed: Speed
    acceptance: Acceptance | None
    """None = no answer told of speculation."""
    cached_share: float | None
    """Prompt tokens that came from the prefix cache, of all."""
    client_cpu: float | None
    """CPU seconds of the client a second of wall time, the busiest repeat."""
    client_waited: float | None
    """Seconds a second that the client wanted a core and had none, the worst repeat; None = the host does not tell."""
    refused: tuple[Refused, ...] = ()
    """Prompts that the server does not take, for their length: failures as well."""
    answered: tuple[RequestSample, ...] = ()
    """Where nothing else failed: the good ones of every repeat, whose acceptance is theirs; empty = something did."""

    @property
    def valid(self) -> bool:
        """A load with failed requests is no measurement: what was left undone was not slow, it was not done."""
        return self.failed == 0 and bool(self.requests)

    @property
    def at_once(self) -> int | None:
        """The most requests that can have been in flight: no more than were sent; None = open loop."""
        if self.concurrency is None:
            return None
        return min(self.concurrency, max((point.requests for point in self.points), default=self.concurrency))

    @property
    def flushed(self) -> bool:
        """Whether the prefix cache was flushed before every repeat."""
        return all(point.flushed for point in self.points)

    @property
    def mean_tokens(self) -> float | None:
        """Output tokens a request."""
        return self.speed.output_tokens / len(self.requests) if self.requests else None

    @property
    def client_bound(self) -> bool:
        """Whether the client may have been the bottleneck: always at work, or waiting for a core to work on."""
        return self.client_cpu is not None and self.client_cpu + (self.client_waited or 0.0) >= CLIENT_BOUND

    @property
    def key(self) -> tuple[int | None, float | None]:
        """What makes two loads the same but for their side."""
        return self.concurrency, self.request_rate


@dataclass(frozen=True, kw_only=True)
class PairedLoad:
    """A load with its figures on both sides."""

    spec: LoadFigures
    plain: LoadFigures
    pairing: Pairing


@dataclass(frozen=True, kw_only=True)
class ServedFigures:
    """A served benchmark's figures, in the order its loads were first run."""

    loads: tuple[LoadFigures, ...]
    pairs: tuple[PairedLoad, ...]
    draft: Draft
    part: Part | None = None
    """How far a run came that ended early; None = to its end."""

    @property
    def valid(self) -> bool:
        """Whether the run came to its end and every load is a measurement."""
        return self.part is None and bool(self.loads) and all(load.valid for load in self.loads)

    @property
    def tells_acceptance(self) -> bool:
        """Whether the answers there are tell of acceptance: all of it is valid, but for prompts that are too long."""
        return self.part is None and bool(self.loads) and all(load.answered for load in self.loads)


def served_figures(result: BenchResult, requests: Sequence[RequestSample]) -> ServedFigures:
    """Make the figures. Points with failed requests count as failures and give no throughput."""
    keys = dict.fromkeys((point.side, point.concurrency, point.request_rate) for point in result.points)
    draft = draft_of(result.servers)
    loads = tuple(_load(key, result, requests, draft.depth) for key in keys)
    plain = {load.key: load for load in loads if load.side == "plain"}
    greedy = result.workload.temperature == 0
    pairs = [
        _paired(load, plain[load.key], greedy=greedy) for load in loads if load.side == "spec" and load.key in plain
    ]
    sure = corrected([item.pairing for item in pairs])
    pairs = [replace(item, pairing=pairing) for item, pairing in zip(pairs, sure, strict=True)]
    return ServedFigures(loads=loads, pairs=tuple(pairs), draft=draft, part=unfinished(result, requests))


def draft_of(servers: Sequence[ServerFacts]) -> Draft:
    """The effective numbers of the first speculating server."""
    for server in servers:
        if server.side == "spec":
            return Draft(
                num_steps=effective_int(server, "speculative_num_steps"),
                eagle_topk=effective_int(server, "speculative_eagle_topk"),
                num_draft_tokens=effective_int(server, "speculative_num_draft_tokens"),
                adaptive=effective(server, "speculative_adaptive") is True,
            )
    return Draft()


def effective(server: ServerFacts, name: str) -> object:
    """What a server runs an argument with; None = it does not tell, or the argument is null."""
    found = next((fact.effective for fact in server.arguments if fact.name == name), None)
    return decoded(found)


def effective_int(server: ServerFacts, name: str) -> int | None:
    """The same where it is a whole number."""
    value = effective(server, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def decoded(text: str | None) -> object:
    """A JSON text's value; the text itself where it is none."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def _load(
    key: tuple[Side, int | None, float | None],
    result: BenchResult,
    requests: Sequence[RequestSample],
    depth: int | None,
) -> LoadFigures:
    """`depth`: how deep the server drafts, where told."""
    points = tuple(one for one in result.points if (one.side, one.concurrency, one.request_rate) == key)
    own = [item for item in requests if item.point in {point.point for point in points}]
    good = [item for item in own if item.error is None]
    by_point = [(point, [item for item in good if item.point == point.point]) for point in points if not point.failed]
    measured = tuple(item for _, some in by_point for item in some)
    known = [item for item in measured if item.cached_tokens is not None and item.prompt_tokens]
    prompt_tokens = sum(item.prompt_tokens or 0 for item in known)
    failed = max(sum(point.failed for point in points), sum(item.error is not None for item in own))
    return LoadFigures(
        side=key[0],
        concurrency=key[1],
        request_rate=key[2],
        points=points,
        requests=measured,
        failed=failed,
        speed=speed(by_point),
        acceptance=acceptance(measured, samples_of(result.workload), depth),
        cached_share=sum(item.cached_tokens or 0 for item in known) / prompt_tokens if prompt_tokens else None,
        client_cpu=_worst(points, lambda point: point.client_cpu_s),
        client_waited=_worst(points, lambda point: point.client_waited_s),
        refused=refused_of(result.workload, own),
        answered=tuple(good) if failed == sum(map(is_too_long, own)) else (),
    )


def _paired(spec: LoadFigures, plain: LoadFigures, *, greedy: bool) -> PairedLoad:
    """Outputs are compared where decoding is greedy: drawn ones differ anyway."""
    length = UNKNOWN if spec.acceptance is None else spec.acceptance.accept_length  # r is of this length alone
    answers = (spec.requests, plain.requests) if greedy else ((), ())
    pairing = pair(spec.speed, plain.speed, length, *answers, refused=_unlike(spec, plain))
    return PairedLoad(spec=spec, plain=plain, pairing=pairing)


def _unlike(spec: LoadFigures, plain: LoadFigures) -> str | None:
    """In words, why two sides did not do the same work; None = as far as is known they did."""
    ours, theirs = spec.mean_tokens, plain.mean_tokens
    if ours is None or theirs is None:
        return None
    if min(ours, theirs) < LEAST_TOKENS and max(ours, theirs) < 2 * LEAST_TOKENS:
        return f"answers of {ours:.1f} and {theirs:.1f} tokens (plain) are too short to have been decoded"
    if abs(ours - theirs) > LENGTHS_APART * max(ours, theirs):
        return f"the outputs are {ours:.1f} tokens long with speculation and {theirs:.1f} without"
    if spec.flushed != plain.flushed:
        return f"the prefix cache was flushed on the {'speculating' if spec.flushed else 'plain'} side alone"
    if spec.cached_share is None or plain.cached_share is None:
        return None
    if abs(spec.cached_share - plain.cached_share) > CACHED_APART:
        shares = f"{100 * spec.cached_share:.1f} % of the prompts with speculation and {100 * plain.cached_share:.1f} %"
        return f"the prefix cache held {shares} without"
    return None


def _worst(points: Sequence[PointFacts], of: Callable[[PointFacts], float | None]) -> float | None:
    """The largest share of a point's time; None = unknown of all."""
    told = ((of(point), point_seconds(point)) for point in points)
    return max((value / seconds for value, seconds in told if value is not None and seconds), default=None)
