"""One question to a server, and its whole answer within a deadline: a body that drips puts nothing off.

Proxies of the environment are not used: the server is near, and a proxy would not reach it.
"""

import contextlib
import socket
import time

from remote_payload.sglang_bench.incoming import Incoming, NotHttpError
from remote_payload.sglang_bench.place import Place

ASK_S = 10.0
MOST_BYTES = 16 * 1024 * 1024
"""No answer is longer, but where one is expected to be."""
READ_BYTES = 65536


def ask(
    url: str,
    path: str,
    key: str | None,
    *,
    method: str = "GET",
    body: bytes | None = None,
    timeout_s: float = ASK_S,
    most_bytes: int = MOST_BYTES,
) -> tuple[int, bytes]:
    """The status and the body.

    Raises OSError: nobody listens, no whole answer within `timeout_s`, one that is no HTTP or longer than `most_bytes`.
    """
    until_s = time.monotonic() + timeout_s
    place = Place(url, key)
    with contextlib.closing(_connected(place, until_s)) as line:
        line.settimeout(_left(until_s))
        line.sendall(place.question(method, path, body))
        try:
            return _answer(line, until_s, most_bytes)
        except NotHttpError as error:
            raise OSError(str(error)) from None


def _connected(place: Place, until_s: float) -> socket.socket:
    refused = OSError("no address")
    for family, address in place.addresses:
        line = socket.socket(family, socket.SOCK_STREAM)
        line.settimeout(_left(until_s))
        try:
            line.connect(address)
            if place.tls is None:
                return line
            return place.tls.wrap_socket(line, server_hostname=place.host)
        except OSError as error:
            line.close()
            refused = error
    raise refused


def _answer(line: socket.socket, until_s: float, most_bytes: int) -> tuple[int, bytes]:
    incoming, body = Incoming(), bytearray()
    while not incoming.is_over:
        line.settimeout(_left(until_s))
        data = line.recv(READ_BYTES)
        if not data:
            incoming.end()
            break
        body += incoming.feed(data)
        if len(body) > most_bytes:
            raise OSError(f"an answer of more than {most_bytes >> 20} MiB")
    if incoming.status is None or not incoming.is_over:
        raise OSError("the answer broke off")
    return incoming.status, bytes(body)


def _left(until_s: float) -> float:
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("timed out")
    return left_s
