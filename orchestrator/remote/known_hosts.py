"""known_hosts, read line by line: which lines speak of a host, and what they say about the key it shows.

Pure: text in, records out. One odd line never hides the others; `@revoked` always wins; a `@cert-authority` line never
counts as a plain key. Format: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT".

Not covered: SSH protocol 1 lines (skipped as bad), CheckHostIP, SSHFP records.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

REVOKED = "@revoked"
CERT_AUTHORITY = "@cert-authority"


@dataclass(frozen=True, kw_only=True)
class HostKeyLine:
    """One good line. marker: `@revoked`, `@cert-authority` or empty; key: the decoded public key."""

    file: Path
    number: int
    marker: str
    hosts: str
    key_type: str
    key: bytes

    @property
    def place(self) -> str:
        """`file:line`."""
        return f"{self.file}:{self.number}"


@dataclass(frozen=True, kw_only=True)
class BadLine:
    """A line that was skipped, and why."""

    file: Path
    number: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Known:
    """A line holds exactly this key for this host."""

    line: HostKeyLine


@dataclass(frozen=True, kw_only=True)
class Unknown:
    """No plain line speaks of this host; `authorities` are the @cert-authority lines that do."""

    authorities: tuple[HostKeyLine, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Changed:
    """Lines hold other keys for this host.

    They may be of other types: we ask for known types first, so a host that shows another no longer has the known key.
    """

    lines: tuple[HostKeyLine, ...]


@dataclass(frozen=True, kw_only=True)
class Revoked:
    """A line revokes this key for this host."""

    line: HostKeyLine


Verdict = Known | Unknown | Changed | Revoked


def parse(text: str, file: Path) -> tuple[tuple[HostKeyLine, ...], tuple[BadLine, ...]]:
    """Every good line of one file, in order, and every line that had to be skipped."""
    good: list[HostKeyLine] = []
    bad: list[BadLine] = []
    for number, raw in enumerate(text.split("\n"), start=1):
        fields = raw.strip(" \t\r").split(None, 4)
        if not fields or fields[0].startswith("#"):
            continue
        try:
            good.append(_parse_line(fields, file, number))
        except ValueError as error:
            bad.append(BadLine(file=file, number=number, reason=str(error)))
    return tuple(good), tuple(bad)


def _parse_line(fields: list[str], file: Path, number: int) -> HostKeyLine:
    """Raises ValueError with the reason for a line that is not one."""
    marker = ""
    if fields[0].startswith("@"):
        marker, *fields = fields
        if marker not in (REVOKED, CERT_AUTHORITY):
            raise ValueError(f"unknown marker {marker}")
    if len(fields) < 3:
        raise ValueError("fewer fields than `hosts type key`")
    hosts, key_type, encoded = fields[:3]
    try:
        key = base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise ValueError("the key is not base64") from error
    if blob_type(key) != key_type:
        raise ValueError(f"the key is not of the type the line names, {key_type}")
    return HostKeyLine(file=file, number=number, marker=marker, hosts=hosts, key_type=key_type, key=key)


def blob_type(key: bytes) -> str:
    """The type name a public key blob begins with (RFC 4253, 6.6: a length-prefixed string); empty if it has none."""
    length = int.from_bytes(key[:4], "big")
    name = key[4 : 4 + length]
    return name.decode("ascii", errors="replace") if len(key) > 4 and len(name) == length else ""


def matches(hosts: str, name: str) -> bool:
    """Whether the first field of a line speaks of `name` (`host`, `[host]:port` or an alias).

    A hashed field holds one exact name; otherwise a comma list of patterns with `*` and `?`, where any matching
    `!pattern` vetoes the line.
    """
    name = name.lower()
    if hosts.startswith("|"):
        return _matches_hash(hosts, name)
    found = False
    for pattern in hosts.lower().split(","):
        if pattern.startswith("!"):
            if _matches_pattern(pattern[1:], name):
                return False
        elif _matches_pattern(pattern, name):
            found = True
    return found


def _matches_hash(hosts: str, name: str) -> bool:
    parts = hosts.split("|")
    if len(parts) != 4 or parts[1] != "1":
        return False
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in parts[2:])
    except binascii.Error:
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)


def _matches_pattern(pattern: str, name: str) -> bool:
    if "*" not in pattern and "?" not in pattern:
        return bool(pattern) and pattern == name
    pieces = {"*": ".*", "?": "."}
    return re.fullmatch("".join(pieces.get(char, re.escape(char)) for char in pattern), name, re.DOTALL) is not None


def lines_for(lines: Iterable[HostKeyLine], name: str) -> tuple[HostKeyLine, ...]:
    """The lines that speak of `name`; for `[host]:port` also those of the bare host, as OpenSSH falls back to them."""
    names = [name]
    with_port = re.fullmatch(r"\[(.+)\]:\d+", name)
    if with_port:
        names.append(with_port[1])
    return tuple(line for line in lines if any(matches(line.hosts, each) for each in names))


def judge(lines: Sequence[HostKeyLine], name: str, key: bytes) -> Verdict:
    """What `lines` say about the host `name` showing the public key `key` (a blob, never a certificate)."""
    ours = lines_for(lines, name)
    for line in ours:
        if line.marker == REVOKED and line.key == key:
            return Revoked(line=line)
    plain = [line for line in ours if not line.marker]
    for line in plain:
        if line.key == key:
            return Known(line=line)
    # A bare-host line may vouch for a port of that host, but another key on that port is no change of the bare host's.
    others = tuple(line for line in plain if matches(line.hosts, name))
    if others:
        return Changed(lines=others)
    return Unknown(authorities=authorities_for(lines, name))


def authorities_for(lines: Sequence[HostKeyLine], name: str) -> tuple[HostKeyLine, ...]:
    """The certificate authorities that may vouch for `name`."""
    return tuple(line for line in lines_for(lines, name) if line.marker == CERT_AUTHORITY)


def known_types(lines: Sequence[HostKeyLine], name: str) -> tuple[str, ...]:
    """Key types we hold for `name`, in file order: what to ask the host for first."""
    plain = [line.key_type for line in lines_for(lines, name) if not line.marker]
    return tuple(dict.fromkeys(plain))


def fingerprint(key: bytes) -> str:
    """`SHA256:...` as ssh-keygen -l shows it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def new_line(name: str, key: bytes) -> str:
    """The line that makes `key` known for `name`."""
    return f"{name} {blob_type(key)} {base64.b64encode(key).decode()}\n"
