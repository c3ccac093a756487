"""The stdout of a long-running command, line by line, for as long as something keeps coming."""

from types import TracebackType
from typing import Self

from orchestrator.errors import ProtocolError
from orchestrator.remote.session_channel import SessionChannel
from orchestrator.remote.watchdog import Watchdog

MAX_LINE_BYTES = 64 * 2**20


class LineStream:
    """Iterate for lines without their newline; the last may have had none. A context manager.

    exit_code: known once the iteration has ended by itself; None before, and when a signal ended the command.
    Raises LinkLostError when nothing at all came for `silence_s` or the link broke; never returns half a line then.
    Closing does not stop the command on the host.
    """

    def __init__(self, channel: SessionChannel, watchdog: Watchdog, *, silence_s: float) -> None:
        self.exit_code: int | None = None
        self._channel = channel
        self._watchdog = watchdog
        self._silence_s = silence_s
        self._parts: list[bytes] = []  # of a line that has not ended yet; joined once, however long it gets
        self._parts_bytes = 0
        self._lines: list[bytes] = []
        self._ended = False

    def __enter__(self) -> Self:
        self._watchdog.__enter__()
        try:
            self._channel.__enter__()
        except BaseException:
            self._watchdog.stop()
            raise
        self._watchdog.pause()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        while not self._lines and not self._ended:
            self._read()
        if not self._lines:
            raise StopIteration
        return self._lines.pop()

    @property
    def stderr_tail(self) -> bytes:
        """The end of what the command wrote to stderr."""
        return self._channel.stderr

    def close(self) -> None:
        """Stop listening; the command on the host goes on."""
        self._ended = True
        self._lines.clear()
        self._watchdog.restart(5.0)  # saying goodbye on a full, dead socket would block
        self._channel.__exit__(None, None, None)
        self._watchdog.stop()

    def _read(self) -> None:
        self._watchdog.restart()
        chunk = self._channel.read(restart=True)
        if chunk is None:
            self.exit_code = self._channel.finish()
            self._ended = True
            if self._parts:
                self._lines.append(b"".join(self._parts))
                self._keep(b"")
        else:
            self._watchdog.period_s = self._silence_s  # the first byte had a deadline of its own
            self._split(chunk)
        self._watchdog.pause()

    def _split(self, chunk: bytes) -> None:
        first, *rest = chunk.split(b"\n")
        self._parts.append(first)
        self._parts_bytes += len(first)
        if rest:
            self._lines = [b"".join(self._parts), *rest[:-1]][::-1]
            self._keep(rest[-1])
        if self._parts_bytes > MAX_LINE_BYTES:
            raise ProtocolError(f"a line of the host's answer must end within {MAX_LINE_BYTES} bytes")

    def _keep(self, part: bytes) -> None:
        """What follows the last newline: the beginning of the next line."""
        self._parts = [part] if part else []
        self._parts_bytes = len(part)
