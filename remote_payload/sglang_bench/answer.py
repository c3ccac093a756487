"""What SGLang says about one request in `meta_info`, whichever version it is, and whether its numbers agree."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

CORRECT = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
PROPOSED = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")
"""Newest name first: 0.5.12 and later; 0.5.11; 0.5.6 to 0.5.10."""
SAME = 1e-6
"""Relative: the server's own ratios are made from the same integers."""
LARGEST_COUNT = 1 << 40
"""No request has so many tokens; what is larger is no count."""
WORD_CHARACTERS = 40


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is known of a request beside what the server says; None = unknown."""

    width: int | None = None
    """Drafts that one verify step judges (num_draft_tokens - 1); None as well where it changes."""
    streamed: int | None = None
    """How many tokens came through the stream."""
    ids: int | None = None
    """How many ids the answer holds."""
    prompt_ids: int | None = None
    """How many were sent."""
    max_new_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer's own numbers; None = the server does not tell (or told Infinity)."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    finish: str | None = None
    """`stop`, `length`, `abort`."""
    error: str | None = None
    """The server's words where it gave the request up."""
    verify_steps: int | None = None
    correct_drafts: int | None = None
    """Accepted drafts without the bonus token."""
    proposed_drafts: int | None = None
    histogram: tuple[int, ...] | None = None
    """`histogram[i]` = verify steps that accepted exactly i drafts; trailing zeros may be left out."""
    broken_identities: tuple[str, ...] = ()


def read_answer(meta: Mapping[str, Any], asked: Asked = Asked()) -> Answer:
    """Read a `meta_info`; numbers that contradict each other, or what is known anyway, are told. Never raises."""
    verify = _count(meta.get("spec_verify_ct"))
    histogram = _counts(_first(meta, HISTOGRAM))
    correct = _count(_first(meta, CORRECT))
    if verify == 0:  # 0.5.5 gives zeros where nothing was speculated
        verify = correct = histogram = None
    finish, error = _finish(meta.get("finish_reason"))
    answer = Answer(
        prompt_tokens=_count(meta.get("prompt_tokens")),
        completion_tokens=_count(meta.get("completion_tokens")),
        cached_tokens=_count(meta.get("cached_tokens")),
        finish=finish,
        error=error,
        verify_steps=verify,
        correct_drafts=correct,
        proposed_drafts=_count(_first(meta, PROPOSED)) if verify is not None else None,
        histogram=histogram,
    )
    broken = (
        *_names(meta),
        *_sums(answer, asked.width),
        *_tokens(answer, asked),
        *_completion(answer, meta, asked.width),
        *_ratios(answer, meta),
    )
    return replace(answer, broken_identities=broken)


def _names(meta: Mapping[str, Any]) -> list[str]:
    """0.5.12 tells the same number under an old name and a new one."""
    broken = []
    for names in (CORRECT, PROPOSED):
        told = {name: number for name in names if (number := _count(meta.get(name))) is not None}
        if len(set(told.values())) > 1:
            broken.append(", ".join(f"{name} = {number}" for name, number in told.items()))
    return broken


def _sums(answer: Answer, width: int | None) -> list[str]:
    """Sum of the histogram = verify steps; its weighted sum = accepted drafts; proposed = verify steps x width."""
    verify, histogram, proposed, broken = answer.verify_steps, answer.histogram, answer.proposed_drafts, []
    if verify is not None and histogram is not None and sum(histogram) != verify:
        broken.append(f"sum(histogram) = {sum(histogram)}, verify steps = {verify}")
    if histogram is not None and answer.correct_drafts is not None:
        weighted = sum(index * count for index, count in enumerate(histogram))
        if weighted != answer.correct_drafts:
            broken.append(f"sum(i * histogram[i]) = {weighted}, correct drafts = {answer.correct_drafts}")
    if verify is not None and proposed is not None and width is not None and proposed != verify * width:
        broken.append(f"proposed drafts = {proposed}, verify steps x {width} = {verify * width}")
    return broken


def _tokens(answer: Answer, asked: Asked) -> list[str]:
    """What was sent, what came and what was allowed against what the server counts."""
    broken: list[str] = []
    completion, prompt, cached = answer.completion_tokens, answer.prompt_tokens, answer.cached_tokens
    if completion is not None and asked.streamed is not None and asked.streamed != completion:
        broken.append(f"streamed tokens = {asked.streamed}, completion tokens = {completion}")
    if completion is not None and asked.ids is not None and asked.ids != completion:
        broken.append(f"output ids = {asked.ids}, completion tokens = {completion}")
    # A verify step may go beyond the end where a version does not cut it off.
    if completion is not None and asked.max_new_tokens and completion > asked.max_new_tokens + (asked.width or 0):
        broken.append(f"completion tokens = {completion}, max_new_tokens = {asked.max_new_tokens}")
    if prompt is not None and asked.prompt_ids is not None and prompt != asked.prompt_ids:
        broken.append(f"prompt tokens = {prompt}, prompt ids sent = {asked.prompt_ids}")
    if prompt is not None and cached is not None and cached > prompt:
        broken.append(f"cached tokens = {cached}, prompt tokens = {prompt}")
    return broken


def _completion(answer: Answer, meta: Mapping[str, Any], width: int | None) -> list[str]:
    """One token from the prefill, one and the accepted drafts from each verify step, less what its end cut off.

    A request that was retracted is prefilled again, which gives one more token each time.
    """
    broken: list[str] = []
    completion, verify, correct = answer.completion_tokens, answer.verify_steps, answer.correct_drafts
    if completion is None or verify is None or correct is None:
        return broken
    made, retracted = 1 + verify + correct, _count(meta.get("num_retractions")) or 0
    if completion > made + retracted:
        broken.append(f"completion tokens = {completion}, 1 + verify steps + correct drafts = {made}")
    if width is not None and completion < made - width:
        broken.append(f"completion tokens = {completion}, more than one step below 1 + verify + correct = {made}")
    return broken


def _ratios(answer: Answer, meta: Mapping[str, Any]) -> list[str]:
    """The server's own accept length is completion over verify steps."""
    told, verify, completion = _number(meta.get("spec_accept_length")), answer.verify_steps, answer.completion_tokens
    if told is None or not verify or completion is None:
        return []
    if abs(told - completion / verify) <= SAME * max(1.0, told):
        return []
    return [f"spec_accept_length = {told:.4f}, completion / verify steps = {completion / verify:.4f}"]


def _finish(reason: object) -> tuple[str | None, str | None]:
    """`finish_reason` is an object in every version, a word in some forks; an abort carries a message."""
    if isinstance(reason, str):
        return reason[:WORD_CHARACTERS], "the server aborted the request" if reason == "abort" else None
    if not isinstance(reason, Mapping):
        return None, None
    kind = reason.get("type")
    name = kind[:WORD_CHARACTERS] if isinstance(kind, str) else None
    if name != "abort":
        return name, None
    return name, f"the server aborted the request: {str(reason.get('message') or 'no reason given')[:500]}"


def _first(meta: Mapping[str, Any], names: tuple[str, ...]) -> object:
    return next((meta[name] for name in names if meta.get(name) is not None), None)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if -LARGEST_COUNT <= value <= LARGEST_COUNT else None  # also of NaN, and of 10**400


def _count(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number >= 0 and number == int(number) else None


def _counts(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        return None
    counts = [_count(item) for item in value]
    return None if None in counts else tuple(count for count in counts if count is not None)
