"""What a connection runs over: a TCP socket that wastes no round trip, or a channel of the hop before."""

import contextlib
import socket
import time

import paramiko

from orchestrator.remote.ssh_config import SshTarget

_TCP_USER_TIMEOUT_MS = 30_000


class HopSocket:
    """A channel of the hop as paramiko's socket; closing it is quiet.

    paramiko's thread closes it when the hop may be gone already; the channel would raise there, where nobody catches,
    and Python would print the traceback.
    """

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        self.send = channel.send
        self.recv = channel.recv
        self.settimeout = channel.settimeout
        self.getpeername = channel.getpeername

    @property
    def _closed(self) -> bool:  # paramiko looks for the name that sockets have
        return self._channel.closed

    def close(self) -> None:
        """Close the channel if the hop still listens."""
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._channel.close()


class _PromptSocket(socket.socket):
    """Acknowledges at once (Linux).

    sshd leaves Nagle on until a session starts, and for good on a jump host: a second small packet of its then waits
    for our acknowledgement of the first, which the kernel would delay by 40 ms - on every call through a hop.
    """

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Receive, then acknowledge: the kernel forgets the option with every packet."""
        data = super().recv(size, flags)
        if hasattr(socket, "TCP_QUICKACK"):
            self.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return data


def connect_socket(target: SshTarget, timeout_s: float) -> socket.socket:
    """Dial a host directly, without Nagle and with a bound on unacknowledged data. Raises OSError.

    The addresses of the name are tried in turn within one deadline; only the system bounds the look-up of the name.
    """
    deadline = time.monotonic() + timeout_s
    addresses = socket.getaddrinfo(target.hostname, target.port, type=socket.SOCK_STREAM)
    last_error: OSError = TimeoutError()
    for tried, (family, kind, protocol, _, address) in enumerate(addresses):
        sock = _PromptSocket(family, kind, protocol)
        sock.settimeout(max(0.1, (deadline - time.monotonic()) / (len(addresses) - tried)))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # paramiko leaves Nagle on: 45 ms for every call
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _TCP_USER_TIMEOUT_MS)
        try:
            sock.connect(address)
        except OSError as error:
            sock.close()
            last_error = error
        else:
            return sock
    raise last_error
