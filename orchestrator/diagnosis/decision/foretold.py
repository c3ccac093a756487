"""Served against predicted, request by request: the same prompt, the same output, the same number of steps.

On the target's own greedy text the serving walk gives the server's histogram exactly where both compute in float32
(seen for four configurations on 96 requests of a real server). There every difference is a finding, not noise: prompts
that surely fall short, all or nearly all of them, are the engine's loss however little it is, and any other difference
leaves the server in doubt, be it upwards as often as down. In
coarser formats a rounded tie sends single requests both ways; a fault sends them one way. So what decides there is the
interval of the difference over prompts, beside a margin, and the share of identical requests is told. Simulated on 8
to 48 prompts of 23 steps, 400 times each: a sound server of which rounding changed every second request was called
below in 0.3 to 1.3 %; one that lost a tenth of every depth's acceptance in 58 % (8 prompts), 97 % (24) and 100 % (48).
Fewer than 8 prompts decide no loss there: of 5, one such server in thirty was called below.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.compare.served_acceptance import LEAST_STEPS, depth_profile
from orchestrator.compare.statistics.alike import LEAST_EQUAL
from orchestrator.compare.stats import MIN_ROWS, Estimate, Proportion, bounded, paired_difference, pooled_ratio
from orchestrator.diagnosis.decision.inputs import Predicted, PredictedRequest, SplitName
from remote_payload.schema.bench import RequestSample

MARGIN = 0.1
"""Accept length that two engines in 16 bits may differ by: three of them agreed within 0.06 on one drafter."""
ONE_WAY = 0.05
"""In float32, the probability below which prompts that differ all one way are no chance: 6 of 6, 8 of 9 and so on."""
LEAST_ROUNDED = 8
"""Prompts from which on a loss in a coarser format than float32 is one."""
NAMED = 3
"""Requests that are named one by one."""


@dataclass(frozen=True, kw_only=True)
class DepthPair:
    """The conditional acceptance at one depth on both sides."""

    depth: int
    served: Proportion
    predicted: Proportion
    difference: Estimate
    """Served minus predicted, paired by prompt."""

    @property
    def is_below(self) -> bool:
        """Whether the server surely accepts less at this depth, of what came so far."""
        enough = min(self.served.n, self.predicted.n) >= LEAST_STEPS
        return enough and self.difference.high is not None and self.difference.high < 0


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One split's requests beside what was foretold of them."""

    split: SplitName
    requests: int
    """Requests that could be held against a prediction."""
    prompts: int
    identical: int
    """Requests with the very histogram that was foretold."""
    lower: int
    """Requests that accepted fewer drafts a verify step than foretold."""
    higher: int
    first: tuple[str, ...]
    """The first requests that differ, in words."""
    falling: int
    """Prompts whose accept length is lower than foretold."""
    rising: int
    other_text: int
    """Requests whose output is not the row's, or was not walked to its end: held against nothing."""
    not_greedy: int
    """Requests whose row is not the target's own greedy text: the walk is not exact there."""
    exact: bool
    """Whether both sides computed in float32, so that identity is expected."""
    served: Estimate
    predicted: Estimate
    difference: Estimate
    """Accept length, served minus predicted, paired by prompt."""
    depths: tuple[DepthPair, ...]

    @property
    def answer(self) -> str:
        """`below`, `little_below`, `above`, `differs`, `as_predicted` or `open`, as the axes name them."""
        value, low, high = self.difference.value, self.difference.low, self.difference.high
        if self.prompts < MIN_ROWS or value is None or low is None or high is None:
            return "open"
        if not self.difference.standard_error and not self.exact and self.prompts < LEAST_EQUAL:
            return "open"  # a spread of nothing is no certainty
        if (high < 0 and value < -MARGIN) or (low > 0 and value > MARGIN):
            few = not self.exact and self.prompts < LEAST_ROUNDED
            return "open" if few else "below" if high < 0 else "above"
        if self.exact and self.one_way < ONE_WAY and (high < 0 or low > 0):
            return "little_below" if high < 0 else "above"
        if self.exact and self.identical < self.requests:
            return "differs"
        return "as_predicted" if low > -MARGIN and high < MARGIN else "open"

    @property
    def one_way(self) -> float:
        """How probable it is that so many of the prompts that differ do so one way: the sign test, both ways."""
        n, fewer = self.falling + self.rising, min(self.falling, self.rising)
        ways: int = sum(math.comb(n, k) for k in range(fewer + 1))
        return min(1.0, math.ldexp(ways, 1 - n))

    @property
    def first_below(self) -> int | None:
        """The first depth at which the server surely accepts less; None = at none."""
        return next((pair.depth for pair in self.depths if pair.is_below), None)


def compare(predicted: Predicted, requests: Sequence[RequestSample], steps: int | None, *, exact: bool) -> Compared:
    """Match by prompt and output. `steps`: how many the server drafts; `exact`: whether it computes in float32."""
    known = {item.prompt: item for item in predicted.requests}
    good = [item for item in requests if item.error is None and item.histogram is not None and item.prompt in known]
    same = [(item, known[item.prompt]) for item in good if _is_same_text(item, known[item.prompt])]
    pairs = [(item, told) for item, told in same if told.greedy]
    width = 1 + max([steps or 0, *(len(told.histogram) - 1 for _, told in pairs)], default=0)
    sides = [(_padded(item.histogram or (), width), _padded(told.histogram, width)) for item, told in pairs]
    unlike = [index for index, (a, b) in enumerate(sides) if a != b]
    means = [(_mean(a), _mean(b)) for a, b in sides]
    ours, theirs = _by_prompt(pairs, [a for a, _ in sides]), _by_prompt(pairs, [b for _, b in sides])
    by_prompt = [(_mean(ours[prompt]), _mean(theirs[prompt])) for prompt in ours]
    return Compared(
        split=predicted.split,
        requests=len(pairs),
        prompts=len(ours),
        identical=len(sides) - len(unlike),
        lower=sum(a < b for a, b in means),
        higher=sum(a > b for a, b in means),
        first=tuple(_words(pairs[index][0], *sides[index]) for index in unlike[:NAMED]),
        falling=sum(a < b for a, b in by_prompt),
        rising=sum(a > b for a, b in by_prompt),
        other_text=len(good) - len(same),
        not_greedy=len(same) - len(pairs),
        exact=exact and predicted.dtype == "float32",
        served=bounded(pooled_ratio(*_lengths(ours)), 1, width),
        predicted=bounded(pooled_ratio(*_lengths(theirs)), 1, width),
        difference=paired_difference(_lengths(ours), _lengths(theirs)),
        depths=_depths(ours, theirs, width),
    )


def _is_same_text(item: RequestSample, told: PredictedRequest) -> bool:
    """Whether the row continues the prompt as the server did, and was walked to the same end."""
    if item.completion_tokens is not None and told.tokens != item.completion_tokens:
        return False
    if item.output_ids is None or told.output_ids is None:
        return True
    return told.output_ids[: len(item.output_ids)] == item.output_ids


def _padded(histogram: Sequence[int], width: int) -> tuple[int, ...]:
    """SGLang trims trailing zeros."""
    return (*histogram, *(0 for _ in range(width - len(histogram))))


def _mean(histogram: Sequence[int]) -> float:
    steps = sum(histogram)
    return sum(index * count for index, count in enumerate(histogram)) / steps if steps else 0.0


def _words(item: RequestSample, served: Sequence[int], predicted: Sequence[int]) -> str:
    return f"request {item.index} (prompt {item.prompt}): served {list(served)}, predicted {list(predicted)}"


Histograms = Mapping[int, list[int]]


def _by_prompt(
    pairs: Sequence[tuple[RequestSample, PredictedRequest]], histograms: Sequence[Sequence[int]]
) -> Histograms:
    """A prompt's histograms added up: greedy answers to one prompt are one answer."""
    found: dict[int, list[int]] = {}
    for (item, _), histogram in zip(pairs, histograms, strict=True):
        known = found.setdefault(item.prompt, [0] * len(histogram))
        found[item.prompt] = [a + b for a, b in zip(known, histogram, strict=True)]
    return found


def _lengths(histograms: Histograms) -> tuple[list[int], list[int]]:
    """(verify steps + accepted, verify steps), a prompt each."""
    steps = [sum(item) for item in histograms.values()]
    accepted = [sum(index * count for index, count in enumerate(item)) for item in histograms.values()]
    return [a + b for a, b in zip(steps, accepted, strict=True)], steps


def _reached(histograms: Histograms, depth: int) -> tuple[list[int], list[int]]:
    """(steps that accepted so many drafts, those that accepted one less), a prompt each."""
    deep = [sum(item[depth:]) for item in histograms.values()]
    return deep, [sum(item[depth - 1 :]) for item in histograms.values()]


def _depths(ours: Histograms, theirs: Histograms, width: int) -> tuple[DepthPair, ...]:
    profiles = [depth_profile([sum(column) for column in zip(*side.values(), strict=True)]) for side in (ours, theirs)]
    found = []
    for served, predicted in zip(*profiles, strict=True):
        depth = served.depth
        difference = paired_difference(_reached(ours, depth), _reached(theirs, depth))
        found.append(
            DepthPair(depth=depth, served=served.conditional, predicted=predicted.conditional, difference=difference)
        )
    return tuple(found[: width - 1])
