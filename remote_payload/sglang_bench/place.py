"""Where a server is, and what a request to it looks like on the wire."""

import functools
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit


class Place:
    """A server's address. `key` must be one that `environment.api_key` let pass: it stands in a header."""

    def __init__(self, url: str, key: str | None) -> None:
        parts = urlsplit(url)
        self.is_secure = parts.scheme == "https"
        self.host, self._port = parts.hostname or "127.0.0.1", parts.port or (443 if self.is_secure else 80)
        self.tls = ssl.create_default_context() if self.is_secure else None
        self._path, self._host_header, self._key = parts.path.rstrip("/"), parts.netloc.rpartition("@")[2], key
        self._head = self._head_of("POST", "/generate")

    def _head_of(self, method: str, path: str) -> bytes:
        return (
            f"{method} {self._path}{path} HTTP/1.1\r\nHost: {self._host_header}\r\n"
            "Accept-Encoding: identity\r\nContent-Type: application/json\r\n"
            + (f"Authorization: Bearer {self._key}\r\n" if self._key else "")
        ).encode()

    @functools.cached_property
    def addresses(self) -> list[tuple[socket.AddressFamily, Any]]:
        """Looked up once. Raises OSError."""
        try:
            found = socket.getaddrinfo(self.host, self._port, type=socket.SOCK_STREAM)
        except UnicodeError:  # a label of a name is at most 63 letters long
            raise OSError(f"no name of a host: {self.host[:80]}") from None
        return [(family, address) for family, _, _, _, address in found]

    def request(self, body: bytes) -> bytes:
        """The bytes of a `/generate` with this body."""
        return b"%sContent-Length: %d\r\n\r\n%s" % (self._head, len(body), body)

    def question(self, method: str, path: str, body: bytes | None) -> bytes:
        """The bytes of any other request, on a connection of its own."""
        head = self._head_of(method, path) + b"Connection: close\r\n"
        if body is None and method != "POST":
            return head + b"\r\n"
        return b"%sContent-Length: %d\r\n\r\n%s" % (head, len(body or b""), body or b"")
