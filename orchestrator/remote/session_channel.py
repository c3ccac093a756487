"""One command on the host: stdin goes up while stdout and stderr come down, and the end is told apart from a cut."""

import contextlib
import selectors
import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self

import paramiko

from orchestrator.errors import LinkLostError
from orchestrator.remote.connection import VerifiedConnection
from orchestrator.remote.translate_errors import describe, translated_use
from orchestrator.remote.watchdog import Watchdog

_INLINE_BYTES = 32_000  # fits every server's first window, so sending it cannot wait
_READ_BYTES = 256 * 1024
_STDERR_TAIL_BYTES = 16 * 1024
_GRACE_S = 0.02


class SessionChannel:
    """A running command. Its watchdog bounds every wait in here; a context manager that closes the channel.

    what: the command in words, for messages. stdin: chunks, sent in order and then closed.
    """

    def __init__(
        self, connection: VerifiedConnection, line: str, *, stdin: Iterable[bytes], what: str, watchdog: Watchdog
    ) -> None:
        self._connection = connection
        self._line = line
        self._stdin = stdin
        self._what = what
        self._watchdog = watchdog
        self._selector = selectors.DefaultSelector()
        self._channel: paramiko.Channel | None = None
        self.stderr = b""

    def __enter__(self) -> Self:
        """Start the command. Raises LinkLostError, or HostError when the server refuses another session."""
        try:
            with self._watched():
                self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _start(self) -> None:
        transport = self._connection.transport
        if transport is None or not transport.is_active():
            raise EOFError
        self._channel = transport.open_session(timeout=self._watchdog.period_s + 60)  # the watchdog comes first
        self._channel.exec_command(self._line)
        self._selector.register(self._channel.fileno(), selectors.EVENT_READ)
        self._send_stdin(self._channel)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()
        if self._channel is not None:
            with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                self._channel.close()

    def read(self, *, restart: bool = False) -> bytes | None:
        """The next bytes of stdout, None at its end. stderr is kept aside (its tail).

        restart: whatever comes, on stdout or stderr, restarts the watchdog.
        """
        channel = self._open_channel()
        with self._watched():
            while True:
                self._selector.select()
                if channel.recv_stderr_ready():
                    self.stderr = (self.stderr + channel.recv_stderr(_READ_BYTES))[-_STDERR_TAIL_BYTES:]
                elif not channel.recv_ready():
                    if channel.eof_received or channel.closed:
                        return None
                    continue
                if restart:
                    self._watchdog.restart()
                if channel.recv_ready():
                    return channel.recv(_READ_BYTES)

    def finish(self) -> int | None:
        """Wait for the exit code after the end of stdout; None when a signal ended the command.

        Raises LinkLostError when the end was the link's and not the command's.
        """
        channel = self._open_channel()
        with self._watched():
            channel.status_event.wait()
            if not channel.eof_received or channel.exit_status < 0:
                transport = channel.get_transport()
                transport.join(_GRACE_S)  # a dying transport closes its channels just before it says that it is dead
                if self._watchdog.complaint is not None or not transport.is_alive():
                    raise EOFError
            return channel.exit_status if channel.exit_status >= 0 else None

    def _open_channel(self) -> paramiko.Channel:
        if self._channel is None:
            raise RuntimeError("a SessionChannel is used as a context manager")
        return self._channel

    def _send_stdin(self, channel: paramiko.Channel) -> None:
        if isinstance(self._stdin, tuple) and sum(map(len, self._stdin)) <= _INLINE_BYTES:
            self._send_quietly(channel)
        else:
            threading.Thread(target=self._send_quietly, args=(channel,), name="link-stdin", daemon=True).start()

    def _send(self, channel: paramiko.Channel) -> None:
        try:
            for chunk in self._stdin:
                channel.sendall(chunk)
        finally:  # also when a local file cannot be read on: the host must not wait for the rest
            channel.shutdown_write()

    def _send_quietly(self, channel: paramiko.Channel) -> None:
        """A command that ends without reading its stdin is no error; a broken link shows on the reading side."""
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._send(channel)

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Our errors for paramiko's; a passed deadline is named as such."""
        target = self._connection.target
        try:
            with translated_use(target, self._what):
                yield
        except LinkLostError as error:
            if self._watchdog.complaint is None:
                raise
            raise LinkLostError(f"{describe(target)} {self._watchdog.complaint} while {self._what}") from error
