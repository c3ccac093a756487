"""How far a whole job is: which point of how many, and about how long the rest takes, at the pace so far."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean

from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.plan import in_words, last_speculating, loads, lowest_load, starts


class Course:
    """Times the starts and the points of a job. A load that was measured before takes as long again."""

    def __init__(self, plan: Sequence[str], starts: int) -> None:
        """`plan`: the name of each point's load, in order; `starts`: how many servers will be started."""
        self._plan, self._starts = tuple(plan), starts
        self._start_s: list[float] = []
        self._took_s: dict[str, list[float]] = {}
        self.number = 0
        """Of the point that goes on, from 1; 0 = none yet."""
        self._began_s = self._counts_s = time.monotonic()

    @property
    def points(self) -> int:
        """How many there are."""
        return len(self._plan)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """While a server starts."""
        began_s = time.monotonic()
        yield
        self._start_s.append(time.monotonic() - began_s)

    def begin(self) -> None:
        """The next point begins, with its warm-up."""
        self.number += 1
        self._began_s = self._counts_s = time.monotonic()

    def count(self) -> None:
        """Its warm-up is over: requests count from here on."""
        self._counts_s = time.monotonic()

    def end(self) -> None:
        """The point is over."""
        self._took_s.setdefault(self._plan[self.number - 1], []).append(time.monotonic() - self._began_s)

    def left_s(self, share: float) -> tuple[float, float] | None:
        """Seconds left, of this point and of the whole job; `share` of the point's requests is over. None = no telling.

        Stops are left out, and what a load takes that is still to come is that of those before it.
        """
        if not 0 < share <= 1:
            return None
        now_s = time.monotonic()
        point_s = (now_s - self._counts_s) / share * (1 - share)
        took_s = {name: [*some] for name, some in self._took_s.items()}
        took_s.setdefault(self._plan[self.number - 1], []).append(now_s - self._began_s + point_s)
        every_s = fmean(one for some in took_s.values() for one in some)
        rest_s = sum(fmean(took_s.get(name, [every_s])) for name in self._plan[self.number :])
        starts_s = (self._starts - len(self._start_s)) * fmean(self._start_s) if self._start_s else 0.0
        return point_s, point_s + rest_s + max(0.0, starts_s)


def course_of(job: BenchJob) -> Course:
    """The course of a job that has not begun."""
    planned: list[str] = []
    for number, one in enumerate(starts(job)):
        planned += [in_words(load) for _ in one.repeats for load in loads(job)]
        if job.sampled is not None and number == last_speculating(job):
            planned.append(in_words(lowest_load(job)))
    return Course(planned, 0 if job.attach_url is not None else len(starts(job)))


def in_time(seconds: float) -> str:
    """e.g. `40 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
