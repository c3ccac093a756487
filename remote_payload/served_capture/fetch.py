"""One row's states from a running SGLang: the whole prompt's, position by position, and the target's choice after each.

Three things make SGLang return fewer states than tokens, each without a word; all seen on 0.5.23:

- a prefix in the cache is not computed again: the log probabilities of the whole prompt are asked for as well, which
  makes SGLang compute all of it, and give the target's choices;
- of a prompt that is prefilled in chunks only the last chunk's states come back: the row must fit into one;
- a token that was drafted and accepted has its state in another entry: nothing is generated, the answer is sent again
  as a part of the prompt.

So a row whose states are not as many as its tokens is refused, never shifted.
"""

import json
from dataclasses import dataclass
from typing import Any

from remote_payload.failure import JobFailure, server_failure
from remote_payload.sglang_bench.asking import ask
from remote_payload.sglang_bench.server import Running

MOST_BYTES = 2 << 30
"""Of one row's answer: its states are decimal text."""
REFUSED = ("return hidden states", "return the hidden states", "return_hidden_states")
"""Words of SGLang's refusal to a server started without the flag."""


class NotReturnedError(Exception):
    """This server returns no states at all; the message is its own words."""


class RowRefusedError(Exception):
    """One row could not be had, and why."""


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """One row as the server computed it."""

    tokens: tuple[int, ...]
    states: list[list[float]]
    """A vector a token."""
    answers: tuple[int, ...]
    """The target's greedy choice after each token, -1 = not told."""


def answer_of(
    running: Running, prompt: tuple[int, ...], max_new_tokens: int, timeout_s: float, *, ignore_eos: bool = False
) -> tuple[int, ...]:
    """The greedy answer's ids. Raises RowRefusedError; JobFailure(server) where the server died."""
    sampling = {"temperature": 0.0, "max_new_tokens": max_new_tokens, "ignore_eos": ignore_eos}
    told = _generate(running, prompt, sampling, {}, timeout_s)
    ids = told.get("output_ids")
    if not isinstance(ids, list) or not all(type(token) is int for token in ids):
        raise RowRefusedError("the server's answer holds no `output_ids`")
    return tuple(ids)


def fetch(running: Running, tokens: tuple[int, ...], timeout_s: float) -> Fetched:
    """States and choices for `tokens`. Raises NotReturnedError, RowRefusedError, JobFailure(server)."""
    wanted = {"return_hidden_states": True, "return_logprob": True, "logprob_start_len": 0, "top_logprobs_num": 1}
    told = _generate(running, tokens, {"temperature": 0.0, "max_new_tokens": 1}, wanted, timeout_s)
    meta = told.get("meta_info")
    blocks = meta.get("hidden_states") if isinstance(meta, dict) else None
    if not isinstance(blocks, list) or not blocks:
        raise NotReturnedError("the answer holds no `hidden_states`")
    states = _prompt_states(blocks)
    if len(states) != len(tokens):
        raise RowRefusedError(
            f"{len(states)} states came for {len(tokens)} tokens: a prefix in the cache, or a prompt prefilled in "
            "chunks, hides the others"
        )
    if len({len(state) for state in states}) != 1:
        raise RowRefusedError("the states of one row differ in width")
    assert isinstance(meta, dict)
    return Fetched(tokens=tokens, states=states, answers=_choices(meta, told.get("output_ids"), len(tokens)))


def _prompt_states(blocks: list[Any]) -> list[list[float]]:
    """The prompt's vectors: lists of vectors come before the generated tokens' single vectors."""
    states: list[list[float]] = []
    for block in blocks:
        if not isinstance(block, list) or not block or not isinstance(block[0], list):
            break
        states += block
    if not all(isinstance(state, list) and state for state in states):
        raise RowRefusedError("the server's `hidden_states` have a form that is not known here")
    return states


def _choices(meta: dict[str, Any], output_ids: object, length: int) -> tuple[int, ...]:
    """Entry i of the prompt's log probabilities tells what the target made of tokens 0..i-1; entry 0 is empty."""
    entries = meta.get("input_top_logprobs")
    found = [-1] * length
    if isinstance(entries, list) and len(entries) == length:
        for place, entry in enumerate(entries[1:]):
            found[place] = _token(entry)
    if isinstance(output_ids, list) and output_ids and type(output_ids[0]) is int:
        found[-1] = output_ids[0]
    return tuple(found)


def _token(entry: object) -> int:
    """Of `[[log probability, token, text]]`."""
    try:
        token = entry[0][1]  # type: ignore[index] # somebody else's JSON
    except (TypeError, IndexError, KeyError):
        return -1
    return token if type(token) is int and token >= 0 else -1


def _generate(
    running: Running, tokens: tuple[int, ...], sampling: dict[str, Any], wanted: dict[str, Any], timeout_s: float
) -> dict[str, Any]:
    body = json.dumps({"input_ids": list(tokens), "sampling_params": sampling, **wanted}).encode("ascii")
    try:
        status, data = ask(
            running.url, "/generate", running.key, method="POST", body=body, timeout_s=timeout_s, most_bytes=MOST_BYTES
        )
    except OSError as error:
        running.check()
        raise RowRefusedError(f"no whole answer: {error}") from None
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        told = None
    if status != 200:
        words = _refusal(told)
        if any(word in words for word in REFUSED):
            raise NotReturnedError(words)
        if status in (401, 403):
            raise _wrong_key(status)
        raise RowRefusedError(f"HTTP {status}: {words}")
    if not isinstance(told, dict):
        raise RowRefusedError("the server's answer is no JSON object")
    return told


def _refusal(told: object) -> str:
    error = told.get("error", told.get("message")) if isinstance(told, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message[:500] if isinstance(message, str) else "no reason was given"


def _wrong_key(status: int) -> JobFailure:
    return server_failure(f"HTTP {status}: the server wants another API key", hint="see `api_key_env`")
