"""One streamed `/generate` over a plain socket: when each piece came, and how many new tokens it carried.

Only what the clock needs is done while tokens arrive: a piece is stamped, and its cumulative token count is cut out of
the bytes. The JSON is read once, at the end. A connection is kept for the next request.
"""

import contextlib
import http.client
import json
import socket
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

READ_BYTES = 1 << 18
COUNT = b'"completion_tokens":'
ERROR_BYTES = 2000
CONNECT_S = 30.0


class StreamBroken(Exception):  # noqa: N818 - what happened, not a bug of ours
    """The request failed; its text says how. `status` is the HTTP status where one came."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


@dataclass(kw_only=True, eq=False)
class Streamed:
    """What came so far; filled while it comes, so that a broken stream keeps its part. Times are monotonic seconds."""

    sent_s: float | None = None
    status: int | None = None
    chunk_s: list[float] = field(default_factory=list)
    chunk_tokens: list[int] = field(default_factory=list)
    done_s: float | None = None
    output_ids: list[int] | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    tokens: int = 0
    """How many came so far."""


class Connection:
    """One kept connection to the server; opened when needed, closed after every failure. Not shared by threads."""

    def __init__(self, url: str, key: str | None) -> None:
        parts = urlsplit(url)
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or (443 if self._secure else 80)
        self._path = parts.path.rstrip("/") + "/generate"
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._http: http.client.HTTPConnection | None = None

    def open(self) -> None:
        """Connect now, so that the first request's clock does not hold it. Raises OSError."""
        if self._http is None:
            make = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            fresh = make(self._host, self._port, timeout=CONNECT_S)
            fresh.connect()
            fresh.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._http = fresh

    def close(self) -> None:
        """Drop the connection; the next request opens another."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def stream(self, body: bytes, timeout_s: float, into: Streamed) -> None:
        """Send one request and fill `into` until its stream ends. Raises StreamBroken, the connection closed."""
        is_whole = False
        try:
            self._stream(body, timeout_s, into)
            is_whole = True
        except TimeoutError:
            raise StreamBroken(f"no end within {timeout_s:g} s; tokens so far: {into.tokens}", into.status) from None
        except http.client.HTTPException as error:
            text = f"the stream broke off ({type(error).__name__}); tokens so far: {into.tokens}"
            raise StreamBroken(text, into.status) from None
        except OSError as error:
            raise StreamBroken(f"{error.strerror or error}; tokens so far: {into.tokens}", into.status) from None
        finally:
            if not is_whole:
                self.close()

    def _stream(self, body: bytes, timeout_s: float, into: Streamed) -> None:
        until_s = time.monotonic() + timeout_s
        is_kept = self._http is not None
        self.open()
        try:
            response = self._ask(body, until_s, into)
        except (ConnectionError, http.client.BadStatusLine):
            if not is_kept:
                raise
            self.close()  # the server may drop an idle connection whenever it likes: once more on a fresh one
            self.open()
            response = self._ask(body, until_s, into)
        assert self._http is not None
        into.status = response.status
        if response.status != 200:
            said = response.read(ERROR_BYTES).decode("utf-8", "replace")
            raise StreamBroken(f"HTTP {response.status}: {_said(said)}", response.status)
        events = _Events(into)
        sock = self._socket
        while not events.is_over:
            sock.settimeout(max(0.001, until_s - time.monotonic()))
            data = response.read1(READ_BYTES)
            now_s = time.monotonic()
            if not data:
                break
            events.feed(data, now_s)
        events.finish()
        if not response.isclosed():
            response.read()  # the last, empty chunk: the connection can be used again
        if response.will_close:
            self.close()

    def _ask(self, body: bytes, until_s: float, into: Streamed) -> http.client.HTTPResponse:
        assert self._http is not None
        self._socket = self._http.sock
        self._socket.settimeout(max(0.001, until_s - time.monotonic()))
        into.sent_s = time.monotonic()
        self._http.request("POST", self._path, body=body, headers=self._headers)
        return self._http.getresponse()


class _Events:
    """Server-sent events out of bytes as they come; several may come at once, or half of one."""

    def __init__(self, into: Streamed) -> None:
        self._into = into
        self._half = b""
        self._last = b""
        self._kept: list[bytes] = []
        self._is_incremental: bool | None = None
        self.is_over = False

    def feed(self, data: bytes, now_s: float) -> None:
        lines = (self._half + data).split(b"\n")
        self._half = lines.pop()
        for line in lines:
            if line.startswith(b"data:"):
                self._event(line[5:].strip(), now_s)

    def _event(self, event: bytes, now_s: float) -> None:
        if event == b"[DONE]":
            self.is_over = True
            return
        into, total = self._into, _count_in(event)
        if total is None:
            self._refuse(event)
            return
        new = total - into.tokens
        if new > 0:
            into.tokens = total
            into.chunk_s.append(now_s)
            into.chunk_tokens.append(new)
        into.done_s = now_s
        self._last = event
        if self._is_incremental is None and 0 < new < total:  # the second piece shows which kind of stream it is
            self._is_incremental = 0 < len(_object(event).get("output_ids") or ()) < total
        if self._is_incremental is not False:
            self._kept.append(event)
        elif self._kept:
            self._kept.clear()

    def _refuse(self, event: bytes) -> None:
        problem = _object(event).get("error")
        text = problem.get("message") if isinstance(problem, dict) else problem
        if text is None:
            return  # a comment or a heartbeat of a proxy
        raise StreamBroken(f"the server broke the request off: {str(text)[:ERROR_BYTES]}", self._into.status)

    def finish(self) -> None:
        """Read the last piece. Raises StreamBroken when the stream ended without an end."""
        into = self._into
        last = _object(self._last)
        meta = last.get("meta_info")
        into.meta = meta if isinstance(meta, dict) else {}
        pieces = [_object(event) for event in self._kept] if self._is_incremental else [last]
        held = [piece.get("output_ids") for piece in pieces]
        if held and all(isinstance(ids, list) for ids in held):
            into.output_ids = [token for ids in held for token in ids or ()]
        if not self.is_over and into.meta.get("finish_reason") is None:
            raise StreamBroken(f"the stream ended before the answer did; tokens so far: {into.tokens}", into.status)


def _count_in(event: bytes) -> int | None:
    """The cumulative `completion_tokens` of a piece, without reading all its JSON (inside a text it is escaped)."""
    at = event.rfind(COUNT)
    if at < 0:
        return None
    digits = event[at + len(COUNT) : at + len(COUNT) + 20].lstrip()
    end = next((index for index, byte in enumerate(digits) if not 48 <= byte <= 57), len(digits))
    return int(digits[:end]) if end else None


def _object(event: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        value = json.loads(event)
        return value if isinstance(value, dict) else {}
    return {}


def _said(text: str) -> str:
    """The message of an error body, whichever of the usual shapes it has."""
    value = _object(text.encode())
    inner = value.get("error", value.get("message", value.get("detail")))
    words = inner.get("message", inner) if isinstance(inner, dict) else inner
    return str(words)[:ERROR_BYTES] if words is not None else " ".join(text.split())[:ERROR_BYTES] or "no words"
