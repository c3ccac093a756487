"""What is left of a job: which point, how many seconds."""

import time

import pytest

from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.course import Course, course_of, in_time


class Clock:
    """Time that passes when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def point(course: Course, clock: Clock, warm_up_s: float, seconds: float) -> None:
    course.begin()
    clock.now_s += warm_up_s
    course.count()
    clock.now_s += seconds
    course.end()


def test_a_load_takes_as_long_as_it_took_and_a_start_too(clock: Clock) -> None:
    course = Course(["1 user", "4 users"] * 2, starts=2)
    with course.starting():
        clock.now_s += 100
    course.begin()
    clock.now_s += 5
    course.count()
    assert course.left_s(0.0) is None  # nothing is over yet
    clock.now_s += 10
    # This point: 30 s more. Of the other three nothing is known but that this one will take 45; one more start.
    assert course.left_s(0.25) == (30.0, 30.0 + 3 * 45 + 100)
    clock.now_s += 30
    course.end()
    point(course, clock, 5, 15)
    with course.starting():
        clock.now_s += 200
    course.begin()
    course.count()
    clock.now_s += 15
    # This load took 45 s before, and takes 30 now; the next one took 20. No start is left.
    assert course.left_s(0.5) == (15.0, 15.0 + 20)
    assert (course.number, course.points) == (3, 4)
    assert course.left_s(1.0) == (0.0, 20.0)


def test_a_jobs_points_in_their_order() -> None:
    job = BenchJob(model="/m", draft="/d", with_baseline=True, repeats=2, concurrency=(1, 4), request_rate=(0.5,))
    course = course_of(job)
    assert (course.points, course.number) == (12, 0)
    assert course_of(BenchJob(attach_url="http://127.0.0.1:1", repeats=3)).points == 3


@pytest.mark.parametrize(("seconds", "words"), [(0.4, "0 s"), (89, "89 s"), (720, "12 min"), (12_600, "3.5 h")])
def test_seconds_as_people_say_them(seconds: float, words: str) -> None:
    assert in_time(seconds) == words
