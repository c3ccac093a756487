"""One streamed answer of `/generate`: when each piece came, and how many new tokens it carried.

Only what the clock needs is done while tokens arrive: the cumulative token count is cut out of a piece's bytes. The
JSON is read once, at the end.
"""

import contextlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

COUNT = b'"completion_tokens"'
ERROR = b'"error"'
ERROR_BYTES = 2000
LARGEST_ID = 2**31 - 1
_DIGITS = re.compile(rb"\s*:\s*(\d{1,12})(?!\d)")


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
    """When the last piece came."""
    over_s: float | None = None
    """When the answer was at its end, so that its connection was free again."""
    output_ids: list[int] | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    tokens: int = 0
    """How many came so far."""


class Events:
    """Server-sent events out of bytes as they come; several may come at once, or half of one."""

    def __init__(self, into: Streamed) -> None:
        self._into = into
        self._half = b""
        self._last = b""
        self._kept: list[bytes] = []
        self._is_incremental: bool | None = None
        self.is_over = False

    def feed(self, data: bytes, now_s: float) -> None:
        """Take in what came at `now_s`. Raises StreamBroken when the server says so in its stream."""
        lines = (self._half + data).split(b"\n")
        self._half = lines.pop()
        for line in lines:
            if line.startswith(b"data:") and not self.is_over:
                self._event(line[5:].strip(), now_s)

    def _event(self, event: bytes, now_s: float) -> None:
        if event == b"[DONE]":
            self.is_over = True
            return
        into, total = self._into, _count_in(event)
        if total is None or event.find(ERROR, 0, 64) >= 0:  # an error is told first in its object
            self._refuse(_object(event))
        if total is None:
            return  # a comment or a heartbeat of a proxy
        new = total - into.tokens
        if new > 0:
            into.tokens = total
            into.chunk_s.append(now_s)
            into.chunk_tokens.append(new)
        into.done_s = now_s
        self._last = event
        if self._is_incremental is None and 0 < new < total:  # the second piece shows which kind of stream it is
            ids = _object(event).get("output_ids")
            self._is_incremental = isinstance(ids, list) and 0 < len(ids) < total
        if self._is_incremental is not False:
            self._kept.append(event)
        elif self._kept:
            self._kept.clear()

    def _refuse(self, value: dict[str, Any]) -> None:
        """Raises StreamBroken where the server says that it gave the request up."""
        problem = value.get("error")
        text = problem.get("message") if isinstance(problem, dict) else problem
        if text is not None:
            raise StreamBroken(f"the server broke the request off: {str(text)[:ERROR_BYTES]}", self._into.status)

    def finish(self) -> None:
        """Read the last piece. Raises StreamBroken when the stream ended without the answer's end."""
        into = self._into
        last = _object(self._last)
        self._refuse(last)
        meta = last.get("meta_info")
        if self._last and not isinstance(meta, dict):
            raise StreamBroken("the answer's last piece cannot be read", into.status)
        into.meta = meta if isinstance(meta, dict) else {}
        pieces = [_object(event) for event in self._kept] if self._is_incremental else [last]
        into.output_ids = self._ids([piece.get("output_ids") for piece in pieces])
        if into.tokens and into.meta.get("finish_reason") is None:
            raise StreamBroken(f"the stream ended before the answer did; tokens so far: {into.tokens}", into.status)

    def _ids(self, held: list[object]) -> list[int] | None:
        """None where the server gives none. Raises StreamBroken for what is no list of token ids."""
        if all(ids is None for ids in held):
            return None
        made: list[int] = []
        for ids in held:
            if not isinstance(ids, list) or not all(type(one) is int and 0 <= one <= LARGEST_ID for one in ids):
                raise StreamBroken("the answer's `output_ids` are no token ids", self._into.status)
            made += ids
        return made


def _count_in(event: bytes) -> int | None:
    """The cumulative `completion_tokens` of a piece, without reading all its JSON (inside a text it is escaped)."""
    at = event.rfind(COUNT)
    if at < 0:
        return None
    digits = _DIGITS.match(event, at + len(COUNT))
    return int(digits[1]) if digits else None


def _object(event: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(event)
        return value if isinstance(value, dict) else {}
    return {}


def said(text: str) -> str:
    """The message of an error body, whichever of the usual shapes it has."""
    value = _object(text.encode())
    inner = value.get("error", value.get("message", value.get("detail")))
    words = inner.get("message", inner) if isinstance(inner, dict) else inner
    return str(words)[:ERROR_BYTES] if words is not None else " ".join(text.split())[:ERROR_BYTES] or "no words"
