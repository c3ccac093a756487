"""What a running SGLang says about itself over HTTP, whichever version it is."""

import contextlib
import http.client
import json
import re
import time
from typing import Any
from urllib.parse import urlsplit

from remote_payload.schema.bench import Snapshot

ASK_S = 10.0
FLUSH_S = 30.0
GENERATED = "generation_tokens_total"
VERIFIED = "spec_verify_calls_total"
_COUNTER = re.compile(r"^sglang[:_](\w+)(?:\{[^}]*\})? ([-+.\deE]+)$", re.MULTILINE)


def ask(url: str, path: str, key: str | None, *, method: str = "GET", timeout_s: float = ASK_S) -> tuple[int, bytes]:
    """One request; the status and body. Raises OSError (a refused connection, a timeout, an answer that is no HTTP).

    Proxies of the environment are not used: the server is near, and a proxy would not reach it.
    """
    parts = urlsplit(url)
    make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = make(parts.hostname or "127.0.0.1", parts.port, timeout=timeout_s)
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        connection.request(method, parts.path.rstrip("/") + path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except http.client.HTTPException as error:
        raise OSError(f"no HTTP answer: {type(error).__name__} {error}") from None
    finally:
        connection.close()


def server_info(url: str, key: str | None, timeout_s: float = ASK_S) -> dict[str, Any] | None:
    """`/server_info`, or its name before 0.5.6; None when the server has neither. Raises OSError."""
    for path in ("/server_info", "/get_server_info"):
        status, body = ask(url, path, key, timeout_s=timeout_s)
        if status in (401, 403):
            raise PermissionError(f"HTTP {status} at {path}: the server wants another API key")
        with contextlib.suppress(ValueError):
            value = json.loads(body)
            if status == 200 and isinstance(value, dict):
                return value
    return None


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
            found[name] = found.get(name, 0.0) + float(value)
    return found


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _number(value: object) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
    return float(value) if good else None  # type: ignore[arg-type] # `good` says so


def _count(counters: dict[str, float], name: str) -> int | None:
    return int(counters[name]) if name in counters else None
