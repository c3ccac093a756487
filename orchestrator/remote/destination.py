"""What the user typed for a host, `[user@]host[:port]`, taken apart and refused where it could mean something else."""

import re
from dataclasses import dataclass

from orchestrator.errors import UsageError

FORBIDDEN = re.compile(r"[\s'\"`$\\;&|<>(){}!*?~#,\x00-\x1f\x7f]")
"""Characters no host and no user name has, and that a shell, ssh or a ProxyCommand might read as more."""


@dataclass(frozen=True, kw_only=True)
class Destination:
    """`[user@]host[:port]` taken apart; None where the text names none."""

    host: str
    user: str | None = None
    port: int | None = None


def parse_destination(text: str) -> Destination:
    """Take `[ssh://][user@]host[:port]` apart; raises UsageError for whatever could mean something else to a shell."""
    rest = text.removeprefix("ssh://").rstrip("/") if text.startswith("ssh://") else text
    user, has_user, address = rest.rpartition("@")
    host, port_text = address, ""
    if address.startswith("["):
        host, closed, port_text = address[1:].partition("]")
        if not closed or (port_text and not port_text.startswith(":")):
            raise UsageError(f"an IPv6 address is written [address] or [address]:port, found: {text!r}")
        port_text = port_text[1:]
    elif address.count(":") == 1:
        host, _, port_text = address.partition(":")
    parts = (host, user) if has_user else (host,)
    for part in parts:
        if not part or part.startswith("-") or FORBIDDEN.search(part) or not part.isprintable():
            raise UsageError(
                "a host is an ssh alias or [user@]host[:port], without spaces, quotes or shell characters,"
                f" found: {text!r}"
            )
    if port_text and not (port_text.isascii() and port_text.isdigit() and 0 < int(port_text) < 65536):
        raise UsageError(f"a port is a number from 1 to 65535, found: {port_text!r} in {text!r}")
    return Destination(host=host, user=user if has_user else None, port=int(port_text) if port_text else None)
