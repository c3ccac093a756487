"""A Fabric connection that cannot be opened to a host whose key nobody vouches for, on any hop.

Fabric itself accepts every key and reads the user's ssh_config and fabric.yml in its own way; here it gets a settled
SshTarget, no config files, and a policy that judges every key. Gateways are connections of this same class.
"""

import contextlib
import logging
import time
from typing import Any

import fabric
import paramiko

from orchestrator.errors import HostError
from orchestrator.remote.authentication import KeyLogin
from orchestrator.remote.host_key_policy import HostKeyPolicy
from orchestrator.remote.proxy_command import ProxySocket
from orchestrator.remote.sockets import HopSocket, connect_socket
from orchestrator.remote.ssh_config import SshTarget
from orchestrator.remote.translate_errors import describe, translated_connect

_WINDOW_BYTES = 16 * 2**20  # paramiko's 2 MiB halves the speed of downloads over 50 ms
_NEVER = 2**40  # bytes and packets: a rekey that meets the end of a channel kills paramiko's transport
_KEEPALIVE_S = 10  # nothing reads the replies, but an unacknowledged one lets TCP_USER_TIMEOUT see a dead peer

logging.getLogger("paramiko").addHandler(logging.NullHandler())  # else its tracebacks reach stderr


class VerifiedTransport(paramiko.Transport):
    """paramiko's transport with our order of host key algorithms, ciphers and limits."""

    policy: HostKeyPolicy

    @property
    def preferred_keys(self) -> tuple[str, ...]:
        """Host key algorithms to offer, those we can judge first."""
        return self.policy.preferred_algorithms(super().preferred_keys)


class VerifiedConnection(fabric.Connection):  # type: ignore[misc]  # fabric has no types
    """One hop. `target` says where; `gateway` is the VerifiedConnection before it, or False."""

    target: SshTarget
    policy: HostKeyPolicy
    timeout_s: float

    def __init__(self, target: SshTarget, *, accept_new: bool, timeout_s: float, gateway: Any = False) -> None:
        config = fabric.Config(lazy=True, ssh_config=paramiko.SSHConfig())
        super().__init__(
            host=target.hostname,
            user=target.user,
            port=target.port,
            config=config,
            gateway=gateway,
            forward_agent=False,
        )
        policy = HostKeyPolicy.for_target(target, gateway.chain() if gateway else (), accept_new=accept_new)
        self._set(target=target, policy=policy, timeout_s=timeout_s)
        self.client.set_missing_host_key_policy(policy)

    def derive_shorthand(self, host_string: str) -> dict[str, str | None]:
        """The host is a host: Fabric's own reading of `user@host:port` would cut IPv6 addresses."""
        return {"user": None, "host": host_string, "port": None}

    def open(self) -> None:
        """Dial, check the key, log in. Raises HostError and its subclasses; nothing stays open behind an error."""
        if self.is_connected:
            return
        if self.gateway:
            self.gateway.open()
        with translated_connect(self.target, timeout_s=self.timeout_s):
            try:
                self._dial(self.target, time.monotonic() + self.timeout_s)
            except BaseException:
                self.client.close()
                raise

    def _dial(self, target: SshTarget, deadline: float) -> None:
        sock = self._socket(target, deadline)
        try:
            remaining = max(0.1, deadline - time.monotonic())
            self.client.connect(
                hostname=target.hostname,
                port=target.port,
                username=target.user,
                sock=sock,
                timeout=remaining,
                banner_timeout=remaining + 1,  # silence is a timeout, not "no SSH"
                auth_timeout=remaining,
                channel_timeout=remaining,
                transport_factory=self._transport,
                auth_strategy=KeyLogin(target, self.policy),
            )
        except BaseException as error:
            sock.close()
            words = sock.words if isinstance(sock, ProxySocket) else ""
            if words and isinstance(error, (EOFError, paramiko.SSHException)):
                raise HostError(f"the ProxyCommand to {describe(target)} failed: {words}") from error
            raise
        self.transport = self.client.get_transport()
        self.transport.set_keepalive(_KEEPALIVE_S)

    def _socket(self, target: SshTarget, deadline: float) -> Any:
        remaining = max(0.1, deadline - time.monotonic())
        if self.gateway:
            address = (target.hostname, target.port)
            return HopSocket(self.gateway.transport.open_channel("direct-tcpip", address, ("", 0), timeout=remaining))
        if target.proxy_command is not None:
            return ProxySocket.run(target.proxy_command)
        return connect_socket(target, remaining)

    def _transport(self, sock: Any, **options: Any) -> VerifiedTransport:
        transport = VerifiedTransport(sock, default_window_size=_WINDOW_BYTES, **options)
        transport.policy = self.policy
        transport.packetizer.REKEY_BYTES = transport.packetizer.REKEY_PACKETS = _NEVER
        ciphers = transport.get_security_options().ciphers
        transport.get_security_options().ciphers = sorted(ciphers, key=lambda name: "gcm" not in name)
        return transport

    def chain(self) -> tuple[SshTarget, ...]:
        """The hops up to and including this one."""
        return (*(self.gateway.chain() if self.gateway else ()), self.target)

    def warnings(self) -> tuple[str, ...]:
        """Lines of known_hosts that had to be skipped, on this hop and those before it."""
        before = self.gateway.warnings() if self.gateway else ()
        return (*before, *self.policy.warnings)

    def news(self) -> tuple[str, ...]:
        """Host keys that were accepted just now, on this hop and those before it, in words."""
        before = self.gateway.news() if self.gateway else ()
        return (*before, *self.policy.news)

    def abort(self) -> None:
        """Drop the connection and the hops before it without a word to the other side; never blocks."""
        if self.gateway:
            self.gateway.abort()
        transport = self.client.get_transport()
        if transport is not None:
            with contextlib.suppress(OSError):
                transport.sock.close()  # first: a writer stuck in a full socket holds the locks close() takes
        self.client.close()

    def close(self) -> None:
        """Close this connection and the hops before it."""
        self.client.close()
        self.transport = None
        if self.gateway:
            self.gateway.close()


def open_chain(target: SshTarget, *, accept_new: bool, timeout_s: float) -> VerifiedConnection:
    """Open every hop in order and then the target; each may take `timeout_s`. Closes what it opened on failure."""
    connection: Any = False
    for hop in (*target.proxy_jump, target):
        following = VerifiedConnection(hop, accept_new=accept_new, timeout_s=timeout_s, gateway=connection)
        try:
            following.open()
        except BaseException:
            if connection:
                connection.close()
            raise
        connection = following
    assert isinstance(connection, VerifiedConnection)
    return connection
