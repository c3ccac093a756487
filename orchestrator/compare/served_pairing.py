"""Speculation against plain decoding on the same prompts: speed-up S, step cost r = AL / S, and whether outputs agree.

Speculation pays where the accept length is above r, so r is also the break-even accept length. A verify step does the
work of a decode step and more, so r surely below 1 says that the plain figure is too low, not that steps are cheap.

Both hold only where both sides did the same work: as many tokens out, as much of the prompts from the cache.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.compare.served_speed import LEAST_REPEATS, Speed
from orchestrator.compare.statistics.effect import NO_SPREAD, settled, tail
from orchestrator.compare.statistics.multiplicity import ALPHA, holm
from orchestrator.compare.stats import (
    CONFIDENCE,
    UNKNOWN,
    Estimate,
    Proportion,
    student_t_quantile,
    unpaired_difference,
    wilson,
)
from remote_payload.schema.bench import RequestSample

LENGTHS_APART = 0.1
"""Relative difference of the mean output lengths beyond which two sides did not do the same work."""
LEAST_TOKENS = 4.0
"""Mean output tokens a request below which a throughput is that of prefill, not of decoding."""
LARGEST_SHARE_OF_CONTROL = 0.5
"""Outputs that agree in less than so much of what plain decoding agrees with itself are other outputs, not rounding."""


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """One load with and without speculation."""

    speedup: Estimate
    """Mean throughput over mean plain throughput; interval over the pairs of repeats, of its logarithm."""
    user_speedup: float | None
    """The same of the median tokens a second one user sees after the first: prefill left out."""
    accept_length: float | None
    step_cost: float | None
    """r: what a speculative step costs in plain decode steps."""
    step_cost_low: float | None = None
    step_cost_high: float | None = None
    """95 % interval of r, from those of S (repeats) and of the accept length (prompts); None = either has none."""
    identical: Proportion
    """Prompts whose output ids are the same with and without speculation, of those with both."""
    plain_repeats_identical: Proportion
    """The control: prompts whose plain output is the same in every repeat, of those repeated."""
    refused: str | None = None
    """Why the two sides did not do the same work, so that there is neither S nor r; None = they did."""
    p_adjusted: float | None = None
    """Of S = 1, by Holm's correction over the loads of the run; None = not tested."""

    @property
    def break_even(self) -> float | None:
        """Accept length above which speculation pays: r."""
        return self.step_cost

    @property
    def suspicious(self) -> bool:
        """Whether a speculative step surely came out cheaper than a plain one, which no server can do."""
        return self.step_cost_high is not None and self.step_cost_high < 1

    @property
    def pays(self) -> bool | None:
        """Whether speculation is surely faster (True) or surely slower (False); None = no telling.

        By the interval, and where several loads were measured also after the correction for looking so often.
        """
        low, high = self.speedup.low, self.speedup.high
        if low is None or high is None or (self.p_adjusted or 0.0) > ALPHA:
            return None
        return True if low > 1 + NO_SPREAD else False if high < 1 - NO_SPREAD else None

    @property
    def other_outputs(self) -> bool:
        """Whether the sides' outputs surely agree less than plain decoding does with itself, and by far."""
        ours, control = self.identical, self.plain_repeats_identical
        if ours.value is None or ours.high is None or control.value is None or control.low is None:
            return False
        return ours.high < control.low and ours.value < LARGEST_SHARE_OF_CONTROL * control.value


def pair(
    spec: Speed,
    plain: Speed,
    accept_length: Estimate,
    spec_requests: Sequence[RequestSample],
    plain_requests: Sequence[RequestSample],
    refused: str | None = None,
) -> Pairing:
    """Pair two sides of one load; `accept_length` is that of the speculating side, pooled.

    `refused`: why they cannot be paired; then only the outputs are compared.
    """
    speedup = UNKNOWN if refused else speedup_of(spec.throughputs, plain.throughputs)
    user = None
    if spec.user_tok_s.median and plain.user_tok_s.median and not refused:
        user = spec.user_tok_s.median / plain.user_tok_s.median
    found = Pairing(
        speedup=speedup,
        user_speedup=user,
        accept_length=accept_length.value,
        step_cost=None,
        identical=identical_outputs(spec_requests, plain_requests),
        plain_repeats_identical=repeated_outputs(plain_requests),
        refused=refused,
    )
    if found.other_outputs:
        return found
    cost = step_cost_of(accept_length, speedup)
    return replace(found, step_cost=cost.value, step_cost_low=cost.low, step_cost_high=cost.high)


def corrected(pairings: Sequence[Pairing]) -> tuple[Pairing, ...]:
    """The same with `p_adjusted`: of eight equal loads one in three runs would otherwise call one faster or slower."""
    tested = [(index, p) for index, one in enumerate(pairings) if (p := _p(one.speedup)) is not None]
    result = list(pairings)
    for (index, _), p in zip(tested, holm([p for _, p in tested]), strict=True):
        result[index] = replace(pairings[index], p_adjusted=p)
    return tuple(result)


def _p(speedup: Estimate) -> float | None:
    """Two-sided, of log S = 0: Student's t over the pairs of repeats."""
    error = speedup.standard_error
    if not speedup.value or error is None:
        return None
    change = abs(math.log(speedup.value))
    if error == 0:  # the repeats differ, and in each the ratio is this one
        return 1.0 if change <= NO_SPREAD else 0.0
    return 2 * tail(-change / error, speedup.rows - 1)


def speedup_of(spec: Sequence[float], plain: Sequence[float]) -> Estimate:
    """Ratio of the mean throughputs; interval where both sides have as many repeats, and at least three.

    Repeats are paired in their order, so what slows both sides alike cancels: z_i = a_i / mean(a) - b_i / mean(b) is
    the linearised log ratio's part of each, Student's t over them. `standard_error` is of the logarithm.

    Where neither side's repeats differ at all, nothing was seen of how much they vary: no interval, however many they
    are. Where they differ and yet each has the same ratio, pairing explains all of it: an interval of no width.
    """
    if not spec or not plain:
        return UNKNOWN
    ours, theirs = sum(spec) / len(spec), sum(plain) / len(plain)
    n = min(len(spec), len(plain))
    if not ours or not theirs:
        return Estimate(value=None, rows=n)
    value = ours / theirs
    if len(spec) != len(plain) or n < LEAST_REPEATS or not (_differ(spec, ours) or _differ(plain, theirs)):
        return Estimate(value=value, rows=n)
    parts = [a / ours - b / theirs for a, b in zip(spec, plain, strict=True)]
    error = settled(math.sqrt(sum(part * part for part in parts) / (n - 1) / n), 1.0)
    factor = math.exp(student_t_quantile(0.5 + CONFIDENCE / 2, n - 1) * error)
    return Estimate(value=value, low=value / factor, high=value * factor, standard_error=error, rows=n)


def _differ(throughputs: Sequence[float], mean: float) -> bool:
    """Whether repeats differ by more than rounding."""
    return settled(max(throughputs) - min(throughputs), mean) > 0


def step_cost_of(length: Estimate, speedup: Estimate) -> Estimate:
    """The step cost r = AL / S with the interval of its logarithm.

    Variance: that of log AL (delta method) and that of log S; degrees of freedom by Welch.
    """
    if not length.value or not speedup.value:
        return UNKNOWN
    value = length.value / speedup.value
    relative = None if length.standard_error is None else length.standard_error / length.value
    logs = unpaired_difference(
        Estimate(value=math.log(length.value), standard_error=relative, rows=length.rows),
        Estimate(value=math.log(speedup.value), standard_error=speedup.standard_error, rows=speedup.rows),
    )
    low, high = (None if end is None else math.exp(end) for end in (logs.low, logs.high))
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
