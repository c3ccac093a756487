"""ProxyCommand: a child process whose stdin and stdout are the connection.

A socket pair instead of pipes and threads: the child holds one end as both its stdin and its stdout, paramiko the
other, so the child's end is an ordinary end of file. Closing ends and reaps the child. POSIX only.
"""

import contextlib
import os
import socket
import subprocess
import tempfile
import threading
from typing import IO, Self

from orchestrator.errors import HostError

_PATIENCE_S = 1.0


class ProxySocket(socket.socket):
    """Our end of the pair."""

    words = ""
    """The last line the command wrote to stderr; known after close()."""
    _process: subprocess.Popen[bytes]
    _log: IO[bytes]
    _lock: threading.Lock

    @classmethod
    def run(cls, command: str) -> Self:
        """Start a command of the user's own ssh config with their shell, as ssh does. Raises HostError, OSError."""
        if not hasattr(socket, "AF_UNIX"):
            raise HostError(f"ProxyCommand needs a POSIX laptop, found in the ssh config: {command}")
        ours, childs = socket.socketpair()
        proxy = cls(ours.family, ours.type, ours.proto, fileno=ours.detach())
        proxy._lock = threading.Lock()
        proxy._log = tempfile.TemporaryFile()  # noqa: SIM115 -- lives as long as the socket
        with childs:
            proxy._process = subprocess.Popen(
                [os.environ.get("SHELL") or "/bin/sh", "-c", f"exec {command}"],
                stdin=childs.fileno(),
                stdout=childs.fileno(),
                stderr=proxy._log,
                start_new_session=True,  # a Ctrl-C is ours to handle
            )
        return proxy

    def close(self) -> None:
        """Close the connection and end the command; leaves no zombie. paramiko's thread may call it beside ours."""
        super().close()
        with self._lock:
            if self._log.closed:
                return
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            try:
                self._process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(_PATIENCE_S)
            self._log.seek(0)
            lines = self._log.read().decode(errors="replace").strip().splitlines()
            self.words = lines[-1] if lines else ""
            self._log.close()
