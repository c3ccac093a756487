"""Speculation against plain decoding on the same prompts: speed-up S, step cost r = AL / S, and whether outputs agree.

Speculation pays where the accept length is above r, so r is also the break-even accept length. A verify step does the
work of a decode step and more, so r below 1 says that the plain figure is too low, not that steps are cheap.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.compare.served_speed import LEAST_REPEATS, Speed, mean_of_repeats
from orchestrator.compare.stats import Estimate, Proportion, wilson
from orchestrator.compare.step_cost import measured_ratio
from remote_payload.schema.bench import RequestSample


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """One load with and without speculation."""

    speedup: Estimate
    """Throughput over plain throughput; interval over the pairs of repeats (geometric mean)."""
    user_speedup: float | None
    """The same of the median tokens a second one user sees after the first: prefill left out."""
    accept_length: float | None
    step_cost: float | None
    """r: what a speculative step costs in plain decode steps."""
    identical: Proportion
    """Prompts whose output ids are the same with and without speculation, of those with both."""
    plain_repeats_identical: Proportion
    """The control: prompts whose plain output is the same in every repeat, of those repeated."""

    @property
    def break_even(self) -> float | None:
        """Accept length above which speculation pays: r."""
        return self.step_cost

    @property
    def suspicious(self) -> bool:
        """Whether a speculative step came out cheaper than a plain one, which no server can do."""
        return self.step_cost is not None and self.step_cost < 1

    @property
    def pays(self) -> bool | None:
        """Whether speculation is surely faster (True) or surely slower (False); None = no telling."""
        low, high = self.speedup.low, self.speedup.high
        if low is None or high is None:
            return None
        return True if low > 1 else False if high < 1 else None


def pair(
    spec: Speed,
    plain: Speed,
    accept_length: float | None,
    spec_requests: Sequence[RequestSample],
    plain_requests: Sequence[RequestSample],
) -> Pairing:
    """Pair two sides of one load; `accept_length` is that of the speculating side, pooled."""
    speedup = speedup_of(spec.throughputs, plain.throughputs)
    user = None
    if spec.user_tok_s.median and plain.user_tok_s.median:
        user = spec.user_tok_s.median / plain.user_tok_s.median
    cost = None
    if speedup.value and accept_length is not None:
        cost = measured_ratio(speedup.value, 1.0, accept_length)
    return Pairing(
        speedup=speedup,
        user_speedup=user,
        accept_length=accept_length,
        step_cost=cost,
        identical=identical_outputs(spec_requests, plain_requests),
        plain_repeats_identical=repeated_outputs(plain_requests),
    )


def speedup_of(spec: Sequence[float], plain: Sequence[float]) -> Estimate:
    """Ratio of throughputs, repeat by repeat where both sides have as many, else of the means without an interval."""
    if not spec or not plain:
        return Estimate(value=None, rows=0)
    if len(spec) != len(plain) or len(spec) < LEAST_REPEATS:
        ratio = (sum(spec) / len(spec)) / (sum(plain) / len(plain))
        return Estimate(value=ratio, rows=min(len(spec), len(plain)))
    logs = mean_of_repeats([math.log(a / b) for a, b in zip(spec, plain, strict=True)])
    value, low, high = ((None if part is None else math.exp(part)) for part in (logs.value, logs.low, logs.high))
    return Estimate(value=value, low=low, high=high, standard_error=logs.standard_error, rows=logs.rows)


def identical_outputs(a: Sequence[RequestSample], b: Sequence[RequestSample]) -> Proportion:
    """Prompts with equal output ids on both sides; the first answer to each prompt counts."""
    ours, theirs = _first_outputs(a), _first_outputs(b)
    both = ours.keys() & theirs.keys()
    return wilson(sum(ours[prompt] == theirs[prompt] for prompt in both), len(both))


def repeated_outputs(requests: Sequence[RequestSample]) -> Proportion:
    """Prompts answered alike every time, of those asked more than once."""
    answers: dict[int, list[tuple[int, ...]]] = {}
    for item in requests:
        if item.error is None and item.output_ids is not None:
            answers.setdefault(item.prompt, []).append(item.output_ids)
    repeated = [found for found in answers.values() if len(found) > 1]
    return wilson(sum(len(set(found)) == 1 for found in repeated), len(repeated))


def _first_outputs(requests: Sequence[RequestSample]) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for item in requests:
        if item.error is None and item.output_ids is not None:
            found.setdefault(item.prompt, item.output_ids)
    return found
