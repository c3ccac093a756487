"""Where a server's `/generate` is, and what a request to it looks like on the wire."""

import functools
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit


class Place:
    """Where `/generate` of a server is."""

    def __init__(self, url: str, key: str | None) -> None:
        parts = urlsplit(url)
        self.is_secure = parts.scheme == "https"
        self.host, self._port = parts.hostname or "127.0.0.1", parts.port or (443 if self.is_secure else 80)
        self.tls = ssl.create_default_context() if self.is_secure else None
        self._head = (
            f"POST {parts.path.rstrip('/')}/generate HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\n"
            "Accept-Encoding: identity\r\nContent-Type: application/json\r\n"
            + (f"Authorization: Bearer {key}\r\n" if key else "")
        ).encode()

    @functools.cached_property
    def addresses(self) -> list[tuple[socket.AddressFamily, Any]]:
        """Looked up once. Raises OSError."""
        found = socket.getaddrinfo(self.host, self._port, type=socket.SOCK_STREAM)
        return [(family, address) for family, _, _, _, address in found]

    def request(self, body: bytes) -> bytes:
        """The bytes of a request with this body."""
        return b"%sContent-Length: %d\r\n\r\n%s" % (self._head, len(body), body)
