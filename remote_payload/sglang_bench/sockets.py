"""Which of many sockets have something to say."""

import resource
import select
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remote_payload.sglang_bench.connection import Connection

READ_BYTES = 1 << 18
OTHER_FILES = 128
"""What a process of ours has open beside its sockets, at most."""


def allow_sockets(count: int) -> None:
    """Raise this process's limit of open files so far, or as far as it may: often it stands at 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + OTHER_FILES if hard == resource.RLIM_INFINITY else min(count + OTHER_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Sockets:
    """The kernel's list of open sockets, and whose they are."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._whose: dict[int, Connection] = {}
        self.buffer = memoryview(bytearray(READ_BYTES))
        """What is read goes through it: a fresh one of this size costs a read more than all else."""

    def add(self, one: socket.socket, connection: "Connection", events: int) -> None:
        """Look for `events` of a fresh socket; the kernel forgets a closed one by itself."""
        self._poll.register(one, events)
        self._whose[one.fileno()] = connection

    def change(self, one: socket.socket, events: int) -> None:
        """Look for other events."""
        self._poll.modify(one, events)

    def ready(self, seconds: float) -> list[tuple["Connection", int]]:
        """Connections on which something happened, waiting so long at most."""
        return [(self._whose[number], events) for number, events in self._poll.poll(seconds)]

    @property
    def are_opening(self) -> bool:
        """Whether one is on its way."""
        return any(connection.is_opening for connection in self._whose.values())

    def close(self) -> None:
        """Drop every connection."""
        for connection in self._whose.values():
            connection.close()
        self._poll.close()
