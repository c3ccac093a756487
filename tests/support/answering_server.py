"""A short hand-written HTTP server that answers as SGLang does, with delays and faults planted in its streams.

    with AnsweringServer() as server:
        server.replies = [Reply(chunks=[(0.05, 1), (0.01, 3)])]    # one a request, the last again for all further ones
        ... ask server.url ...
        server.sent[0]      # when it sent each chunk of the first request, on the monotonic clock

What it says in `meta_info` was recorded from real servers: `RECORDED_META`.
"""

import contextlib
import json
import socket
import ssl
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

RECORDED_META = {
    "id": "b5c8de58d4d44a3dbd4f4bd3e2a14ac9",
    "finish_reason": {"type": "length", "length": 64},
    "prompt_tokens": 36,
    "weight_version": "default",
    "num_retractions": 0,
    "completion_tokens": 64,
    "cached_tokens": 0,
    "e2e_latency": 0.5,
    "spec_accept_rate": 34 / 87,
    "spec_accept_length": 64 / 29,
    "spec_num_correct_drafts": 34,
    "spec_num_proposed_drafts": 87,
    "spec_verify_ct": 29,
    "spec_correct_drafts_histogram": [11, 10, 0, 8],
}
"""Of SGLang 0.5.23: 64 tokens, 3 steps, topk 1, 4 draft tokens; verify 29, correct 34, histogram [11, 10, 0, 8]."""


@dataclass
class Reply:
    """One answer of `/generate`."""

    chunks: Sequence[tuple[float, int]] = ((0.0, 1), (0.0, 3))
    """(seconds of waiting, new tokens) of each piece."""
    meta: dict[str, Any] = field(default_factory=dict)
    """Laid over the last piece's own numbers."""
    status: int = 200
    body: bytes = b""
    """Of an answer that is not 200."""
    cut_after: int | None = None
    """Drop the connection after so many pieces."""
    hang_after: int | None = None
    """Send nothing more after so many pieces."""
    error_after: int | None = None
    """Send an error event after so many pieces, as SGLang does when a request is aborted in its stream."""
    incremental: bool = False
    """Pieces carry their own ids alone, as with `--incremental-streaming-output`."""
    ids: bool = True
    """Whether pieces carry `output_ids` at all; before 0.5 they do not."""
    recorded: bytes = b""
    """The events of a real stream, sent as they are in place of `chunks`."""
    end: bool = True
    """Whether the stream ends with `[DONE]`."""
    prompt_tokens: int | None = None
    """Told in place of how many ids were sent."""
    raw: Sequence[tuple[float, bytes]] | None = None
    """(seconds of waiting, bytes) of the whole HTTP answer, sent as they are; the connection ends after them."""


class AnsweringServer:
    """Listens on loopback; `asked` keeps every body of `/generate`, `headers` its headers."""

    def __init__(self) -> None:
        self.replies: list[Reply] = [Reply()]
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.sent: list[list[float]] = []
        self.info: dict[str, Any] = {"model_path": "/models/target", "internal_states": [{}], "version": "0.5.23"}
        self.chat: list[tuple[int, dict[str, Any]]] = []
        """Answers of the chat endpoint, the last again for all further ones."""
        self.chats: list[dict[str, Any]] = []
        self.texts: dict[int, str] = {}
        """Of token ids, as its tokenizer tells them; none: it has no such endpoint."""
        self.flushes = 0
        self.busy_flushes = 0
        """How many flushes are refused first."""
        self.paths: list[str] = []
        self.key: str | None = None
        self.starting = 0
        """How many looks at its health find it starting (503)."""
        self.health_delay_s = 0.0
        self.closing = threading.Event()
        self.sockets: list[socket.socket] = []
        """Of every connection so far."""
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), type("Handler", (_Handler,), {"answering": self}))
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> "AnsweringServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(timeout=60)

    def drop_idle(self) -> None:
        """End every connection, as a server does with idle ones whenever it likes."""
        for one in self.sockets:
            with contextlib.suppress(OSError):  # the client was faster
                one.shutdown(socket.SHUT_RDWR)

    def speak_tls(self, certificate: Path) -> None:
        """From now on; `certificate` holds the key as well."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self.url = self.url.replace("http://127.0.0.1", "https://localhost")

    def next_reply(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[Reply, list[float]]:
        with self._lock:
            reply = self.replies[min(len(self.asked), len(self.replies) - 1)]
            self.asked.append(body)
            self.headers.append(headers)
            self.sent.append([])
            return reply, self.sent[-1]

    def next_chat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self._lock:
            self.chats.append(body)
            return self.chat.pop(0) if len(self.chat) > 1 else self.chat[0]

    def counted(self, name: str) -> int:
        """One less of `name`, as it was before."""
        with self._lock:
            value: int = getattr(self, name)
            setattr(self, name, max(0, value - 1))
            return value


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    disable_nagle_algorithm = True

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that left is what some tests are about
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    answering: AnsweringServer

    def setup(self) -> None:
        super().setup()
        self.answering.sockets.append(self.connection)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        ours = self.answering
        ours.paths.append(self.path)
        if self.path == "/health":
            time.sleep(ours.health_delay_s)
            self._say(503 if ours.counted("starting") else 200, b"")
        elif self._may_ask():
            found = self.path == "/server_info"
            self._say(200 if found else 404, json.dumps(ours.info if found else {"detail": "Not Found"}).encode())

    def do_POST(self) -> None:
        ours = self.answering
        ours.paths.append(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self._may_ask():
            return
        if self.path == "/flush_cache":
            ours.flushes += 1
            self._say(400 if ours.counted("busy_flushes") else 200, b"Cache flushed.")
        elif self.path == "/v1/chat/completions":
            status, value = ours.next_chat(json.loads(body))
            self._say(status, json.dumps(value).encode())
        elif self.path == "/v1/detokenize":
            texts = [ours.texts.get(token, "") for one in json.loads(body)["tokens"] for token in one]
            self._say(200 if ours.texts else 404, json.dumps({"text": texts}).encode())
        else:
            asked = json.loads(body)
            self._generate(*ours.next_reply(asked, dict(self.headers)), len(asked.get("input_ids") or ()) or None)

    def _may_ask(self) -> bool:
        key = self.answering.key
        is_right = key is None or self.headers.get("Authorization") == f"Bearer {key}"
        if not is_right:
            self._say(401, b'{"error": "Unauthorized"}')
        return is_right

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _generate(self, reply: Reply, sent: list[float], prompt_tokens: int | None) -> None:
        if reply.raw is not None:
            self.close_connection = True
            for wait_s, data in reply.raw:
                time.sleep(wait_s)
                self.wfile.write(data)
            return
        if reply.status != 200:
            self._say(reply.status, reply.body)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in reply.recorded.split(b"\n\n")[:-1]:
            sent.append(time.monotonic())
            self._chunk(event + b"\n\n")
        for number, piece in enumerate(() if reply.recorded else pieces(reply, prompt_tokens)):
            if reply.cut_after == number:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            if reply.hang_after == number:
                self.answering.closing.wait()
                self.close_connection = True
                return
            if reply.error_after == number:
                self._event(b'{"error": {"message": "the request was aborted", "code": 500}}')
                break
            time.sleep(reply.chunks[number][0])
            sent.append(time.monotonic())
            self._event(json.dumps(piece, separators=(",", ":")).encode())
        if reply.end and not reply.recorded:
            self._event(b"[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, data: bytes) -> None:
        self._chunk(b"data: " + data + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


def pieces(reply: Reply, prompt_tokens: int | None) -> list[dict[str, Any]]:
    """What the pieces of a stream hold: ids counted from 100, `completion_tokens` so far, at the end all numbers."""
    told = {"prompt_tokens": reply.prompt_tokens or prompt_tokens or 36}
    made, total = [], 0
    for number, (_, new) in enumerate(reply.chunks):
        first, total = total, total + new
        is_last = number == len(reply.chunks) - 1
        meta: dict[str, Any] = {"id": "1", "finish_reason": None, **told, "completion_tokens": total}
        if is_last:
            meta |= {"finish_reason": {"type": "length", "length": total}, "cached_tokens": 0} | reply.meta | told
        ids = list(range(100 + (first if reply.incremental else 0), 100 + total))
        made.append({"text": 'said "so far"', **({"output_ids": ids} if reply.ids else {}), "meta_info": meta})
    return made
