"""Several hosts at once: one connection each, few dialled at a time, and each failure is its own host's."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from orchestrator.errors import Eagle3Error, HostError
from orchestrator.following import Tell
from orchestrator.remote.session import HostSession
from orchestrator.updates import Note, Reconnecting, Update

T = TypeVar("T")

AT_ONCE = 8
"""Hosts that are talked to side by side."""
DIALS = 3
"""Connections that are made side by side: an sshd, or a jump host before all of them, refuses more than it likes
(MaxStartups: 10 by default, a chance of refusal from there on)."""
JITTER_S = 0.3
"""Longest wait before a dial, drawn anew for each."""


@dataclass(frozen=True, kw_only=True)
class Answers(Generic[T]):
    """What each host answered, and what kept the others from it."""

    found: Mapping[str, T]
    errors: Mapping[str, Eagle3Error]


class Several:
    """Sessions on hosts by name; each is used by one thread at a time. A context manager: leaving it closes all."""

    def __init__(self, sessions: Sequence[HostSession], lock: threading.Lock) -> None:
        """`lock`: that of `told_by`, one for all that tell in the same place."""
        self.lock = lock
        self._sessions = {session.name: session for session in sessions}
        self._dialling = threading.Semaphore(DIALS)
        self._connected: set[str] = set()
        self.places: dict[str, str | None] = {}
        """What tells the root of each host from every other, of those that were asked."""

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts."""
        return tuple(self._sessions)

    def session(self, name: str) -> HostSession:
        """Of one host."""
        return self._sessions[name]

    def add(self, sessions: Sequence[HostSession]) -> None:
        """More hosts, not there yet."""
        self._sessions |= {session.name: session for session in sessions}

    def each(self, work: Callable[[HostSession], T], names: Sequence[str] | None = None) -> Answers[T]:
        """Do `work` on every host, or on those named. Errors of this tool's are kept by host; Ctrl-C ends all."""
        asked = self.names if names is None else tuple(names)
        found: dict[str, T] = {}
        errors: dict[str, Eagle3Error] = {}
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="host") as pool:
            futures: dict[str, Future[T]] = {name: pool.submit(self._one, name, work) for name in asked}
            try:
                wait(futures.values())
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                self.close()  # what waits for an answer ends by that
                raise
        for name, future in futures.items():
            try:
                found[name] = future.result()
            except Eagle3Error as error:
                errors[name] = error
        return Answers(found=found, errors=errors)

    def _one(self, name: str, work: Callable[[HostSession], T]) -> T:
        session = self._sessions[name]
        try:
            if name not in self._connected:
                with self._dialling:
                    time.sleep(random.uniform(0, JITTER_S))  # noqa: S311 - no secret
                    session.link()
                self._connected.add(name)
            return work(session)
        except HostError:
            self._connected.discard(name)
            session.drop()
            raise

    def close(self) -> None:
        """Close every connection; nothing that runs on the hosts ends by it."""
        for session in self._sessions.values():
            session.drop()


@contextmanager
def several(sessions: Sequence[HostSession], lock: threading.Lock) -> Iterator[Several]:
    """The sessions for as long as the block lasts."""
    hosts = Several(sessions, lock)
    try:
        yield hosts
    finally:
        hosts.close()


def told_by(host: str, tell: Tell, lock: threading.Lock) -> Tell:
    """What one of several hosts tells, with its name, and one thread after the other; its runs' lives are not told."""

    def with_name(update: Update) -> None:
        with lock:
            if isinstance(update, Note):
                tell(replace(update, text=f"{host}: {update.text}"))
            elif isinstance(update, Reconnecting):
                tell(replace(update, reason=f"{host}: {update.reason}"))

    return with_name
