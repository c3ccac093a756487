"""Waits for all connections at once, and tells each request's end."""

import contextlib
import select
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from remote_payload.sglang_bench.connection import Connection
from remote_payload.sglang_bench.place import Place
from remote_payload.sglang_bench.sockets import Sockets
from remote_payload.sglang_bench.stream import StreamBroken, Streamed

END_S = 1.0
"""How long the end of an HTTP body may come after the answer that is in it; then the connection is dropped."""
Over = Callable[[StreamBroken | None], None]
"""Told once a request is over; with what broke it, or None."""


@dataclass(kw_only=True, eq=False)
class _Asked:
    """A request under way, and by when it has to be over (monotonic seconds)."""

    connection: Connection
    into: Streamed
    timeout_s: float
    until_s: float
    over: Over
    is_ending: bool = False
    is_over: bool = False


class Loop:
    """One thread's. All happens in `turn`, also the calls that tell of an end; only `start` may tell at once, too."""

    def __init__(self) -> None:
        self._sockets = Sockets()
        self._asked: dict[Connection, _Asked] = {}
        self._by_deadline: deque[_Asked] = deque()
        self._ending: deque[tuple[_Asked, float]] = deque()
        """Answered, but the HTTP body has not ended; until when that is waited for."""

    def close(self) -> None:
        """Drop every connection."""
        self._sockets.close()

    def connection(self, place: Place) -> Connection:
        """A fresh connection, on its way already; that nobody answers there is told by its first request."""
        fresh = Connection(place, self._sockets)
        with contextlib.suppress(StreamBroken):
            fresh.open()
        return fresh

    @property
    def is_opening(self) -> bool:
        """Whether a connection is on its way."""
        return self._sockets.are_opening

    def start(self, connection: Connection, body: bytes, timeout_s: float, into: Streamed, over: Over) -> None:
        """Send a request and fill `into` until its stream ends. The same `timeout_s` for all, or later ones longer."""
        asked = _Asked(
            connection=connection, into=into, timeout_s=timeout_s, until_s=time.monotonic() + timeout_s, over=over
        )
        self._asked[connection] = asked
        self._by_deadline.append(asked)
        try:
            connection.begin(body, into)
        except StreamBroken as broken:
            self._tell(connection, broken)

    def turn(self, longest_s: float) -> bool:
        """Wait for something to come, so long at most; whether anything did.

        All that is there is read and stamped before any of it is looked into: who is last in a batch of tokens is not
        stamped late by the others.
        """
        came: list[tuple[Connection, bytes, float]] = []
        ready = self._sockets.ready(max(0.0, min(longest_s, self._next_deadline_s())))
        for connection, events in ready:
            if connection.is_opening or events & select.EPOLLOUT:
                self._go_on(connection)
            else:
                self._read(connection, came)
        for connection, data, now_s in came:
            self._take(connection, data, now_s)
        self._expire()
        return bool(ready)

    def _next_deadline_s(self) -> float:
        while self._ending and self._ending[0][0].is_over:
            self._ending.popleft()
        while self._by_deadline and self._by_deadline[0].is_over:
            self._by_deadline.popleft()
        until_s = [self._ending[0][1]] if self._ending else []
        until_s += [self._by_deadline[0].until_s] if self._by_deadline else []
        return min(until_s) - time.monotonic() if until_s else float("inf")

    def _expire(self) -> None:
        while self._next_deadline_s() <= 0:
            is_ending = bool(self._ending) and self._ending[0][1] <= time.monotonic()
            asked = self._ending.popleft()[0] if is_ending else self._by_deadline.popleft()
            self._tell(asked.connection, _left(asked))

    def _go_on(self, connection: Connection) -> None:
        try:
            connection.go_on()
        except StreamBroken as broken:
            self._tell(connection, broken)

    def _read(self, connection: Connection, came: list[tuple[Connection, bytes, float]]) -> None:
        try:
            data = connection.read()
        except StreamBroken as broken:
            self._tell(connection, broken)
            return
        if data is not None:
            came.append((connection, data, time.monotonic()))

    def _take(self, connection: Connection, data: bytes, now_s: float) -> None:
        try:
            is_over = connection.take(data, now_s)
        except StreamBroken as broken:
            self._tell(connection, broken)
            return
        if is_over:
            self._tell(connection, None)
        elif connection.is_answered and (asked := self._asked.get(connection)) is not None and not asked.is_ending:
            asked.is_ending = True
            self._ending.append((asked, now_s + END_S))

    def _tell(self, connection: Connection, broken: StreamBroken | None) -> None:
        asked = self._asked.pop(connection, None)
        if asked is not None:
            asked.is_over = True
            asked.over(broken)


def _left(asked: _Asked) -> StreamBroken | None:
    """Drop its connection: an answer that is whole but for the end of its HTTP body is one, any other is broken."""
    try:
        if asked.connection.leave(time.monotonic()):
            return None
    except StreamBroken as broken:
        return broken
    return StreamBroken(f"no end within {asked.timeout_s:g} s; tokens so far: {asked.into.tokens}", asked.into.status)
