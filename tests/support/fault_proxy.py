"""A TCP proxy on loopback that misbehaves on demand: swallow, cut after N bytes, reset, or never answer.

    with FaultProxy(server.port) as proxy:
        ... connect to 127.0.0.1:proxy.port ...
        proxy.swallow()      # half-open link: both ends stay connected, no byte arrives any more
        proxy.cut()          # reset every connection now
        proxy.cut_after(200_000)   # reset once that many more bytes went through, both ways counted together

One thread runs everything; the switches are plain calls from the test's thread.
"""

import contextlib
import os
import selectors
import socket
import struct
import threading
import time

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER 0: close() sends RST instead of FIN


class FaultProxy:
    """Forwards `127.0.0.1:port` to `127.0.0.1:target_port` until told to misbehave."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=50)
        self.port: int = self._listener.getsockname()[1]
        self._wake_read, self._wake_write = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._peers: dict[socket.socket, socket.socket] = {}
        self._lock = threading.Lock()
        self._swallowing = False
        self._bytes_left: int | None = None
        self._cut_now = False
        self._closing = False
        self.bytes_forwarded = 0
        self._thread = threading.Thread(target=self._serve, name="fault-proxy", daemon=True)

    def __enter__(self) -> "FaultProxy":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closing = True
        self._wake()
        self._thread.join(timeout=60)
        for sock in [*self._peers, self._listener]:
            sock.close()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def swallow(self) -> None:
        """From now on read and drop every byte, on present and later connections, keeping them open."""
        with self._lock:
            self._swallowing = True

    def heal(self) -> None:
        """Forward again (bytes swallowed meanwhile are gone, so an SSH session does not survive it)."""
        with self._lock:
            self._swallowing = False
            self._bytes_left = None

    def cut(self) -> None:
        """Reset every connection now; later ones are served again."""
        with self._lock:
            self._cut_now = True
        self._wake()

    def cut_after(self, byte_count: int) -> None:
        """Reset every connection once `byte_count` more bytes have gone through, then serve again."""
        with self._lock:
            self._bytes_left = byte_count

    def wait_until_idle(self) -> None:
        """Wait for the end of every connection, so that no late byte of one counts for the next."""
        deadline = time.monotonic() + 60
        while self._peers:
            if time.monotonic() > deadline:
                raise TimeoutError("a connection through the proxy is still open")
            time.sleep(0.002)

    def _wake(self) -> None:
        os.write(self._wake_write, b"x")

    def _serve(self) -> None:
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in self._selector.select()]
            if self._wake_read in ready:
                os.read(self._wake_read, 100)
            with self._lock:
                if self._closing:
                    return
                if self._cut_now:
                    self._cut_now = False
                    self._drop_all()
            for source in ready:
                if source is self._listener:
                    self._accept()
                elif isinstance(source, socket.socket) and source in self._peers:
                    self._forward(source)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self._target_port), timeout=60)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        for one, other in ((client, server), (server, client)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._peers[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _forward(self, source: socket.socket) -> None:
        try:
            data = source.recv(65536)
        except OSError:
            data = b""
        if not data:
            self._drop(source, reset=False)
            return
        with self._lock:
            swallowing, left = self._swallowing, self._bytes_left
            cut_here = left is not None and len(data) >= left
            self._bytes_left = None if left is None or cut_here else left - len(data)
        if swallowing:
            return
        with contextlib.suppress(OSError):
            self._peers[source].sendall(data[:left] if cut_here else data)
        self.bytes_forwarded += len(data)
        if cut_here:
            self._drop_all()

    def _drop_all(self) -> None:
        for sock in list(self._peers):
            self._drop(sock, reset=True)

    def _drop(self, sock: socket.socket, *, reset: bool) -> None:
        other = self._peers.pop(sock, None)
        if other is None:
            return
        self._peers.pop(other, None)
        for one in (sock, other):
            self._selector.unregister(one)
            if reset:
                with contextlib.suppress(OSError):
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            one.close()
