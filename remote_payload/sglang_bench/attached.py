"""What this host tells about a server that we did not start."""

import contextlib
import os
from pathlib import Path
from urllib.parse import urlsplit

from remote_payload import processes
from remote_payload.sglang_bench import ports

LOCAL = {"127.0.0.1", "localhost", "::1", "0.0.0.0"}  # noqa: S104 - an address in a URL, nothing is bound


def environment_of_listener(url: str) -> dict[str, str] | None:
    """The environment of the process that listens at a local URL; None where it is not for us to see."""
    parts = urlsplit(url)
    if parts.hostname not in LOCAL or parts.port is None:
        return None
    for pid in ports.listeners(parts.port, processes.all_pids()) or ():
        with contextlib.suppress(OSError):
            pairs = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            return dict(os.fsdecode(pair).split("=", 1) for pair in pairs if b"=" in pair)
    return None
