"""Messages to token ids exactly as the server's own chat endpoint renders them.

A newer SGLang is asked itself: `/v1/chat/completions` with `return_prompt_token_ids`, one token each. An older one does
not give the ids: then the tokenizer of the server's own Python renders, and every length is compared with the
`usage.prompt_tokens` that the endpoint counts, so that another template on the server is noticed.
"""

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from remote_payload.bounded import BoundedChild
from remote_payload.failure import JobFailure, job_failure, server_failure
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.arguments import requested_of
from remote_payload.sglang_bench.asking import ask
from remote_payload.sglang_bench.command import path_of, python_of
from remote_payload.sglang_bench.prompt import LARGEST_ID, Prompt
from remote_payload.sglang_bench.redact import redact_text
from remote_payload.sglang_bench.workload import Workload, as_text

ASK_S = 300.0
TOKENIZER_S = 300.0
SHOWN_BYTES = 2000
SERVED = "served"
TOKENIZER = "tokenizer, lengths as served"
FEW = 8
"""Prompts a call of the tokenizer: they stand in its arguments."""

# Runs in the server's Python.
_RENDER = r"""
import json, sys
from transformers import AutoTokenizer
token, path, trust, conversations = sys.argv[1], sys.argv[2], sys.argv[3] == "1", json.loads(sys.argv[4])
tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=trust)
ids = []
for turns in conversations:
    text = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    ids.append(tokenizer.encode(text, add_special_tokens=False))
print("\n" + token + json.dumps(ids))
"""


class NoTemplateError(Exception):
    """The server has no chat template."""


def render(workload: Workload, job: BenchJob, url: str, key: str | None) -> Workload:
    """The workload with ids in place of messages; bundled prompts go as bare text where there is no template.

    Raises JobFailure(server or job): the endpoint refuses them, or renders otherwise than its tokenizer.
    """
    if workload.form != "messages":
        return workload
    everything = (*workload.prompts, *workload.spare)
    try:
        ids, template = ids_of(everything, job, url, key)
    except NoTemplateError as error:
        if workload.source == "bundled":
            return as_text(workload)
        raise job_failure(
            f"the prompts are messages, the server cannot render them: {error}",
            hint="start it with `--chat-template`, or give prompts as `text` or `input_ids`",
        ) from None
    made = [replace(p, input_ids=tuple(given), messages=None) for p, given in zip(everything, ids, strict=True)]
    count = len(workload.prompts)
    return replace(workload, prompts=tuple(made[:count]), spare=tuple(made[count:]), template=template)


def ids_of(prompts: Sequence[Prompt], job: BenchJob, url: str, key: str | None) -> tuple[list[list[int]], str]:
    """The ids of these prompts' messages, and how they were had: `SERVED` or `TOKENIZER`.

    Raises NoTemplateError; JobFailure(server or job) as `render`.
    """
    answers = [_ask(url, key, prompt) for prompt in prompts]
    told = [ids for _, ids in answers if ids is not None]
    if len(told) == len(answers):
        return told, SERVED
    rendered = _by_tokenizer(prompts, job)
    for prompt, ids, (length, _) in zip(prompts, rendered, answers, strict=True):
        if length is not None and len(ids) != length:
            raise job_failure(
                f"prompt {prompt.index}: the server's chat endpoint makes {length} tokens of it, the template of its "
                f"tokenizer: {len(ids)}",
                hint="the server was started with another chat template: give prompts as `text` or `input_ids`",
            )
    return rendered, TOKENIZER


def texts_of(ids: Sequence[int], url: str, key: str | None) -> list[str] | None:
    """Each token's text, special ones too; None where the server does not tell (`/v1/detokenize` is new in 0.5)."""
    body = {"model": "default", "tokens": [[token] for token in ids], "skip_special_tokens": False}
    try:
        status, value = _post(url, key, "/v1/detokenize", body)
    except JobFailure:
        return None
    texts = value.get("text") if status == 200 else None
    if not isinstance(texts, list) or len(texts) != len(ids) or not all(isinstance(text, str) for text in texts):
        return None
    return texts


def _ask(url: str, key: str | None, prompt: Prompt) -> tuple[int | None, list[int] | None]:
    """How many tokens the endpoint makes of it, and which where it tells. Raises NoTemplateError, JobFailure."""
    asked = {"model": "default", "messages": prompt.messages, "max_tokens": 1, "temperature": 0}
    status, value = _post(url, key, "/v1/chat/completions", {**asked, "return_prompt_token_ids": True})
    if status != 200:
        said = redact_text(json.dumps(value), () if key is None else (key,))[:500]
        if "chat template" in said.replace("_", " ").lower():
            raise NoTemplateError(said)
        raise server_failure(f"prompt {prompt.index}: the chat endpoint answers HTTP {status}: {said}")
    usage, choices = value.get("usage"), value.get("choices")
    length = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    ids = first.get("prompt_token_ids", value.get("prompt_token_ids"))
    is_list = (
        isinstance(ids, list) and bool(ids) and all(type(token) is int and 0 <= token <= LARGEST_ID for token in ids)
    )
    return (length if type(length) is int else None), (ids if is_list else None)


def _post(url: str, key: str | None, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Raises JobFailure(server) when there is no answer."""
    try:
        status, text = ask(url, path, key, method="POST", body=json.dumps(body).encode(), timeout_s=ASK_S)
    except OSError as error:
        raise server_failure(f"the server gives no answer at {path}: {error}") from None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text[:SHOWN_BYTES].decode("utf-8", "replace")
    return status, value if isinstance(value, dict) else {"error": value}


def _by_tokenizer(prompts: Sequence[Prompt], job: BenchJob) -> list[list[int]]:
    """Rendered by transformers in the server's Python, with the tokenizer that the job names.

    Never with one that a server names: what is loaded here runs here.
    """
    asked = requested_of(job.server_args)
    path = asked.get("tokenizer_path", job.model)
    if not isinstance(path, str):
        raise job_failure(
            "this server does not tell the ids of a chat prompt, so its tokenizer has to be loaded here",
            hint="name the target that it serves as `model`, or give prompts as `text` or `input_ids`",
        )
    trust = "1" if asked.get("trust_remote_code") is True else "0"
    ids: list[list[int]] = []
    for first in range(0, len(prompts), FEW):
        conversations = json.dumps([prompt.messages for prompt in prompts[first : first + FEW]])
        ids += _rendered(job, path_of(job, path), trust, conversations)
    return ids


def _rendered(job: BenchJob, path: str, trust: str, conversations: str) -> list[list[int]]:
    token = f"eagle3-{secrets.token_hex(8)} "
    command = [*job.exec_prefix, python_of(job), "-c", _RENDER, token, path, trust, conversations]
    try:
        done = BoundedChild(command).finish(time.monotonic() + TOKENIZER_S)
    except OSError as error:
        raise _no_tokenizer(path, (str(error),)) from None
    lines = done[1].splitlines() if done else [f"no answer within {TOKENIZER_S:g} s"]
    for line in lines:
        if line.startswith(token):
            ids: list[list[int]] = json.loads(line[len(token) :])
            return ids
    raise _no_tokenizer(path, tuple(lines[-5:]))


def _no_tokenizer(path: str, details: tuple[str, ...]) -> JobFailure:
    return job_failure(
        f"this SGLang does not tell the ids of a chat prompt, and its tokenizer cannot be loaded beside it: {path}",
        hint="give prompts as `text` or `input_ids`",
        details=details,
    )
