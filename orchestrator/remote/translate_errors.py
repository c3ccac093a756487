"""The one place where other people's exceptions become ours.

paramiko, fabric, invoke, sockets and key parsers raise some fifteen classes, several with an empty message; whoever
touches them does so inside `translated(...)`.
"""

import contextlib
import errno
import socket
from collections.abc import Iterator

import paramiko
from paramiko.ssh_exception import ChannelException, IncompatiblePeer

from orchestrator.errors import AuthenticationError, Eagle3Error, HostError, LinkLostError
from orchestrator.remote.ssh_config import SshTarget

_NOBODY_THERE = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH)
# paramiko lets a key exchange that timed out pass, and stumbles over the missing session one line later.
_SIGNS_OF_TIMEOUT = ("timed out", "timeout", "no existing session")


def describe(target: SshTarget) -> str:
    """`alias (user@host:port)`, or the address alone where the alias says no more."""
    address = f"{target.user}@{target.address}"
    return address if target.alias in (target.hostname, address) else f"{target.alias} ({address})"


@contextlib.contextmanager
def translated_connect(target: SshTarget, *, timeout_s: float) -> Iterator[None]:
    """While dialling one host (or hop): everything becomes HostError or a subclass of it."""
    try:
        yield
    except Eagle3Error:
        raise
    except (paramiko.SSHException, OSError, EOFError, ValueError) as error:
        raise _connect_error(error, target, timeout_s) from error


@contextlib.contextmanager
def translated_use(target: SshTarget, what: str) -> Iterator[None]:
    """While using an open link: everything becomes LinkLostError that says what was being done."""
    try:
        yield
    except Eagle3Error:
        raise
    except ChannelException as error:
        raise HostError(
            f"{describe(target)} refused another session while {what}: {error}",
            hint="sshd's MaxSessions may be 0 or 1 there",
        ) from error
    except (paramiko.SSHException, OSError, EOFError) as error:
        raise LinkLostError(f"the connection to {describe(target)} broke while {what}: {_words(error)}") from error


def _connect_error(error: Exception, target: SshTarget, timeout_s: float) -> Eagle3Error:  # noqa: PLR0911 -- a table
    where = describe(target)
    check = f"does `{target.ssh_command}` work from this laptop?"
    if isinstance(error, paramiko.AuthenticationException):
        return AuthenticationError(f"{where} refused the login: {_words(error)}", hint=check)
    if isinstance(error, OSError) and error.errno in _NOBODY_THERE:
        return HostError(
            f"nothing answers at {where}: {_words(error)}", hint=f"is the machine on, and is it port {target.port}?"
        )
    if isinstance(error, socket.gaierror):
        return HostError(f"{where}: the name {target.hostname!r} is not known: {error.strerror}", hint=check)
    if isinstance(error, IncompatiblePeer):
        return HostError(
            f"{where} and this tool share no algorithm: {error}",
            hint="this tool speaks AES (CTR, GCM), HMAC-SHA2 and the curve25519, ECDH and DH (SHA-2) key exchanges",
        )
    if isinstance(error, TimeoutError) or any(sign in str(error).lower() for sign in _SIGNS_OF_TIMEOUT):
        return HostError(f"{where} gave no answer within {timeout_s:g} s", hint=check)
    if isinstance(error, ChannelException):
        return HostError(f"the hop before {where} could not reach it: {error.text}", hint=check)
    if isinstance(error, UnicodeError):
        return HostError(f"{where}: not a name that can be looked up: {target.hostname!r}")
    if "Error reading SSH protocol banner" in str(error):
        return HostError(f"{where} accepts connections but does not speak SSH (or is too busy to)", hint=check)
    if isinstance(error, paramiko.SSHException | EOFError):
        return LinkLostError(f"the connection to {where} broke while it was being opened: {_words(error)}", hint=check)
    return HostError(f"cannot connect to {where}: {_words(error)}", hint=check)


def _words(error: BaseException) -> str:
    """What the exception says, or its name where it says nothing."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error).strip().rstrip(".")
    return text or {"EOFError": "closed by the other side"}.get(type(error).__name__, type(error).__name__)
