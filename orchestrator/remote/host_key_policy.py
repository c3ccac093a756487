"""Trust: what happens when a host, or a hop on the way to it, shows its key.

Refused unless a known_hosts line vouches for it. `accept_new` lets an unknown key in and writes it down; a changed or
revoked key is refused whatever the flags. The key is judged here and nowhere else: paramiko's own stores stay empty.
"""

import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import paramiko

from orchestrator.errors import HostKeyError
from orchestrator.remote import host_certificate
from orchestrator.remote.known_hosts import (
    Changed,
    HostKeyLine,
    Known,
    Revoked,
    authorities_for,
    fingerprint,
    judge,
    known_types,
    new_line,
    parse,
)
from orchestrator.remote.ssh_config import SshTarget
from orchestrator.remote.translate_errors import describe

# An RSA key is one key with several signature algorithms; SHA-1 (`ssh-rsa`) is not among them any more.
_ALGORITHMS_OF_TYPE = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}


@dataclass
class HostKeyPolicy(paramiko.MissingHostKeyPolicy):
    """Judges one target's key.

    hops: the hosts it is dialled through. lines: those of its known_hosts files. warnings: what was skipped in them.
    accepted: the key that was judged good, once it was. news: what `accept_new` let in, in words.
    """

    target: SshTarget
    accept_new: bool
    hops: tuple[SshTarget, ...] = ()
    lines: tuple[HostKeyLine, ...] = ()
    warnings: list[str] = field(default_factory=list)
    accepted: bytes | None = None
    news: list[str] = field(default_factory=list)

    @classmethod
    def for_target(cls, target: SshTarget, hops: tuple[SshTarget, ...], *, accept_new: bool) -> "HostKeyPolicy":
        """Read the target's known_hosts files. Raises HostKeyError when one is there but cannot be read."""
        lines: list[HostKeyLine] = []
        warnings: list[str] = []
        for file in (*target.user_known_hosts_files, *target.global_known_hosts_files):
            good, bad = parse(_read(file), file)
            lines += good
            warnings += [f"{line.file}:{line.number} is skipped: {line.reason}" for line in bad]
        return cls(target, accept_new, hops, tuple(lines), warnings)

    def preferred_algorithms(self, offered: Iterable[str]) -> tuple[str, ...]:
        """`offered` with the kinds we can judge first: known key types, then certificates where a CA vouches."""
        offered = tuple(offered)
        name = self.target.host_key_name
        first = [each for kind in known_types(self.lines, name) for each in _ALGORITHMS_OF_TYPE.get(kind, (kind,))]
        certificates = [each for each in offered if "-cert-" in each]
        if authorities_for(self.lines, name):
            first += certificates
        else:  # a certificate nobody can vouch for would only hide the plain key
            offered = tuple(each for each in offered if "-cert-" not in each)
        return tuple(dict.fromkeys([each for each in first if each in offered] + list(offered)))

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Return to accept; raises HostKeyError. paramiko calls this for every key, having none of its own."""
        self._judge(key)
        self.accepted = key.asbytes()

    def require_accepted(self, key: paramiko.PKey) -> None:
        """Raise HostKeyError unless this very key was judged and accepted: should paramiko ever stop asking us."""
        if self.accepted is None or self.accepted != key.asbytes():
            raise HostKeyError(f"the key of {describe(self.target)} was not verified before the login")

    def _judge(self, key: paramiko.PKey) -> None:
        blob = key.asbytes()  # the bare key, also of one that came inside a certificate
        verdict = judge(self.lines, self.target.host_key_name, blob)
        if isinstance(verdict, Known):
            return
        if isinstance(verdict, Revoked):
            raise HostKeyError(
                f"the key of {describe(self.target)} is revoked at {verdict.line.place}: {fingerprint(blob)}",
                hint="somebody may hold a stolen key: ask whoever runs that machine before anything else",
            )
        reason = host_certificate.why_not(key, self.lines, self.target)
        if reason is None:
            return
        if isinstance(verdict, Changed):
            raise HostKeyError(self._changed_text(verdict.lines, blob), hint=self._changed_hint(verdict.lines))
        if self.accept_new:
            where = self._write_down(blob)
            shown = f"{fingerprint(blob)} ({_type_of(blob)})"
            self.news.append(f"accepted for {describe(self.target)}, unknown until now: {shown}, {where}")
            return
        raise HostKeyError(self._unknown_text(blob, reason), hint=self._unknown_hint())

    def _changed_text(self, lines: tuple[HostKeyLine, ...], blob: bytes) -> str:
        known = ", ".join(f"{fingerprint(line.key)} ({line.key_type}, {line.place})" for line in lines)
        return (
            f"the key of {describe(self.target)} is not the known one; known: {known};"
            f" found: {fingerprint(blob)} ({_type_of(blob)})"
        )

    def _changed_hint(self, lines: tuple[HostKeyLine, ...]) -> str:
        files = dict.fromkeys(line.file for line in lines)
        commands = "; ".join(
            f"ssh-keygen -R '{self.target.host_key_name}' -f {shlex.quote(str(file))}" for file in files
        )
        return (
            "either the machine was reinstalled or somebody sits in between; ask whoever runs it, and only then forget"
            f" the old key: {commands}"
        )

    def _unknown_text(self, blob: bytes, reason: str) -> str:
        return (
            f"the key of {describe(self.target)} is unknown, known_hosts has no line for"
            f" {self.target.host_key_name}{reason}; found: {fingerprint(blob)} ({_type_of(blob)})"
        )

    def _unknown_hint(self) -> str:
        return f"compare the fingerprint with the machine's own, then: {self._how_to_trust()}; or give --accept-new"

    def _how_to_trust(self) -> str:
        """The command that makes the key known; only the last hop can scan a host behind it."""
        file = next(iter(self.target.user_known_hosts_files), Path("~/.ssh/known_hosts"))
        if self.target.host_key_alias is not None or self.target.proxy_command is not None:
            return f"{self.target.ssh_command} (it asks, and writes the key under {self.target.host_key_name})"
        scan = f"ssh-keyscan -p {self.target.port} {self.target.hostname} >> {shlex.quote(str(file))}"
        if not self.hops:
            return scan
        *before, last = self.hops
        through = f" -J {','.join(hop.alias for hop in before)}" if before else ""
        return f"{last.ssh_command}{through} {scan}"

    def _write_down(self, blob: bytes) -> str:
        """Append the key to the first user known_hosts file: one write, so that two runs never mix their lines.

        Returns in words where it stands now.
        """
        if not self.target.user_known_hosts_files:
            return "for this command only (`UserKnownHostsFile none`)"
        file = self.target.user_known_hosts_files[0]
        line = new_line(self.target.host_key_name, blob).encode()
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            number = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                ends_open = os.lseek(number, 0, os.SEEK_END) > 0
                if ends_open:
                    os.lseek(number, -1, os.SEEK_END)
                    ends_open = os.read(number, 1) != b"\n"
                os.write(number, b"\n" + line if ends_open else line)
            finally:
                os.close(number)
        except OSError as error:
            raise HostKeyError(
                f"the new key of {describe(self.target)} cannot be written to {file}: {error}"
            ) from error
        return f"written to {file}"


def _type_of(blob: bytes) -> str:
    return paramiko.Message(blob).get_text()


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise HostKeyError(f"known hosts cannot be read: {error}") from error
