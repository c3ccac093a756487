"""K18: acceptance by context length, output position and server age; K19 beside it, as the served run tells it.

Text differs with context and position by itself, so those two only ever note; a server's age does not change the
answer to a prompt, so what falls there on the same prompts is the engine's.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from orchestrator.compare.served import LoadFigures
from orchestrator.compare.stats import Estimate, paired_difference, pooled_ratio, unpaired_difference
from orchestrator.diagnosis.decision.inputs import Known, Offline
from orchestrator.diagnosis.finding import CheckResult, Severity, Subject, count, figure
from orchestrator.diagnosis.served_sampled import SAMPLING
from remote_payload.schema.bench import RequestSample

CONTEXT = Subject(check="K18", title="acceptance by context length")
POSITION = Subject(check="K18", title="acceptance by output position")
AGE = Subject(check="K18", title="acceptance by server age")
_NOT_SAMPLED = SAMPLING.cannot_tell("one temperature was served", needs="diagnose --sampled, run bench --sampled 1")
LARGE = 0.3
"""Accept length by which a part must surely fall before it is worth a finding."""
AGED = 0.1
"""The same over a server's life, on the same prompts."""


def drift_checks(known: Known) -> Iterator[CheckResult]:
    """Four answers on the speculating side at the lowest load; none where nothing was served."""
    served = known.served
    if served is None:
        return
    loads = [load for load in served.figures.loads if load.side == "spec" and load.acceptance is not None]
    if not loads:
        return
    lowest = min(loads, key=lambda item: (item.concurrency is None, item.concurrency or 0))
    yield by_context(lowest.requests, longest_context(known.offline))
    yield by_position(lowest.requests)
    yield by_age(lowest, greedy=served.result.workload.temperature == 0)
    yield from [item for item in served.diagnosis.results if item.check == SAMPLING.check] or [_NOT_SAMPLED]


def by_context(requests: Sequence[RequestSample], longest: int | None) -> CheckResult:
    """The longest third of the prompts against the shortest; `longest`: what the drafter's config allows."""
    told = [item for item in requests if item.prompt_tokens is not None and _has_drafts(item)]
    ordered = sorted(told, key=lambda item: item.prompt_tokens or 0)
    third = len(ordered) // 3
    beyond = [] if longest is None else [item for item in told if _total(item) > longest]
    if beyond and longest is not None:
        return _beyond(beyond, [item for item in told if _total(item) <= longest], longest)
    spread = third and (ordered[-third].prompt_tokens or 0) > 1.5 * (ordered[third - 1].prompt_tokens or 0)
    if not spread:
        needs = "prompts of clearly different lengths, 15 or more"
        return CONTEXT.cannot_tell("the prompts are too few or too alike in length", needs=needs)
    difference = unpaired_difference(_length(ordered[-third:]), _length(ordered[:third]))
    return _judged(CONTEXT, difference, "the longest third of the prompts minus the shortest", "minor", LARGE)


def _beyond(beyond: Sequence[RequestSample], within: Sequence[RequestSample], longest: int) -> CheckResult:
    """Requests longer than the drafter's config allows; only where they surely accept less is that a cause."""
    difference = unpaired_difference(_length(beyond), _length(within))
    falls = difference.high is not None and difference.high < 0
    told = len(beyond) + len(within)
    return CONTEXT.finding(
        f"{len(beyond)} of {told} requests are longer than the {longest} tokens that the drafter's config allows"
        + (f", and accept {-(difference.value or 0.0):.2f} less" if falls else ""),
        severity="serious" if falls else "minor",
        cause="generalization",
        evidence=(
            count("requests beyond it", len(beyond), told),
            figure("accept length, beyond it minus within", difference, "tokens"),
        ),
        remedy=("raise max_position_embeddings only if it was trained so far; else train on contexts so long",),
        refuted_by="the same accept length on the longest requests",
    )


def by_position(requests: Sequence[RequestSample]) -> CheckResult:
    """Later against earlier verify steps of the same requests, where each step came in a chunk of its own."""
    told = [
        item
        for item in requests
        if item.verify_steps and len(item.chunk_tokens) == item.verify_steps + 1 and item.verify_steps >= 8
    ]
    if len(told) < 5:
        needs = "5 requests or more whose answers came a verify step a chunk (stream_interval 1)"
        return POSITION.cannot_tell("answers do not tell which step yielded how much", needs=needs)
    early, late = zip(*(_halves(item) for item in told), strict=True)
    sums = [([sum(part) for part in side], [len(part) for part in side]) for side in (late, early)]
    difference = paired_difference(sums[0], sums[1])
    return _judged(POSITION, difference, "the later half of each answer minus the earlier", "note", LARGE)


def by_age(load: LoadFigures, *, greedy: bool) -> CheckResult:
    """The last against the first repeat of the same prompts on one start of the server."""
    starts: dict[int, list[int]] = {}
    for point in load.points:
        starts.setdefault(point.start, []).append(point.point)
    points = next((found for found in starts.values() if len(found) > 1), None)
    if points is None or not greedy:
        needs = "greedy repeats of the same prompts on one start of the server (--repeats)"
        return AGE.cannot_tell("no prompt was asked twice of one server at different ages", needs=needs)
    first, last = (
        {item.prompt: item for item in load.requests if item.point == point and _has_drafts(item)}
        for point in (points[0], points[-1])
    )
    both = sorted(first.keys() & last.keys())
    if not both:
        return AGE.cannot_tell("the repeats asked different prompts", needs="repeats of the same prompts")
    difference = paired_difference(_sums([last[prompt] for prompt in both]), _sums([first[prompt] for prompt in both]))
    return _judged(AGE, difference, "the last repeat minus the first, prompt by prompt", "serious", AGED)


def longest_context(offline: Offline | None) -> int | None:
    """`max_position_embeddings` of the drafter's config.json; None = not told."""
    if offline is None:
        return None
    try:
        value = json.loads(offline.measured.result.checkpoint.config_json)
    except ValueError:
        return None
    found = value.get("max_position_embeddings") if isinstance(value, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def _judged(subject: Subject, difference: Estimate, what: str, severity: Severity, margin: float) -> CheckResult:
    """A finding where acceptance surely falls, and by more than the margin."""
    evidence = (figure(f"accept length, {what}", difference, "tokens"),)
    value, low, high = difference.value, difference.low, difference.high
    if value is None or low is None or high is None:
        return subject.cannot_tell(f"too few requests for an interval: {what}", needs="more prompts", evidence=evidence)
    text = f"accept length {value:+.2f} [{low:+.2f}, {high:+.2f}], {what}"
    if high < 0 and value < -margin:
        found = subject.finding(
            f"acceptance falls: {text}",
            severity=severity,
            cause="engine" if severity == "serious" else "generalization",
            evidence=evidence,
            remedy=_REMEDIES[subject.title],
            refuted_by="no fall on other prompts",
        )
        return replace(found, effect=-value)
    if low > -margin:
        return subject.passed(f"no fall by more than {margin:g}: {text}", evidence)
    return subject.cannot_tell(f"cannot tell: {text}", needs="more prompts", evidence=evidence)


_REMEDIES = {
    CONTEXT.title: ("see max_position_embeddings and rope of the drafter, and train on contexts as long as served",),
    POSITION.title: ("train on answers as long as those that are served",),
    AGE.title: ("restart the server: if that restores it, its caches spoil the drafter; report it with its version",),
}


def _has_drafts(item: RequestSample) -> bool:
    return bool(item.verify_steps) and item.correct_drafts is not None


def _total(item: RequestSample) -> int:
    return (item.prompt_tokens or 0) + (item.completion_tokens or 0)


def _sums(requests: Sequence[RequestSample]) -> tuple[list[int], list[int]]:
    steps = [item.verify_steps or 0 for item in requests]
    return [a + (item.correct_drafts or 0) for a, item in zip(steps, requests, strict=True)], steps


def _length(requests: Sequence[RequestSample]) -> Estimate:
    """Accept length over prompts."""
    rows = _by_prompt(requests).values()
    return pooled_ratio([row[0] for row in rows], [row[1] for row in rows])


def _by_prompt(requests: Sequence[RequestSample]) -> dict[int, list[int]]:
    """(verify steps + accepted, verify steps), a prompt each: answers to one prompt are one."""
    found: dict[int, list[int]] = {}
    for item in requests:
        row = found.setdefault(item.prompt, [0, 0])
        row[0] += (item.verify_steps or 0) + (item.correct_drafts or 0)
        row[1] += item.verify_steps or 0
    return found


def _halves(item: RequestSample) -> tuple[tuple[int, ...], tuple[int, ...]]:
    steps = item.chunk_tokens[1:-1]  # the last one may be cut
    return steps[: len(steps) // 2], steps[len(steps) // 2 :]
