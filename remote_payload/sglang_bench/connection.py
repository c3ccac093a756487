"""A kept connection that never waits: a request goes out and its stream comes in whenever the socket is ready.

One thread can so listen to thousands of streams. A thread for each of them spends most of its CPU on waking up, and
beyond some hundreds on waiting for the interpreter's lock, and stamps late what came in time.
"""

import errno
import os
import select
import socket
import ssl
import time
from typing import Any

from remote_payload.sglang_bench.exchange import Exchange
from remote_payload.sglang_bench.incoming import Incoming, NotHttpError
from remote_payload.sglang_bench.place import Place
from remote_payload.sglang_bench.sockets import Sockets
from remote_payload.sglang_bench.stream import ERROR_BYTES, Events, StreamBroken, Streamed, said

NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
IDLE_DROP_S = 1.0
"""A kept connection that the server ended this soon after a request was idle to it; later, the request was broken."""


class Connection:
    """One connection, opened when needed, closed after every failure. It goes on when its socket is ready."""

    def __init__(self, place: Place, sockets: Sockets) -> None:
        self._place, self._sockets = place, sockets
        self._untried: list[tuple[socket.AddressFamily, Any]] = []
        self._socket: socket.socket | None = None
        self._is_connecting = self._is_shaking = False
        self._exchange: Exchange | None = None
        self._events = 0

    @property
    def is_opening(self) -> bool:
        """Whether a connection is on its way."""
        return self._is_connecting or self._is_shaking

    @property
    def is_answered(self) -> bool:
        """Whether the answer is whole, and only the end of its HTTP body is still to come."""
        return self._exchange is not None and self._exchange.events.is_over

    def open(self) -> None:
        """Begin to connect, so that the first request's clock does not hold it. Raises StreamBroken."""
        if self._socket is None:
            try:
                self._untried = list(self._place.addresses)
            except OSError as error:
                raise self._broken(error) from None
            self._try_next(OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL)))

    def close(self) -> None:
        """Drop the connection; the next request opens another."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._exchange = None, None
        self._is_connecting = self._is_shaking = False

    def leave(self, now_s: float) -> bool:
        """Close it; whether the request under way was answered. Raises StreamBroken where that answer is none."""
        exchange, is_answered = self._exchange, self.is_answered
        self.close()
        if exchange is not None and is_answered:
            exchange.into.over_s = now_s
            exchange.events.finish()
        return is_answered

    def begin(self, body: bytes, into: Streamed) -> None:
        """Send one request; `into` is filled until `receive` says that it is over. Raises StreamBroken."""
        request = self._place.request(body)
        self._exchange = Exchange(
            request=request,
            into=into,
            incoming=Incoming(),
            events=Events(into),
            unsent=request,
            may_repeat=self._socket is not None and not self.is_opening,
        )
        self.open()
        if not self.is_opening:
            self._send()

    def go_on(self) -> None:
        """Connect, greet or send further. Raises StreamBroken, the connection closed."""
        if self._is_connecting:
            self._connected()
        elif self._is_shaking:
            self._shake()
        elif self._exchange is not None:
            self._send()

    def read(self) -> bytes | None:
        """What came, empty at the connection's end; None = nothing. Raises StreamBroken, the connection closed."""
        assert self._socket is not None
        try:
            count = self._socket.recv_into(self._sockets.buffer)
            return bytes(self._sockets.buffer[:count])
        except NOT_NOW:
            return None
        except ConnectionError as error:
            if self._exchange is not None and self._exchange.may_repeat:
                return b""
            raise self._broken(error) from None
        except OSError as error:
            raise self._broken(error) from None

    def take(self, data: bytes, now_s: float) -> bool:
        """Take in what `read` gave at `now_s`; whether the request is over. Raises StreamBroken, then closed."""
        exchange = self._exchange
        if exchange is None:  # an idle connection: the server is done with it
            self.close()
            return False
        try:
            return self._take(exchange, data, now_s)
        except StreamBroken:
            self.close()
            raise
        except NotHttpError as error:
            self.close()
            raise StreamBroken(f"{error}; tokens so far: {exchange.into.tokens}", exchange.into.status) from None

    def _take(self, exchange: Exchange, data: bytes, now_s: float) -> bool:
        incoming, into = exchange.incoming, exchange.into
        if data:
            exchange.may_repeat = False
            body = incoming.feed(data)
            if incoming.status == 200:
                into.status = 200
                exchange.events.feed(body, now_s)
            elif incoming.status is not None:
                into.status = incoming.status
                exchange.refusal += body
        elif exchange.may_repeat and now_s - (exchange.into.sent_s or now_s) < IDLE_DROP_S:
            # The server may drop an idle connection whenever it likes: once more on a fresh one, its clock goes on.
            self.close()
            exchange.unsent, exchange.may_repeat, self._exchange = exchange.request, False, exchange
            self.open()
            return False
        else:
            incoming.end()
        if data and not incoming.is_over and len(exchange.refusal) < ERROR_BYTES:
            return False
        if into.status not in (None, 200):
            words = exchange.refusal[:ERROR_BYTES].decode("utf-8", "replace")
            raise StreamBroken(f"HTTP {into.status}: {said(words)}", into.status)
        if not incoming.is_over and not exchange.events.is_over:
            raise StreamBroken(f"the stream broke off; tokens so far: {into.tokens}", into.status)
        into.over_s = now_s
        exchange.events.finish()
        self._exchange = None
        if not incoming.is_kept:
            self.close()
        return True

    def _try_next(self, error: OSError) -> None:
        while self._untried:
            family, address = self._untried.pop(0)
            try:
                fresh = socket.socket(family, socket.SOCK_STREAM)
            except OSError as refused:  # a family that this machine has not; too many open files
                error = refused
                continue
            fresh.setblocking(False)
            code = fresh.connect_ex(address)
            if code in (0, errno.EINPROGRESS):
                self._socket, self._is_connecting, self._events = fresh, True, select.EPOLLOUT
                self._sockets.add(fresh, self, self._events)
                return
            fresh.close()
            error = OSError(code, os.strerror(code))
        raise self._broken(error)

    def _connected(self) -> None:
        assert self._socket is not None
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._socket.close()
            self._socket = None
            self._try_next(OSError(code, os.strerror(code)))
            return
        self._is_connecting = False
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._place.tls is None:
            self._send()
            return
        name = self._place.host
        self._socket = self._place.tls.wrap_socket(self._socket, server_hostname=name, do_handshake_on_connect=False)
        self._is_shaking = True
        self._shake()

    def _shake(self) -> None:
        assert isinstance(self._socket, ssl.SSLSocket)
        try:
            self._socket.do_handshake()
        except ssl.SSLWantReadError:
            self._look_for(select.EPOLLIN)
            return
        except ssl.SSLWantWriteError:
            self._look_for(select.EPOLLOUT)
            return
        except OSError as error:
            raise self._broken(error) from None
        self._is_shaking = False
        self._send()

    def _send(self) -> None:
        """As much as the socket takes now; a request's clock starts with the first time."""
        exchange = self._exchange
        if exchange is None:
            self._look_for(select.EPOLLIN)
            return
        assert self._socket is not None
        if exchange.into.sent_s is None:
            exchange.into.sent_s = time.monotonic()
        try:
            while exchange.unsent:
                exchange.unsent = exchange.unsent[self._socket.send(exchange.unsent) :]
            self._look_for(select.EPOLLIN)
        except NOT_NOW:
            self._look_for(select.EPOLLIN | select.EPOLLOUT)
        except ConnectionError as error:
            if not exchange.may_repeat:  # reading finds the end of a dropped connection, and asks again
                raise self._broken(error) from None
        except OSError as error:
            raise self._broken(error) from None

    def _look_for(self, events: int) -> None:
        if events != self._events and self._socket is not None:
            self._events = events
            self._sockets.change(self._socket, events)

    def _broken(self, error: OSError) -> StreamBroken:
        into = Streamed() if self._exchange is None else self._exchange.into
        self.close()
        return StreamBroken(f"{error.strerror or error}; tokens so far: {into.tokens}", into.status)
