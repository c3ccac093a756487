"""One HTTP/1.1 answer out of bytes as they come: its status, and the body without its framing.

Not `http.client`: that blocks while it waits, and its reading costs a stream of small chunks more than all else.
"""

HEAD_BYTES = 1 << 16
"""No head is longer."""
LINE_END = b"\r\n"
BODILESS = (204, 304)
"""Answers that end with their head."""


class NotHttpError(Exception):
    """What came is not the answer of an HTTP server; its text says what it is instead."""


class Incoming:
    """Give it what was received, in order; it gives the body's bytes in it."""

    def __init__(self) -> None:
        self._held = b""
        self._left: int | None = None
        """Bytes of the body, or of its chunk, still to come; None = until the connection ends."""
        self._is_chunked = False
        self._is_trailer = False
        self.status: int | None = None
        """None until the head is there."""
        self.is_over = False
        """Whether the body is whole."""
        self.is_kept = True
        """Whether the server keeps the connection for another request."""

    def feed(self, data: bytes) -> bytes:
        """The part of the body in the next bytes. Raises NotHttpError."""
        if self._held:
            data, self._held = self._held + data, b""
        if self.status is None:
            head, found, data = data.partition(b"\r\n\r\n")
            if not found:
                self._held = head
                if len(head) > HEAD_BYTES or not head.startswith(b"HTTP/"[: len(head)]):
                    raise NotHttpError(f"no HTTP answer, it begins: {head[:40]!r}")
                return b""
            self._read_head(head)
            if self.status is None:  # an interim answer: the real one follows
                return self.feed(data) if data else b""
        if self._is_chunked:
            return self._chunks(data)
        if self._left is None:
            return data
        body = data[: self._left]
        self._left -= len(body)
        self.is_over = self._left == 0
        return body

    def end(self) -> None:
        """The connection ended: a body without a length is whole with it."""
        self.is_over = self.is_over or (self.status is not None and not self._is_chunked and self._left is None)
        self.is_kept = False

    def _read_head(self, head: bytes) -> None:
        first, *lines = head.split(LINE_END)
        words = first.split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
            raise NotHttpError(f"no HTTP answer, it begins: {first[:40]!r}")
        fields = {
            name.strip().lower(): value.strip().lower() for name, _, value in (one.partition(b":") for one in lines)
        }
        status = int(words[1])
        if status < 200:
            return
        self.status = status
        connection = fields.get(b"connection", b"")
        self.is_kept = connection != b"close" and (words[0] != b"HTTP/1.0" or connection == b"keep-alive")
        self._is_chunked = fields.get(b"transfer-encoding", b"").endswith(b"chunked")
        length = fields.get(b"content-length")
        if status in BODILESS:
            self._is_chunked, self._left, self.is_over = False, 0, True
        elif self._is_chunked:
            self._left = 0
        elif length is not None:
            if not length.isdigit():
                raise NotHttpError(f"a content-length that is no number: {length[:40]!r}")
            self._left = int(length)
            self.is_over = self._left == 0

    def _chunks(self, data: bytes) -> bytes:
        """`_left` counts the chunk's own line end with its bytes."""
        at, size = 0, len(data)
        if not self._left and not self._is_trailer:  # nearly always one whole chunk comes
            end = data.find(LINE_END)
            if end > 0 and end + 4 < size == end + 4 + _length(data[:end]):
                return data[end + 2 : -2]
        parts = []
        while at < size and not self.is_over:
            left = self._left or 0
            if left > 0:
                parts.append(data[at : min(at + left - 2, size)] if left > 2 else b"")
                took = min(left, size - at)
                self._left = left - took
                at += took
                continue
            end = data.find(LINE_END, at)
            if end < 0:
                self._held = data[at:]
                if size - at > HEAD_BYTES:
                    raise NotHttpError(f"no length of a chunk: {data[at : at + 40]!r}")
                break
            self._begin_chunk(data[at:end])
            at = end + 2
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _begin_chunk(self, line: bytes) -> None:
        if self._is_trailer:
            self.is_over = not line
            return
        length = _length(line)
        if length:
            self._left = length + 2
        else:
            self._is_trailer = True


def _length(line: bytes) -> int:
    """Of a chunk. Raises NotHttpError."""
    digits = line.partition(b";")[0].strip()
    try:
        if digits.isalnum():  # not `-5`
            return int(digits, 16)
    except ValueError:
        pass
    raise NotHttpError(f"no length of a chunk: {line[:40]!r}")
