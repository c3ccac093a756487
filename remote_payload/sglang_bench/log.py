"""The server's output: read as it comes, kept bounded on disk without secrets, and its decisive lines remembered."""

import contextlib
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from remote_payload.schema.bench import LogLine
from remote_payload.sglang_bench.redact import redact_text
from remote_payload.sglang_bench.rules import FREQUENT, loaded_class, rule_of, without_time

HEAD_BYTES = 4 * 1024 * 1024
TAIL_BYTES = 2 * 1024 * 1024
"""After its head the log goes on in `server-N.tail.log`; a full one becomes `.tail.1.log`, replacing the one before."""
LONGEST_LINE = 64 * 1024
LONGEST_SECRET = 1024
"""What is cut off a line that is too long: a value cut in two is not known any more."""
AHEAD_BYTES = 64 * 1024 * 1024
"""So much may be read and not yet looked into; beyond, the server waits."""
SHOWN_CHARACTERS = 2000
REMEMBERED = 400


class ServerLog:
    """Reads `stream` until its end; `on_line` gets every line (redacted), with its time.

    One thread reads, so that the server never waits for its own output; another looks into what was read.
    """

    def __init__(
        self,
        stream: IO[bytes],
        path: Path,
        token: str,
        secrets: tuple[str, ...],
        on_line: Callable[[str, float], None],
    ) -> None:
        self.path = path
        self.tail: deque[str] = deque(maxlen=REMEMBERED)
        self.guard: list[dict[str, Any]] = []
        """What the guard told, in order."""
        self.decided: dict[tuple[str, str], LogLine] = {}
        self._loaded: list[tuple[str, str]] = []
        self.arguments: str | None = None
        """The `server_args=` line."""
        self.changed = threading.Condition()
        self.is_over = False
        self._stream, self._token, self._secrets, self._on_line = stream, token, secrets, on_line
        self._file = path.open("wb")
        self._written = 0
        self._blocks: deque[bytes] = deque()
        self._ahead = 0
        self._came = threading.Condition()
        threading.Thread(target=self._read, name=f"reads for {path.name}", daemon=True).start()
        self._thread = threading.Thread(target=self._look, name=f"log of {path.name}", daemon=True)
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait for the end of the output."""
        self._thread.join(timeout_s)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that the first rank loaded: the target's, then the draft's."""
        loaded = tuple(self._loaded)
        return tuple(name for rank, name in loaded if rank == loaded[0][0])

    def said(self, what: str) -> dict[str, Any] | None:
        """The guard's message of this kind, if it came."""
        return next((message for message in self.guard if message.get("guard") == what), None)

    def _read(self) -> None:
        block = b" "
        while block:
            try:
                block = os.read(self._stream.fileno(), 65536)
            except OSError:
                block = b""
            with self._came:
                self._came.wait_for(lambda: self._ahead < AHEAD_BYTES)
                self._blocks.append(block)
                self._ahead += len(block)
                self._came.notify_all()
        self._stream.close()

    def _next(self) -> bytes:
        """What was read next; empty at the end."""
        with self._came:
            self._came.wait_for(lambda: bool(self._blocks))
            block = self._blocks.popleft()
            self._ahead -= len(block)
            self._came.notify_all()
            return block

    def _look(self) -> None:
        rest, is_cut = b"", False
        while block := self._next():
            *lines, rest = (rest + block).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            for line in lines:
                self._take(b"" if is_cut else line)  # what follows of a line that was too long decides nothing
                is_cut = False
            if len(rest) > LONGEST_LINE:
                self._take(b"" if is_cut else rest)
                rest, is_cut = b"", True
        self._take(b"" if is_cut else rest)
        self._file.close()
        with self.changed:
            self.is_over = True
            self.changed.notify_all()

    def _take(self, raw: bytes) -> None:
        text = raw.decode("utf-8", "replace").rstrip()
        if not text:
            return
        if self._token in text:
            self._hear(text)
            return
        line = redact_text(text, self._secrets)
        if len(raw) > LONGEST_LINE:
            line = f"{line[:-LONGEST_SECRET]}..."
        if not any(line.startswith(word) or f"] {word}" in line[:60] for word in FREQUENT):
            self._note(line)
        self._write(line)
        now_s = time.monotonic()
        with self.changed:
            self.tail.append(line[:SHOWN_CHARACTERS])
            self.changed.notify_all()
        with contextlib.suppress(OSError):  # an event that finds no room; unread, the server would stand still
            self._on_line(line, now_s)

    def _hear(self, text: str) -> None:
        with contextlib.suppress(ValueError):
            message = json.loads(text[text.index(self._token) + len(self._token) :])
            with self.changed:
                self.guard.append(message)
                self.changed.notify_all()

    def _note(self, line: str) -> None:
        if "server_args=" in line and self.arguments is None:
            self.arguments = line
            return
        rule = rule_of(line)
        if rule is None:
            return
        loaded = loaded_class(line)
        if loaded is not None:
            self._loaded.append(loaded)
        self.decided.setdefault((rule, without_time(line)), LogLine(rule=rule, line=line[:SHOWN_CHARACTERS]))

    def _write(self, line: str) -> None:
        data = line.encode("utf-8", "replace") + b"\n"
        in_tail = self._file.name != str(self.path)
        if self._written + len(data) > (TAIL_BYTES if in_tail else HEAD_BYTES):
            self._turn(in_tail)
        with contextlib.suppress(OSError):  # a full disk must not stop the server
            self._file.write(data)
            self._file.flush()
        self._written += len(data)

    def _turn(self, in_tail: bool) -> None:
        self._file.close()
        path = self.path.with_suffix(".tail.log")
        if in_tail:
            path.replace(self.path.with_suffix(".tail.1.log"))
        self._file = path.open("wb")
        self._written = 0
