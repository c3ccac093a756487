"""Who asks next, and when: users in a closed loop, or arrivals at random."""

import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from remote_payload.sglang_bench.connection import Connection

Connect = Callable[[], Connection]


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A connection that may ask now."""

    connection: Connection
    due_s: float | None
    """When it was due (monotonic seconds); None = nothing came before."""


class Users:
    """Each user asks again as soon as its last answer is over."""

    def __init__(self, users: int, connect: Connect) -> None:
        self._free = deque(Turn(connection=connect(), due_s=None) for _ in range(users))

    def begin(self) -> None:
        """Everybody is due from the start."""

    def next(self) -> Turn | None:
        """Whose turn it is; None = nobody's yet."""
        return self._free.popleft() if self._free else None

    def leave(self, connection: Connection, done_s: float) -> None:
        """Its answer was over at `done_s`."""
        self._free.append(Turn(connection=connection, due_s=done_s))

    def wait_s(self) -> float:
        """How long nobody's turn comes unless an answer ends."""
        return float("inf")


class Arrivals:
    """Exponential gaps drawn from the seed; nobody waits for an answer before the next is sent."""

    def __init__(self, rate: float, seed: int, count: int, connect: Connect) -> None:
        draw = random.Random(seed)  # noqa: S311 - arrivals, not secrets
        self._gaps_s = deque(draw.expovariate(rate) for _ in range(count))
        self._connect = connect
        self._free: list[Connection] = []
        self._due_s = 0.0

    def begin(self) -> None:
        """The first is due now."""
        self._due_s = time.monotonic()

    def next(self) -> Turn | None:
        """Whose turn it is; None = nobody's yet."""
        if time.monotonic() < self._due_s:
            return None
        due_s, self._due_s = self._due_s, self._due_s + self._gaps_s.popleft()
        return Turn(connection=self._free.pop() if self._free else self._connect(), due_s=due_s)

    def leave(self, connection: Connection, done_s: float) -> None:
        """Its answer was over at `done_s`."""
        self._free.append(connection)

    def wait_s(self) -> float:
        """How long nobody's turn comes."""
        return self._due_s - time.monotonic()
