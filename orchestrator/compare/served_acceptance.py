"""What a served run says about acceptance: from each request's own counters, never from the server's running averages.

Two lengths, each under its own name. `accept_length` = 1 + correct drafts / verify steps: what one step of the target
yields, bonus token included. `tokens_per_verify` = completion tokens / verify steps: the same, but the prefill's token
counts too and what was cut at the end does not, so that on short outputs it may pass the ceiling. Field names and
meanings over SGLang's versions: https://github.com/sgl-project/sglang/pull/33518.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from orchestrator.compare.stats import UNKNOWN, Estimate, Proportion, pooled_ratio, wilson
from remote_payload.schema.bench import RequestSample
from remote_payload.schema.workload import WorkloadFacts

LEAST_STEPS = 30
"""Verify steps below which the conditional acceptance of a depth is not shown."""


@dataclass(frozen=True, kw_only=True)
class Depth:
    """Acceptance at one depth of the draft, 1 = the first draft token."""

    depth: int
    joint: Proportion
    """Steps that accepted at least so many drafts, of all steps."""
    conditional: Proportion
    """Of the steps that accepted one less; few steps come here, see `is_shown`."""

    @property
    def is_shown(self) -> bool:
        """Whether enough steps came this deep for the conditional share to mean something."""
        return self.conditional.n >= LEAST_STEPS


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """Acceptance over the requests of one load. A prompt that was sent several times, or as several, is one cluster."""

    requests: int
    """Requests whose answers tell of verify steps."""
    verify_steps: int
    correct_drafts: int | None
    """None = this version of SGLang tells neither drafts nor histogram."""
    proposed_drafts: int | None
    accept_length: Estimate
    """Pooled: 1 + correct / verify."""
    tokens_per_verify: Estimate
    """Pooled: completion tokens / verify."""
    accept_length_macro: float | None
    """Mean of the requests' own accept lengths, each request weighing the same."""
    tokens_per_verify_macro: float | None
    per_request: tuple[float, ...]
    """Accept length of each request, in order; tokens per verify where drafts are not told."""
    histogram: tuple[int, ...] | None
    """Verify steps that accepted exactly i drafts; None = not told, or not by every request."""
    depths: tuple[Depth, ...]

    @property
    def length(self) -> Estimate:
        """The unbiased length where the version tells it, else tokens per verify."""
        return self.tokens_per_verify if self.accept_length.value is None else self.accept_length

    def rate(self, num_draft_tokens: int | None) -> float | None:
        """Accepted of the drafts that were verified: correct / (verify * (num_draft_tokens - 1)), a node each.

        Of a tree most nodes cannot be accepted together, so its rate cannot reach 1.
        """
        if self.correct_drafts is None or num_draft_tokens is None or num_draft_tokens < 2 or not self.verify_steps:
            return None
        return self.correct_drafts / (self.verify_steps * (num_draft_tokens - 1))


def samples_of(workload: WorkloadFacts) -> tuple[str, ...]:
    """What each prompt is a sample of: its conversation, else its content; empty = neither is told."""
    return workload.conversations or workload.prompt_sha256


def acceptance(
    requests: Sequence[RequestSample], contents: Sequence[str] = (), depth: int | None = None
) -> Acceptance | None:
    """Acceptance over good requests; None where no answer tells of a verify step: that is unknown, not 1.00.

    `contents`: as of `samples_of`; equal ones are one sample. `depth`: how many steps the server drafts; SGLang trims a
    histogram's trailing zeros, and a depth that nothing reached is 0 %.
    """
    told = [item for item in requests if item.verify_steps]
    if not told:
        return None
    has_drafts = all(item.correct_drafts is not None for item in told)
    histogram = _histogram(told)
    verify, correct, tokens = _by_prompt(told, contents)
    steps_and_drafts = [v + c for v, c in zip(verify, correct, strict=True)]
    lengths = [_length(item) for item in told] if has_drafts else []
    per_verify = [(item.completion_tokens or 0) / (item.verify_steps or 1) for item in told]
    proposed = [item.proposed_drafts for item in told]
    return Acceptance(
        requests=len(told),
        verify_steps=sum(verify),
        correct_drafts=sum(correct) if has_drafts else None,
        proposed_drafts=None if None in proposed else sum(item or 0 for item in proposed),
        accept_length=pooled_ratio(steps_and_drafts, verify) if has_drafts else UNKNOWN,
        tokens_per_verify=pooled_ratio(tokens, verify),
        accept_length_macro=sum(lengths) / len(lengths) if lengths else None,
        tokens_per_verify_macro=sum(per_verify) / len(per_verify),
        per_request=tuple(lengths or per_verify),
        histogram=histogram,
        depths=() if histogram is None else depth_profile([*histogram, *[0] * ((depth or 0) + 1 - len(histogram))]),
    )


def depth_profile(histogram: Sequence[int]) -> tuple[Depth, ...]:
    """Joint S_j = sum(h[j:]) / sum(h) and conditional c_j = S_j / S_(j-1); 1 + sum of S_j is the accept length."""
    least = list(accumulate(reversed(histogram)))[::-1]  # least[j]: steps that accepted j or more
    return tuple(
        Depth(depth=j, joint=wilson(least[j], least[0]), conditional=wilson(least[j], least[j - 1]))
        for j in range(1, len(least))
    )


def _length(item: RequestSample) -> float:
    return 1 + (item.correct_drafts or 0) / (item.verify_steps or 1)


def _histogram(told: Sequence[RequestSample]) -> tuple[int, ...] | None:
    """The requests' histograms added up; the trailing zeros that SGLang trims differ from request to request."""
    found = [item.histogram for item in told]
    if None in found:
        return None
    width = max(len(item or ()) for item in found)
    return tuple(sum((item or ())[i] if i < len(item or ()) else 0 for item in found) for i in range(width))


def _by_prompt(told: Sequence[RequestSample], contents: Sequence[str]) -> tuple[list[int], list[int], list[int]]:
    """(verify steps, correct drafts, completion tokens), a prompt each: greedy answers to one prompt are one answer."""
    sums: dict[int | str, list[int]] = {}
    for item in told:
        content = contents[item.prompt] if 0 <= item.prompt < len(contents) else item.prompt
        row = sums.setdefault(content, [0, 0, 0])
        row[0] += item.verify_steps or 0
        row[1] += item.correct_drafts or 0
        row[2] += item.completion_tokens or 0
    verify, correct, tokens = zip(*sums.values(), strict=True)
    return list(verify), list(correct), list(tokens)
