"""Logging in with keys: the identity files, the agent, certificates beside keys. Never a password, never a prompt.

The order keeps within sshd's MaxAuthTries: configured keys that the agent holds, configured keys from their files, and
only then, unless IdentitiesOnly, the agent's other keys.

Not covered: FIDO keys from files (through an agent they may work), passphrases (load such a key into the agent).
"""

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import paramiko
from paramiko.agent import AgentKey, AgentSSH
from paramiko.pkey import UnknownKeyType

from orchestrator.errors import AuthenticationError
from orchestrator.remote.host_key_policy import HostKeyPolicy
from orchestrator.remote.ssh_config import SshTarget
from orchestrator.remote.translate_errors import describe

_AGENT_TIMEOUT_S = 30.0  # an agent may ask its owner to confirm


@dataclass
class KeyLogin:
    """Logs one target in; shaped as paramiko's auth_strategy. `tried` and `unusable` end up in the error message."""

    target: SshTarget
    policy: HostKeyPolicy
    tried: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    locked: list[Path] = field(default_factory=list)

    def authenticate(self, transport: paramiko.Transport) -> None:
        """Try key after key. Raises AuthenticationError; SSHException and OSError of the link pass through.

        Raises HostKeyError, and offers nothing, to a host whose key was not judged.
        """
        self.policy.require_accepted(transport.get_remote_server_key())
        with _Agent(self.target.identity_agent) as agent:
            for name, key in self._candidates(agent):
                self.tried.append(name)
                try:
                    further_steps = transport.auth_publickey(self.target.user, key)
                except paramiko.AuthenticationException as refusal:
                    if "timeout" in str(refusal):
                        raise TimeoutError from refusal
                    if not transport.is_active():
                        raise self._refused("the server hung up, perhaps after too many keys") from refusal
                    if isinstance(refusal, paramiko.BadAuthenticationType):
                        raise self._refused(f"it wants {', '.join(refusal.allowed_types)}") from refusal
                    continue
                if further_steps:
                    raise self._refused(f"after the key it also wants {', '.join(further_steps)}")
                return
        raise self._refused("no key was accepted")

    def _candidates(self, agent: "_Agent") -> Iterator[tuple[str, paramiko.PKey]]:
        in_agent = {key.asbytes(): key for key in agent.keys}
        for file in self.target.identity_files:
            held = in_agent.pop(_public_blob(file), None)
            if held is not None:
                yield f"{file} (by agent)", held
            elif file.is_file():
                yield from self._from_file(file)
        if not self.target.identities_only:
            for key in in_agent.values():
                yield f"agent key {key.comment or key.get_name()}", key

    def _from_file(self, file: Path) -> Iterator[tuple[str, paramiko.PKey]]:
        try:
            key = paramiko.PKey.from_path(file)
        except (TypeError, paramiko.PasswordRequiredException):
            self.locked.append(file)  # cryptography says "Key is password-protected" by a TypeError
            return
        except (paramiko.SSHException, UnknownKeyType, OSError, ValueError) as error:
            self.unusable.append(f"{file} ({error})")
            return
        for certificate in self.target.certificate_files:
            if certificate.is_file() and _certifies(certificate, key):
                key.load_certificate(str(certificate))
        yield str(file), key

    def _refused(self, why: str) -> AuthenticationError:
        parts = [f"tried: {', '.join(self.tried) or 'no key, none was found'}"]
        if self.locked:
            parts.append(f"locked by a passphrase: {', '.join(map(str, self.locked))}")
        if self.unusable:
            parts.append(f"unusable: {', '.join(self.unusable)}")
        hint = f"`{self.target.ssh_command} -v` shows what the server accepts"
        if not self.tried and not self.unusable:
            copying = self.target.ssh_command.replace("ssh ", "ssh-copy-id ", 1)
            hint = f"make a key (`ssh-keygen`) and have the server take it: `{copying}`"
        if self.locked:
            hint = f"this tool never asks for a passphrase; unlock the key once: ssh-add '{self.locked[0]}'"
        return AuthenticationError(f"{describe(self.target)} refused the login, {why}; {'; '.join(parts)}", hint=hint)


class _Agent(AgentSSH):
    """The keys of the agent behind one socket; no keys where there is no agent (a dangling SSH_AUTH_SOCK is common)."""

    def __init__(self, path: str | None) -> None:
        super().__init__()
        self._path = path
        self.keys: tuple[AgentKey, ...] = ()

    def __enter__(self) -> "_Agent":
        if self._path and hasattr(socket, "AF_UNIX"):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(_AGENT_TIMEOUT_S)
            try:
                connection.connect(self._path)
                self._connect(connection)  # type: ignore[attr-defined]  # missing in the stubs
                self.keys = self.get_keys()
            except (OSError, paramiko.SSHException):
                connection.close()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()  # type: ignore[attr-defined]  # missing in the stubs


def _public_blob(file: Path) -> bytes:
    """The public key beside a private key file, or in it: an IdentityFile may name the `.pub` of a key in the agent.

    Empty where there is none that can be read.
    """
    for each in (f"{file}.pub", str(file)):
        with contextlib.suppress(OSError, ValueError, IndexError, paramiko.SSHException):
            return paramiko.pkey.PublicBlob.from_file(each).key_blob
    return b""


def _certifies(certificate: Path, key: paramiko.PKey) -> bool:
    """Whether a certificate file is for this key: it repeats the key's own numbers after its nonce."""
    try:
        blob = paramiko.pkey.PublicBlob.from_file(str(certificate)).key_blob
    except (OSError, ValueError, IndexError, paramiko.SSHException):
        return False
    numbers = key.asbytes()[4 + len(key.get_name()) :]
    return numbers in blob
