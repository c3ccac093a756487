"""TCP ports of this host: a free one, and who listens on one."""

import contextlib
import os
import socket
from collections.abc import Iterable
from pathlib import Path

LISTENING = "0A"


def free_port() -> int:
    """A port nobody has now. Somebody may take it before the server does: see `owner`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Whether a server could bind it now, on every address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as uvicorn does
        try:
            probe.bind(("0.0.0.0", port))  # noqa: S104 - bound, never listened on
        except OSError:
            return False
        return True


def listeners(port: int, pids: Iterable[int]) -> tuple[int, ...] | None:
    """Those of `pids` that listen on the port; None where nobody listens in this network namespace."""
    sockets = _listening(port)
    if not sockets:
        return None
    return tuple(pid for pid in pids if _sockets(pid) & sockets)


def _listening(port: int) -> set[str]:
    """Inodes of the sockets that listen on the port."""
    found = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(f"socket:[{fields[9]}]")
    return found


def _sockets(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - names only
            with contextlib.suppress(OSError):  # closed since
                found.add(os.readlink(f"/proc/{pid}/fd/{name}"))  # noqa: PTH115 - proc(5)
    return found
