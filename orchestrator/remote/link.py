"""One open SSH connection to a host: run a command, stream one, move a file, ask whether it is still alive.

    with Link.open(resolve("gpu1"), accept_new=False, connect_timeout_s=10.0) as link:
        result = link.exec(["python3", "-c", "pass"], deadline_s=20.0)

Used by one thread at a time. Every call has a deadline; one that passes it drops the connection, because a silent link
and a dead one look the same, and raises LinkLostError: open another. Closing a link never stops what runs on the host.
Never a pty, never an environment, never a shell text built from values (see `command_line`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from orchestrator.errors import HostError, ProtocolError
from orchestrator.remote import file_transfer
from orchestrator.remote.command_line import command_line
from orchestrator.remote.connection import VerifiedConnection, open_chain
from orchestrator.remote.line_stream import LineStream
from orchestrator.remote.session_channel import SessionChannel
from orchestrator.remote.ssh_config import SshTarget
from orchestrator.remote.watchdog import Watchdog

__all__ = ["ExecResult", "LineStream", "Link"]

DEFAULT_CONNECT_TIMEOUT_S = 10.0
MAX_OUTPUT_BYTES = 256 * 2**20
_CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True, kw_only=True)
class ExecResult:
    """exit_code: None when a signal ended the command. stderr: its last 16 KiB."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes


class Link:
    """See the module. `target` is what it was opened to; `warnings` the known_hosts lines that had to be skipped.

    `news`: host keys that were accepted just now, in words.
    """

    def __init__(self, target: SshTarget, connection: VerifiedConnection) -> None:
        self.target = target
        self._connection = connection
        self.warnings: tuple[str, ...] = connection.warnings()
        self.news: tuple[str, ...] = connection.news()

    @classmethod
    def open(cls, target: SshTarget, *, accept_new: bool = False, connect_timeout_s: float | None = None) -> Self:
        """Dial, hop by hop; each hop's key is verified before anything is sent to it.

        connect_timeout_s: for each hop; where None the ssh config's ConnectTimeout, else 10 s. Raises HostKeyError,
        AuthenticationError, HostError.
        """
        timeout_s = connect_timeout_s or target.connect_timeout_s or DEFAULT_CONNECT_TIMEOUT_S
        return cls(target, open_chain(target, accept_new=accept_new, timeout_s=timeout_s))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def exec(self, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float) -> ExecResult:
        """Run a command to its end. Raises LinkLostError when it has not ended after `deadline_s` (it may run on)."""
        watchdog = Watchdog(self._connection.abort, period_s=deadline_s, limit_s=deadline_s)
        with watchdog, self._session(argv, _chunks(stdin), watchdog) as channel:
            stdout: list[bytes] = []
            size = 0
            while (chunk := channel.read()) is not None:
                stdout.append(chunk)
                size += len(chunk)
                if size > MAX_OUTPUT_BYTES:
                    raise ProtocolError(f"`{argv[0]}` must not print more than {MAX_OUTPUT_BYTES} bytes")
            exit_code = channel.finish()
            return ExecResult(exit_code=exit_code, stdout=b"".join(stdout), stderr=channel.stderr)

    def stream(
        self, argv: Sequence[str], *, stdin: bytes = b"", silence_s: float, first_byte_deadline_s: float | None = None
    ) -> LineStream:
        """Run a command and iterate over its lines, inside a `with`. See LineStream.

        first_byte_deadline_s: until anything comes at all; where None, `silence_s`.
        """
        watchdog = Watchdog(self._connection.abort, period_s=first_byte_deadline_s or silence_s)
        return LineStream(self._session(argv, _chunks(stdin), watchdog), watchdog, silence_s=silence_s)

    def put_bytes(self, data: bytes, remote: str) -> None:
        """Write a file, whole or not at all; see `file_transfer.put`."""
        file_transfer.put(self._session, self._connection, _chunks(data), len(data), remote)

    def get_file(self, remote: str, local: Path, *, size: int) -> None:
        """Fetch a file of exactly `size` bytes, whole or not at all; see `file_transfer.get`."""
        file_transfer.get(self._session, self._connection, remote, local, size)

    def probe(self, deadline_s: float) -> bool:
        """Whether a command still comes back within `deadline_s`. A link that fails the probe is closed."""
        try:
            return self.exec(["true"], deadline_s=deadline_s).exit_code is not None
        except HostError:
            self.close()
            return False

    def close(self) -> None:
        """Close the connection and its hops. Never blocks."""
        self._connection.abort()

    def _session(self, argv: Sequence[str], stdin: Iterable[bytes], watchdog: Watchdog) -> SessionChannel:
        what = f"running `{argv[0]}`" if argv else "running nothing"
        return SessionChannel(self._connection, command_line(argv), stdin=stdin, what=what, watchdog=watchdog)


def _chunks(data: bytes) -> tuple[bytes, ...]:
    """Pieces that paramiko, which copies what is left after every packet, does not choke on."""
    return tuple(data[start : start + _CHUNK_BYTES] for start in range(0, len(data), _CHUNK_BYTES))
