"""What a running SGLang says about itself over HTTP, whichever version it is."""

import contextlib
import json
import re
import time
from collections.abc import Mapping
from typing import Any

from remote_payload.schema.bench import Snapshot
from remote_payload.sglang_bench.asking import ASK_S, ask
from remote_payload.sglang_bench.redact import redact_json

FLUSH_S = 30.0
LARGEST = 1e15
"""No counter is larger."""
DEEPEST = 30
LONGEST_INFO = 1 << 20
"""Characters of `/server_info` that are kept."""
LONGEST_TEXT = 10_000
LONGEST_LIST = 10_000
GENERATED = "generation_tokens_total"
VERIFIED = "spec_verify_calls_total"
_COUNTER = re.compile(r"^sglang[:_](\w+)(?:\{[^}]*\})? ([-+.\deE]+)$", re.MULTILINE)


def server_info(url: str, key: str | None, timeout_s: float = ASK_S) -> dict[str, Any] | None:
    """`/server_info`, or its name before 0.5.6; None when the server has neither. Raises OSError."""
    for path in ("/server_info", "/get_server_info"):
        status, body = ask(url, path, key, timeout_s=timeout_s)
        if status in (401, 403):
            raise PermissionError(f"HTTP {status} at {path}: the server wants another API key")
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(body)
            if status == 200 and isinstance(value, dict):
                return {key: bounded(item) for key, item in value.items()}
    return None


def bounded(value: Any, depth: int = 0) -> Any:
    """What somebody else's JSON holds, as deep, long and large as anything that is meant: the rest is named."""
    if isinstance(value, dict | list) and depth >= DEEPEST:
        return "<nested too deep>"
    if isinstance(value, dict):
        return {key[:LONGEST_TEXT]: bounded(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [bounded(item, depth + 1) for item in value[:LONGEST_LIST]]
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{value[:LONGEST_TEXT]}..."
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "<a number of more than 64 bits>"
    return value


def snapshot(url: str, key: str | None, began_s: float) -> Snapshot:
    """Its own counters now; `time_s` of the answer is seconds since `began_s` (monotonic).

    What the server does not tell stays None; a server that does not answer gives an empty Snapshot. Takes at most a
    few seconds.
    """
    info: dict[str, Any] = {}
    counters: dict[str, float] = {}
    with contextlib.suppress(OSError):
        info = server_info(url, key) or {}
        status, body = ask(url, "/metrics", key)
        counters = counters_of(body.decode("utf-8", "replace")) if status == 200 else {}
    states = [state for state in _list(info.get("internal_states")) if isinstance(state, dict)]
    return Snapshot(
        time_s=time.monotonic() - began_s,
        avg_spec_accept_length=tuple(_number(state.get("avg_spec_accept_length")) for state in states),
        generation_tokens=counters.get(GENERATED),
        verify_calls=counters.get(VERIFIED),
        running=_count(counters, "num_running_reqs"),
        queued=_count(counters, "num_queue_reqs"),
    )


def flush(url: str, key: str | None) -> bool:
    """Empty the prefix cache, which also resets the accept counters; False where it refuses (requests are running)."""
    for method in ("POST", "GET"):
        try:
            status, _ = ask(url, "/flush_cache", key, method=method, timeout_s=FLUSH_S)
        except OSError:
            return False
        if status != 405:
            return status == 200
    return False


def counters_of(text: str) -> dict[str, float]:
    """SGLang's metrics by name without `sglang:`, summed over their labels (ranks)."""
    found: dict[str, float] = {}
    for name, value in _COUNTER.findall(text):
        with contextlib.suppress(ValueError):
            number = float(value)
            if abs(number) <= LARGEST:  # not so of NaN
                found[name] = found.get(name, 0.0) + number
    return found


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -LARGEST <= value <= LARGEST:
        return None
    return float(value)


def _count(counters: dict[str, float], name: str) -> int | None:
    return int(counters[name]) if name in counters else None


def as_text(info: Mapping[str, Any], hidden: tuple[str, ...]) -> str:
    """The info without secrets, without what every rank's state repeats of it, and without what is too long."""
    told = dict(info)
    states = info.get("internal_states")
    if isinstance(states, list):
        told["internal_states"] = [_own(state, info) if isinstance(state, dict) else state for state in states]
    room, kept = LONGEST_INFO, {}
    for key, value in sorted(told.items(), key=lambda item: len(str(item[1]))):
        text = json.dumps(redact_json(value, key, hidden))
        room -= len(text)
        kept[key] = json.loads(text) if room > 0 else "<left out>"
    return json.dumps(redact_json(kept, values=hidden), sort_keys=True)


def _own(state: Mapping[str, Any], info: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key not in info or info[key] != value}
