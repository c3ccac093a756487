"""What was asked of a server against what it runs with: every argument that decides how fast or how honest it is."""

import ast
import contextlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from remote_payload.schema.bench import ArgumentFact
from remote_payload.sglang_bench.redact import REDACTED, is_secret, redact_json

WATCHED = (
    "model_path",
    "dtype",
    "quantization",
    "kv_cache_dtype",
    "tp_size",
    "dp_size",
    "ep_size",
    "pp_size",
    "context_length",
    "mem_fraction_static",
    "max_running_requests",
    "effective_max_running_requests_per_dp",
    "max_total_tokens",
    "chunked_prefill_size",
    "page_size",
    "schedule_policy",
    "attention_backend",
    "prefill_attention_backend",
    "decode_attention_backend",
    "sampling_backend",
    "disable_overlap_schedule",
    "disable_radix_cache",
    "disable_cuda_graph",
    "cuda_graph_max_bs",
    "enable_mixed_chunk",
    "enable_torch_compile",
    "enable_dp_attention",
    "enable_deterministic_inference",
    "enable_multi_layer_eagle",
    "stream_interval",
    "random_seed",
    "version",
    "max_total_num_tokens",
)
"""Told beside every `speculative_*` and everything that was asked for."""
VARIABLES = (
    "SGLANG_SIMULATE_ACC_LEN",
    "SGLANG_SIMULATE_ACC_METHOD",
    "SGLANG_SIMULATE_ACC_TOKEN_MODE",
    "SGLANG_ENABLE_SPEC_V2",
    "SGLANG_ENABLE_OVERLAP_PLAN_STREAM",
)
"""Variables of the server's environment that change what is measured; told when they are set."""
_ALIASES = {
    "model": "model_path",
    "tp": "tp_size",
    "tensor_parallel_size": "tp_size",
    "dp": "dp_size",
    "data_parallel_size": "dp_size",
    "ep": "ep_size",
    "expert_parallel_size": "ep_size",
    "pp": "pp_size",
    "pipeline_parallel_size": "pp_size",
    "speculative_algo": "speculative_algorithm",
    "speculative_draft_model": "speculative_draft_model_path",
    "speculative_draft_path": "speculative_draft_model_path",
}
_UNTOLD = {"host", "port"}
_KEYWORD = re.compile(r"(\w+)=('(?:[^'\\]|\\.)*'|\[[^\]]*\]|[^,()\[\]{}]+)")


def requested_of(argv: Iterable[str]) -> dict[str, Any]:
    """The options of a command by their names in `/server_info`, numbers as numbers, bare flags as True."""
    found: dict[str, Any] = {}
    values: list[str] = []
    name: str | None = None
    for word in (*argv, "--"):
        if word.startswith("--"):
            if name is not None:
                found[name] = _value_of(name, values)
            head, equals, tail = word[2:].partition("=")
            option = head.replace("-", "_")
            name = _ALIASES.get(option, option) or None
            values = [tail] if equals else []
        elif name is not None:
            values.append(word)
    return found


def launched_with(info: Mapping[str, Any]) -> tuple[str, ...]:
    """The words that the server says it was launched with (0.5.2x); empty where it does not tell."""
    command = info.get("launch_command")
    with contextlib.suppress(ValueError):
        if isinstance(command, str):
            return tuple(shlex.split(command))
    return tuple(str(word) for word in command if word is not None) if isinstance(command, list) else ()


def argument_facts(
    requested: Mapping[str, Any],
    info: Mapping[str, Any],
    log_line: str | None,
    environment: Mapping[str, str],
    hidden: tuple[str, ...] = (),
) -> tuple[ArgumentFact, ...]:
    """One fact an argument, by name; `log_line`: the log's `server_args=`, for what `/server_info` leaves out.

    `hidden`: values that must stand nowhere.
    """
    logged = logged_arguments(log_line or "")
    states = info.get("internal_states")
    if isinstance(states, list) and states and isinstance(states[0], dict):
        info = {**{name: states[0][name] for name in WATCHED if name in states[0]}, **info}
    speculative = {name for name in (*info, *logged) if name.startswith("speculative_")}
    names = {*requested, *WATCHED, *speculative} - _UNTOLD
    facts = []
    for name in sorted(names):
        told = info[name] if name in info else logged.get(name)
        source = "log" if name not in info and name in logged else "server_info"
        effective = _json(name, told, hidden) if name in info or name in logged else None
        asked = _json(name, _like(requested[name], told), hidden) if name in requested else None
        if asked is not None or effective is not None:
            facts.append(ArgumentFact(name=name, requested=asked, effective=effective, source=source))  # type: ignore[arg-type] # one of its words
    facts += [
        ArgumentFact(name=name, requested=None, effective=json.dumps(environment[name]), source="environment")
        for name in VARIABLES
        if environment.get(name)
    ]
    return tuple(facts)


def logged_arguments(line: str) -> dict[str, Any]:
    """What a `server_args=` line holds: a dict's text since 0.5.2, `ServerArgs(name=value, ...)` before."""
    _, found, text = line.partition("server_args=")
    if not found:
        return {}
    with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        value = ast.literal_eval(text)
        return value if isinstance(value, dict) else {}
    arguments = {}
    for name, shown in _KEYWORD.findall(text.partition("(")[2]):
        arguments[name] = shown.strip()
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            arguments[name] = ast.literal_eval(shown.strip())
    return arguments


def _value_of(name: str, values: list[str]) -> Any:
    if not values:
        return True
    if name == "speculative_algorithm":
        return values[0].upper()  # as the server does
    return _number(values[0]) if len(values) == 1 else [_number(value) for value in values]


def _number(text: str) -> int | float | str:
    """A number that is written as Python writes it; `1e5` and `0.80` stay as they are, for they may be names."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            if str(kind(text)) == text:
                return kind(text)
    return text


def _like(asked: Any, told: Any) -> Any:
    """What was asked, as a number or as a text, whichever the server tells of it."""
    if isinstance(told, str) and type(asked) in (int, float):
        return str(asked)
    if isinstance(asked, str) and type(told) in (int, float):
        for kind in (int, float):
            with contextlib.suppress(ValueError):
                return kind(asked)
    return asked


def _json(name: str, value: object, hidden: tuple[str, ...]) -> str:
    if is_secret(name) and value:
        return json.dumps(REDACTED)
    return json.dumps(redact_json(value, name, hidden), default=str)
