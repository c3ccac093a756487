"""A load's acceptance a prompt: what one prompt was answered with over all repeats is one sample.

Prompts of one conversation, or of the same content, are one sample together where the workload tells it.
"""

from collections.abc import Callable, Sequence

from orchestrator.compare import definitions
from orchestrator.compare.served import Draft
from orchestrator.compare.served_acceptance import LEAST_STEPS, samples_of
from orchestrator.compare.served_speed import tokens_of
from orchestrator.records.measurement import Series
from remote_payload.schema.bench import RequestSample
from remote_payload.schema.workload import WorkloadFacts

DEEPEST = 16
"""Depth up to which acceptance is a metric of its own."""
Count = Callable[[RequestSample], int]


def prompt_series(
    workload: WorkloadFacts,
    requests: Sequence[RequestSample],
    plain: Sequence[RequestSample],
    draft: Draft,
) -> list[Series]:
    """Everything that is counted a prompt. `plain`: the same load without speculation; none where it was not run.

    `draft`: how the server drafts; SGLang trims a histogram's trailing zeros, and a depth that nothing reached is 0 %.
    """
    told = [item for item in requests if item.verify_steps]
    table = _Table(workload, told)
    found = [table.ratio("accept_length_per_verify", "tokens", definitions.ACCEPT_LENGTH_PER_VERIFY, _tokens, _verify)]
    if all(item.correct_drafts is not None for item in told):
        found.append(
            table.ratio(
                "accept_length_pooled", "tokens", definitions.ACCEPT_LENGTH_POOLED, _verify_and_correct, _verify
            )
        )
        if draft.num_draft_tokens is not None and draft.num_draft_tokens >= 2:
            found.append(_rate(table, draft.num_draft_tokens - 1))
    if told and all(item.histogram is not None for item in told):
        asked = min(draft.ceiling or 0, DEEPEST + 1)
        found += _depths(table, max(asked, *(len(item.histogram or ()) for item in told)))
    answers = _Table(workload, requests)
    found.append(answers.ratio("output_tokens", "tokens", definitions.OUTPUT_TOKENS, tokens_of, lambda _: 1))
    known = [item for item in requests if item.cached_tokens is not None and item.prompt_tokens]
    prompts = _Table(workload, known)
    found.append(prompts.ratio("cached_share", "share", definitions.CACHED_SHARE, _cached, _prompt_tokens))
    if workload.temperature == 0:
        found.append(_identical(workload, requests, plain))
    return [series for series in found if series is not None]


class _Table:
    """Requests by prompt."""

    def __init__(self, workload: WorkloadFacts, requests: Sequence[RequestSample]) -> None:
        by_prompt: dict[int, list[RequestSample]] = {}
        for item in requests:
            by_prompt.setdefault(item.prompt, []).append(item)
        self.by_prompt = dict(sorted(by_prompt.items()))
        self.keys = tuple(f"{workload.sha256[:12]}#{prompt}" for prompt in self.by_prompt)
        self.clusters = _clusters(workload, tuple(self.by_prompt))

    def ratio(self, metric: str, unit: str, definition: str, y: Count, x: Count) -> Series | None:
        """sum(y) over sum(x) a prompt; None where nothing was counted."""
        ys = tuple(float(sum(y(item) for item in some)) for some in self.by_prompt.values())
        xs = tuple(float(sum(x(item) for item in some)) for some in self.by_prompt.values())
        if not sum(xs):
            return None
        return Series(
            metric=metric,
            unit=unit,
            definition=definition,
            level="prompt",
            keys=self.keys,
            clusters=self.clusters,
            y=ys,
            x=xs,
        )


def _clusters(workload: WorkloadFacts, prompts: Sequence[int]) -> tuple[str, ...]:
    """The conversation or content of each prompt, where several share one: a further turn is no new sample."""
    known = samples_of(workload)
    if not all(0 <= one < len(known) for one in prompts):
        return ()
    contents = tuple(known[prompt] for prompt in prompts)
    return contents if len(set(contents)) < len(contents) else ()


def _rate(table: _Table, drafts: int) -> Series | None:
    words = definitions.ACCEPT_RATE.format(drafts=drafts)
    return table.ratio("accept_rate", "share", words, _correct, lambda item: _verify(item) * drafts)


def _depths(table: _Table, width: int) -> list[Series | None]:
    """Acceptance of each depth given the one before, as deep as enough verify steps came."""
    found: list[Series | None] = []
    for depth in range(1, width):
        words = (
            definitions.FIRST_STEP_ACCEPTANCE if depth == 1 else definitions.STEP_ACCEPTANCE.format(before=depth - 1)
        )
        series = table.ratio(f"step{depth}_acceptance", "share", words, _at_least(depth), _at_least(depth - 1))
        if series is None or sum(series.x) < LEAST_STEPS:
            break
        found.append(series)
    return found


def _identical(
    workload: WorkloadFacts, requests: Sequence[RequestSample], plain: Sequence[RequestSample]
) -> Series | None:
    ours, theirs = _first_outputs(requests), _first_outputs(plain)
    both = sorted(ours.keys() & theirs.keys())
    if not both:
        return None
    return Series(
        metric="identical_outputs",
        unit="share",
        definition=definitions.IDENTICAL_OUTPUTS,
        level="prompt",
        keys=tuple(f"{workload.sha256[:12]}#{prompt}" for prompt in both),
        clusters=_clusters(workload, both),
        y=tuple(float(ours[prompt] == theirs[prompt]) for prompt in both),
        x=(1.0,) * len(both),
    )


def _first_outputs(requests: Sequence[RequestSample]) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for item in requests:
        if item.output_ids is not None:
            found.setdefault(item.prompt, item.output_ids)
    return found


def _tokens(item: RequestSample) -> int:
    return item.completion_tokens or 0


def _verify(item: RequestSample) -> int:
    return item.verify_steps or 0


def _correct(item: RequestSample) -> int:
    return item.correct_drafts or 0


def _verify_and_correct(item: RequestSample) -> int:
    return _verify(item) + _correct(item)


def _cached(item: RequestSample) -> int:
    return item.cached_tokens or 0


def _prompt_tokens(item: RequestSample) -> int:
    return item.prompt_tokens or 0


def _at_least(depth: int) -> Count:
    return lambda item: sum((item.histogram or ())[depth:])
