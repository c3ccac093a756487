"""Starting a process that outlives the connection: double fork, own session, no shared descriptors, and a handshake.

The launcher learns that the process is up only from the process itself, over a pipe; end of file without a report
means that it died. Source of the double fork: W. R. Stevens, Advanced Programming in the UNIX Environment, 13.3.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable

Report = Callable[[str], None]


class DetachError(Exception):
    """The detached process has not reported back in time; it may still come up."""


class DiedError(DetachError):
    """The detached process ended before it reported back."""


def start_detached(body: Callable[[Report], None], *, keep: tuple[int, ...], timeout_s: float) -> str:
    """Run `body` in a detached process and return the one line that it reports.

    `keep` names descriptors that stay open there (besides 0-2, which become /dev/null). Raises DetachError.
    """
    read_end, write_end = os.pipe()
    first = os.fork()
    if first == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                _cut_loose((*keep, write_end))
                body(lambda line: _report(write_end, line))
        finally:
            os._exit(0)  # never back into the launcher's code
    os.close(write_end)
    os.waitpid(first, 0)
    try:
        return _read_line(read_end, time.monotonic() + timeout_s)
    finally:
        os.close(read_end)


def _cut_loose(keep: tuple[int, ...]) -> None:
    os.umask(0o077)
    os.chdir("/")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if int(name) > 2 and int(name) not in keep:
            try:
                os.close(int(name))
            except OSError:  # the descriptor of this very listing
                continue


def _report(write_end: int, line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # the launcher is gone; the run is not
        os.write(write_end, line.encode("ascii") + b"\n")  # far below a pipe's 64 KiB
    os.close(write_end)


def _read_line(read_end: int, until_s: float) -> str:
    received = b""
    poll = select.poll()
    poll.register(read_end, select.POLLIN)
    while not received.endswith(b"\n"):
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            raise DetachError("it has not reported back yet; it may still come up")
        if not poll.poll(left_s * 1000):
            continue
        chunk = os.read(read_end, 65536)
        if not chunk:
            raise DiedError("it died before it reported back")
        received += chunk
    return received.decode("ascii").rstrip("\n")
