"""The queue of those who wait for GPUs, for all users of a host: numbers drawn under one lock, in the order of arrival.

A place is the locked file of a ticket, `NUMBER-UID-PID`. The number comes from the register, which is the text of the
queue's lock: the last number given, then every ticket drawn with the inode of its file. A file that somebody laid among
the tickets, whatever number it claims, is in no register and is passed over; so is one whose name tells another owner.
Whoever waits also remembers who stood there when it drew: nothing that comes later gets before it, not even by a forged
register. Not covered: somebody who holds the queue's lock for ever, which is waited for and told.
"""

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from remote_payload.gpus.shared_lock import SharedLock, shared_folder
from remote_payload.schema.waiting import Holder

LOCK = "queue.lock"
PATIENCE_S = 5.0
"""For the queue's own lock, which is held for as long as it takes to list a folder."""
LOOK_S = 0.5
"""The same of somebody who only shows the queue."""
_NAME = re.compile(r"(\d{1,20})-(\d{1,10})-(\d{1,10})", re.ASCII)
_MOST = 10**18
"""A register that names a higher number was not written by us."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A ticket whose lock is held."""

    name: str
    inode: int
    holder: Holder | None
    """Who signed it; None = nobody, or somebody who says to be another user."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Who waits, first first, and what lies among the tickets that nobody drew, a sentence each."""

    places: tuple[Place, ...] = ()
    passed_over: tuple[str, ...] = ()


@dataclass
class Register:
    """Which tickets were drawn. One that cannot be kept, as with a second name of its file, rules nothing out."""

    last: int = 0
    drawn: dict[str, int] = field(default_factory=dict)
    """Inodes by the names of the tickets."""
    is_kept: bool = True

    @classmethod
    def of(cls, lock: SharedLock) -> "Register":
        """As it was written last; what is no register counts as an empty one."""
        found = cls(is_kept=lock.has_one_name)
        first, *lines = lock.text().splitlines() or ("",)
        found.last = _number(first)
        for line in lines:
            name, _, inode = line.partition(" ")
            if _NAME.fullmatch(name) and inode.isdecimal():
                found.drawn[name] = int(inode)
        return found

    @property
    def text(self) -> str:
        """What `of` reads."""
        return "".join(f"{line}\n" for line in (self.last, *(f"{name} {inode}" for name, inode in self.drawn.items())))

    def next(self, places: Iterable[Place]) -> str:
        """The next number, as the name of this process's ticket; `places`: those that stand."""
        self.last = 1 + max(self.last, 0, *(_number(place.name.partition("-")[0]) for place in places))
        return f"{self.last:020d}-{os.getuid()}-{os.getpid()}"

    def forget(self, places: Iterable[Place]) -> bool:
        """Strike out what does not stand any more; whether there was any."""
        before, living = len(self.drawn), {place.name for place in places}
        self.drawn = {name: inode for name, inode in self.drawn.items() if name in living}
        return len(self.drawn) < before

    def objection(self, name: str, ticket: SharedLock) -> str | None:
        """Why a ticket does not count, None = it does."""
        told = _NAME.fullmatch(name)
        if told is None or int(told[2]) != ticket.owner:
            return f"{name!a}, a file of uid {ticket.owner}, is no ticket"
        if self.is_kept and self.drawn.get(name) != ticket.inode:
            return f"{name!a}, a file of uid {ticket.owner}, has a number that was never given"
        return None


class Queue:
    """One run's place in the queue; the end of the process gives it back. Raises OSError where it is unusable."""

    def __init__(self, folder: Path, holder: Holder) -> None:
        self._folder, self._tickets, self._holder = folder, shared_folder(folder / "queue"), holder
        self._ticket: SharedLock | None = None
        self._before: set[tuple[str, int]] = set()
        self.passed_over: tuple[str, ...] = ()
        """What the last look found among the tickets that is none."""

    def draw(self) -> None:
        """Take a place. Raises TimeoutError where somebody holds the queue's lock, or the ticket's."""
        with self._locked() as lock:
            register = Register.of(lock)
            standing = _standing(self._tickets, register)
            path = self._tickets / register.next(standing.places)
            while os.path.lexists(path):  # somebody foresaw it, or its register was spoilt
                path = self._tickets / register.next(standing.places)
            ticket = SharedLock(path)
            if not ticket.lock(PATIENCE_S):  # somebody who looks holds it for a moment
                ticket.close()
                raise TimeoutError(110, "the ticket cannot be locked", str(ticket.path))
            ticket.sign(self._holder)
            register.forget(standing.places)
            register.drawn[ticket.path.name] = ticket.inode
            lock.write(register.text)
            self._before = {(place.name, place.inode) for place in standing.places}
            self._ticket = ticket

    def leave(self) -> None:
        """Give the ticket back; idempotent."""
        if self._ticket is not None:
            with contextlib.suppress(OSError):
                self._ticket.path.unlink()
            self._ticket.close()
            self._ticket = None

    def before(self) -> tuple[Holder | None, ...]:
        """Who stands before this run: whom it found when it drew, or the whole queue where it has no ticket."""
        own = None if self._ticket is None else (self._ticket.path.name, self._ticket.inode)
        with self._locked() as lock:
            register = Register.of(lock)
            standing = _standing(self._tickets, register, (*self._before, *(() if own is None else (own,))), clean=True)
            is_old = register.forget(standing.places)
            if own is not None and register.drawn.get(own[0]) != own[1]:  # somebody spoilt the register
                register.drawn[own[0]], is_old = own[1], True
            if is_old:
                lock.write(register.text)
        if own is None:
            found = standing.places
        else:
            found = tuple(place for place in standing.places if (place.name, place.inode) in self._before)
        self.passed_over = standing.passed_over
        return tuple(place.holder for place in found)

    def touch(self) -> None:
        """Keep those who clean old files away, from the folder too."""
        with contextlib.suppress(OSError):  # another user's, where only its owner may
            os.utime(self._tickets)
        if self._ticket is not None:
            self._ticket.touch()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[SharedLock]:
        lock = SharedLock(self._folder / LOCK)
        try:
            if not lock.lock(PATIENCE_S):
                raise TimeoutError(110, f"somebody holds the queue's lock for more than {PATIENCE_S:g} s", lock.path)
            yield lock
        finally:
            lock.close()


def queue_of(folder: Path) -> Standing:
    """The queue as somebody sees it who only looks; nothing is made or changed. Raises OSError."""
    tickets = folder / "queue"
    if not tickets.is_dir() or not (folder / LOCK).exists():
        return Standing()
    lock = SharedLock(folder / LOCK)
    try:
        lock.lock(LOOK_S)  # else it is shown as it is being changed
        return _standing(tickets, Register.of(lock))
    finally:
        lock.close()


def _standing(
    tickets: Path, register: Register, known: Collection[tuple[str, int]] = (), *, clean: bool = False
) -> Standing:
    """What is locked of the tickets. `known` ones count, whatever the register says.

    `clean`, under the queue's lock alone: remove our own dead ones.
    """
    places, passed_over = [], []
    for name in os.listdir(tickets):  # noqa: PTH208 - names only
        try:
            ticket = SharedLock(tickets / name, patience_s=0.0)
        except OSError:
            continue
        if not ticket.is_held():
            if clean and ticket.owner == os.getuid():
                ticket.path.unlink(missing_ok=True)
        elif (name, ticket.inode) not in known and (why := register.objection(name, ticket)) is not None:
            passed_over.append(why)
        else:
            signed = ticket.read()
            holder = signed if signed is not None and signed.uid == ticket.owner else None
            places.append(Place(name=name, inode=ticket.inode, holder=holder))
        ticket.close()
    places.sort(key=lambda place: int(place.name.partition("-")[0]))
    return Standing(places=tuple(places), passed_over=tuple(sorted(passed_over)))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= 20 and int(text) < _MOST else 0
