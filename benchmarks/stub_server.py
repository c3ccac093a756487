"""A server that streams as SGLang's `/generate` does, every stream at the same fixed rate, and costs next to nothing.

    python -m benchmarks.stub_server --tokens-per-s 50 --longest 256

Prints its port, ends with its stdin. As in a decode batch, all streams get their next token at the same moment; a
stream whose client does not read waits, and gets what it is owed in one go. The pieces are made before the clock
starts, in the shape that SGLang 0.5.23 was recorded in: text and ids are those of the whole answer so far, one token
more in each. `GET /lateness` tells how late it was itself with its moments since the last such question, and what CPU
it took, so that a slow stub is not taken for a slow client.
"""

import argparse
import json
import os
import resource
import select
import socket
import statistics
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from tests.support.laptop import CHECKOUT

RECORDED = CHECKOUT / "tests" / "payload" / "sglang_bench" / "recorded" / "generate_stream.txt"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
WORD, FIRST_ID = " word", 1000
READ_BYTES = 1 << 16
WAITING = 4096
"""Connections that may wait to be accepted."""


def pieces(longest: int) -> tuple[list[bytes], list[bytes]]:
    """What goes over the wire at the n-th token: on its way, and where it is the last."""
    events = [json.loads(event[5:]) for event in RECORDED.read_bytes().split(b"\n\n") if event.startswith(b"data: {")]
    usual = events[1]["meta_info"]
    at_end = {name: value for name, value in events[-1]["meta_info"].items() if not name.startswith("spec_")}
    middle, ends = [], []
    for tokens in range(1, longest + 1):
        finish = {"finish_reason": {"type": "length", "length": tokens}}
        middle.append(_chunk(_event(tokens, usual)))
        ends.append(_chunk(_event(tokens, at_end | finish)) + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    return middle, ends


def _event(tokens: int, meta: dict[str, Any]) -> bytes:
    ids = list(range(FIRST_ID, FIRST_ID + tokens))
    value = {"text": WORD * tokens, "output_ids": ids, "meta_info": meta | {"completion_tokens": tokens}}
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@dataclass(kw_only=True, eq=False)
class _Stream:
    """One connection, and the answer it gets at the moment (none while `length` is 0)."""

    socket: socket.socket
    asked: bytes = b""
    length: int = 0
    due: int = 0
    sent: int = 0
    rest: bytes = b""


@dataclass(kw_only=True)
class Stub:
    """One loop of one thread."""

    tokens_per_s: float
    longest: int
    late_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._middle, self._ends = pieces(self.longest)
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=WAITING)
        self._listening.setblocking(False)
        self.port: int = self._listening.getsockname()[1]
        self._poll = select.epoll()
        self._poll.register(self._listening, select.EPOLLIN)
        self._streams: dict[int, _Stream] = {}
        self._cpu_s = time.process_time()

    def serve(self) -> None:
        """For ever: read what is asked until the next moment, then send every stream its token."""
        next_s = time.monotonic()
        while True:
            while (left_s := next_s - time.monotonic()) > 0:
                self._look(left_s)
            self._look(0)
            for stream in [stream for stream in self._streams.values() if stream.length]:
                self._token(stream)
            self.late_s.append(time.monotonic() - next_s)
            next_s += 1 / self.tokens_per_s

    def _look(self, seconds: float) -> None:
        for number, _ in self._poll.poll(seconds):
            if number == self._listening.fileno():
                self._accept()
            else:
                self._read(self._streams[number])

    def _accept(self) -> None:
        while True:
            try:
                fresh, _ = self._listening.accept()
            except BlockingIOError:
                return
            fresh.setblocking(False)
            fresh.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._streams[fresh.fileno()] = _Stream(socket=fresh)
            self._poll.register(fresh, select.EPOLLIN)

    def _read(self, stream: _Stream) -> None:
        try:
            data = stream.socket.recv(READ_BYTES)
        except OSError:
            data = b""
        if not data:
            self._drop(stream)
            return
        stream.asked += data
        head, found, body = stream.asked.partition(b"\r\n\r\n")
        if not found or len(body) < _content_length(head):
            return
        stream.asked = b""
        self._answer(stream, head.split(b" ", 2)[1], body)

    def _answer(self, stream: _Stream, path: bytes, body: bytes) -> None:
        if path == b"/generate":
            stream.length = min(self.longest, json.loads(body)["sampling_params"]["max_new_tokens"])
            stream.due = stream.sent = 0
            stream.rest = HEAD
            return
        told: dict[str, Any] = {}
        if path == b"/lateness":
            told = self._lateness()
        stream.rest = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
            len(json.dumps(told)),
            json.dumps(told).encode(),
        )
        self._flush(stream)

    def _lateness(self) -> dict[str, float]:
        late_s, self.late_s = self.late_s or [0.0], []
        cpu_s, self._cpu_s = self._cpu_s, time.process_time()
        return {"median_s": statistics.median(late_s), "max_s": max(late_s), "cpu_s": self._cpu_s - cpu_s}

    def _token(self, stream: _Stream) -> None:
        stream.due = min(stream.due + 1, stream.length)
        while self._flush(stream) and stream.sent < stream.due:
            stream.sent += 1
            is_last = stream.sent == stream.length
            stream.rest = (self._ends if is_last else self._middle)[stream.sent - 1]
        if stream.sent == stream.length and not stream.rest:
            stream.length = 0

    def _flush(self, stream: _Stream) -> bool:
        """Whether nothing is left to send."""
        if not stream.rest:
            return True
        try:
            stream.rest = stream.rest[stream.socket.send(stream.rest) :]
        except BlockingIOError:
            return False
        except OSError:
            self._drop(stream)
            return False
        return not stream.rest

    def _drop(self, stream: _Stream) -> None:
        if self._streams.pop(stream.socket.fileno(), None) is not None:
            self._poll.unregister(stream.socket)
        stream.length, stream.rest = 0, b""
        stream.socket.close()


def _content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.split(b":")[1])
    return 0


def main() -> None:
    """Say the port, serve until stdin ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens-per-s", type=float, required=True)
    parser.add_argument("--longest", type=int, required=True)
    arguments = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    stub = Stub(tokens_per_s=arguments.tokens_per_s, longest=arguments.longest)
    print(stub.port, flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    stub.serve()


if __name__ == "__main__":
    main()
