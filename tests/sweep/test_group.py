"""A sweep over hosts that end anywhere, die and come back: nothing is lost, and nothing is knowingly run twice."""

import dataclasses
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.config import Config
from orchestrator.errors import JobFileError, UsageError
from orchestrator.sweep import moving
from orchestrator.sweep.file import from_table
from orchestrator.sweep.group import Key, Part, counts, left, measured_twice, of_host, told
from orchestrator.sweep.moving import Target, given_to, moved
from orchestrator.sweep.plan import Circumstances, plan
from orchestrator.sweep.points import Expanded
from orchestrator.sweep.shares import split
from orchestrator.sweep.standing import progress_of
from orchestrator.sweep_groups.planning import require_same_points
from orchestrator.sweeping import planning
from remote_payload.schema import PathIdentity, PointOutcome, SweepAttempt, SweepJob, job_of_unit
from remote_payload.schema.sweep import SweepShare

TABLE: dict[str, Any] = {
    "job": "bench",
    "repeats": 2,
    "base": {"model": "/m", "draft": "/d", "eagle_topk": 1, "request_rate": [2.0], "concurrency": [1]},
    "grid": {"num_steps": [1, 2, 3, 4]},
    "derive": [{"set": "num_draft_tokens", "to": "num_steps + 1"}],
}
FILE = from_table(TABLE, "s.toml")
WANTED = planning.wanted(FILE, {}, Config(), "gpu1")
NAMES = ("a", "b", "c")


def around(host: str) -> Circumstances:
    """The same model lies on every host, copied at another time."""
    return Circumstances(payload_sha256="p" * 64, identity=(PathIdentity(path="/m", digest=host),))


def share(number: int) -> SweepShare:
    return SweepShare(group_id="g", number=number, hosts=NAMES, host_class="x")


def first_parts() -> list[Part]:
    parts = []
    for number, points in enumerate(split(FILE, WANTED.expanded.points, len(NAMES)), start=1):
        host = NAMES[number - 1]
        job = plan(FILE, WANTED.base, Expanded(points=points, skipped=()), around(host))
        parts.append(part_of(number, host, dataclasses.replace(job, share=share(number))))
    return parts


def part_of(number: int, host: str, job: SweepJob) -> Part:
    progress = progress_of(job, (), "queued")
    return Part(share_id=f"g.h{number}", number=number, host=host, host_class="x", job=job, progress=progress)


class Night:
    """What the hosts really do, and what the laptop was told of it."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.attempts: dict[str, list[SweepAttempt]] = {}
        self.measured: Counter[Key] = Counter()

    def goes_on(self, part: Part, *, to_the_end: bool) -> list[SweepAttempt]:
        """The host measures units until something ends it."""
        done = self.attempts.setdefault(part.share_id, [])
        for unit in part.job.units[len(done) :]:
            if not to_the_end and self.chance.random() < 0.3:
                break
            job_of_unit(part.job, unit)  # it can be read
            fails = not to_the_end and self.chance.random() < 0.2
            outcomes = tuple(PointOutcome(point_id=one, end="failed" if fails else "measured") for one in unit.points)
            done.append(
                SweepAttempt(
                    unit_id=unit.unit_id,
                    attempt=0,
                    run_id=f"{part.share_id}.{unit.unit_id}.0",
                    block=unit.block,
                    phase="failed" if fails else "succeeded",
                    points=outcomes,
                    started_unix_s=0.0,
                    finished_unix_s=1.0,
                )
            )
        return done

    def asked(self, part: Part, phase: str) -> Part:
        """The part with all that its host knows."""
        progress = progress_of(part.job, self.attempts.get(part.share_id, []), phase)
        return dataclasses.replace(part, progress=progress, launched=True, problem=None, is_dead=False)


def go_on(parts: list[Part], hosts: list[str]) -> list[Part]:
    """New shares for what is left, as `sweep resume` makes them."""
    number = max(part.number for part in parts)
    made = []
    for host, some in given_to(left(parts), hosts).items():
        number += 1
        to = Target(base=WANTED.base, around=around(host), share=share(number))
        made.append(part_of(number, host, moved(some, parts, host, to)))
    return made


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_hosts_that_answer_measure_everything_exactly_once(chance: random.Random) -> None:
    night = Night(chance)
    parts = first_parts()
    planned = set(told(parts))
    begun, parts = parts, []
    for turn in range(4):
        for part in begun:
            night.goes_on(part, to_the_end=turn == 3)
        # Over, whatever ended it; so that all of it may be gone on with.
        parts += [night.asked(part, "lost" if chance.random() < 0.5 else "succeeded") for part in begun]
        assert measured_twice(parts) == {}
        begun = go_on(parts, chance.sample(NAMES, chance.randint(1, 3)))
    wholes = {key for key in planned if not key.is_baseline}
    assert {key for key in told(parts) if not key.is_baseline} == wholes  # nothing was added, nothing lost
    while left(parts):  # what failed last, or was left where its host was not among the takers
        more = go_on(parts, list(NAMES))
        for part in more:
            night.goes_on(part, to_the_end=True)
        parts += [night.asked(part, "succeeded") for part in more]
    held = {key for key, some in told(parts).items() if any(one.word == "measured" for one in some)}
    assert wholes <= held
    assert measured_twice(parts) == {}
    assert counts(parts)["measured"] == counts(parts).total()
    for host in NAMES:  # every point beside the plain decoding of its own host, in the same block
        own = {(key.block, key.changes_json) for key in held if key.is_baseline and key.host == host}
        blocks = {
            one.standing.block
            for key, some in told(parts).items()
            for one in some
            if not key.is_baseline and one.part.host == host and one.word == "measured"
        }
        assert blocks <= {block for block, _ in own}


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_silent_host_keeps_its_points_until_it_is_said_to_be_dead(chance: random.Random) -> None:
    night = Night(chance)
    parts = first_parts()
    for part in parts:
        night.goes_on(part, to_the_end=part.host != "a")
    last_told = night.asked(parts[0], "running")
    silent = dataclasses.replace(last_told, problem="no answer")
    parts = [silent, *(night.asked(part, "succeeded") for part in parts[1:])]
    assert left(parts) == ()  # it may measure them yet
    parts[0] = dataclasses.replace(silent, is_dead=True)
    open_before = [one.key for one in left(parts)]
    more = go_on(parts, ["b"]) if any(not key.is_baseline for key in open_before) else []
    for part in more:
        night.goes_on(part, to_the_end=True)
    after = [*parts, *(night.asked(part, "succeeded") for part in more)]
    known = {key for key, some in told(parts).items() if any(one.word == "measured" for one in some)}
    assert not known & {key for part in more for key in told([part]) if not key.is_baseline}  # nothing knowingly twice
    assert measured_twice(after) == {}
    # It was not dead: it went on, and what both measured is seen.
    night.goes_on(parts[0], to_the_end=True)
    back = [night.asked(after[0], "succeeded"), *after[1:]]
    doubles = set(measured_twice(back))
    failed = {key for key, some in told([parts[0]]).items() if some[0].word == "failed"}
    assert doubles == {key for key in open_before if not key.is_baseline} - failed
    lacking = {key for key, some in told(back).items() if not any(one.word == "measured" for one in some)}
    assert lacking == {key for key in failed if key.is_baseline}  # plain decoding of a is nobody else's


def test_a_start_that_outlived_its_sweep_is_adopted_on_its_host_and_left_alone_by_others() -> None:
    first = first_parts()
    unit = first[0].job.units[0]
    going = SweepAttempt(
        unit_id=unit.unit_id,
        attempt=0,
        run_id="g.h1.u0000.0",
        block=0,
        phase="running",
        points=tuple(PointOutcome(point_id=one, end="not_reached") for one in unit.points),
        started_unix_s=0.0,
    )
    lost = dataclasses.replace(first[0], progress=progress_of(first[0].job, [going], "lost"))
    others = [dataclasses.replace(part, progress=progress_of(part.job, (), "cancelled")) for part in first[1:]]
    (own, *_) = go_on([lost, *others], ["a"])
    adopting = [unit for unit in own.job.units if unit.adopt is not None]
    assert [unit.adopt for unit in adopting] == ["g.h1.u0000.0"]
    assert adopting[0].points == unit.points  # its ids are the host's own
    (elsewhere,) = go_on([lost, *others], ["b"])
    assert not any(unit.adopt for unit in elsewhere.job.units)
    kept = {point.changes_json for point in first[0].job.points if point.point_id in unit.points}
    assert not kept & {point.changes_json for point in elsewhere.job.points if not point.is_baseline}


def test_what_was_never_launched_may_be_moved() -> None:
    first = first_parts()
    never = dataclasses.replace(first[1], launched=False, problem="no answer")
    waiting = [first[0], never, first[2]]
    assert {one.part.host for one in left(waiting)} == {"b"}
    (taken,) = go_on(waiting, ["c"])
    own = {point.changes_json for point in first[1].job.points if not point.is_baseline}
    assert {point.changes_json for point in taken.job.points if not point.is_baseline} == own
    assert not any(point.is_baseline for point in taken.job.points)  # c has its plain decoding, or will
    ids = {point.point_id for part in first for point in part.job.points}
    assert not ids & {point.point_id for point in taken.job.points}  # by what lies on c


def test_one_host_put_together_keeps_every_measurement() -> None:
    first = first_parts()
    night = Night(random.Random(3))
    night.goes_on(first[0], to_the_end=False)
    part = night.asked(first[0], "lost")
    (more,) = go_on([part, *(night.asked(one, "cancelled") for one in ())], ["a"])
    night.goes_on(more, to_the_end=True)
    job, progress = of_host([part, night.asked(more, "succeeded")])
    assert {point.point_id for point in job.points} == {point.point_id for point in first[0].job.points}
    assert progress.counts == {"measured": len(part.progress.standings)}
    assert progress.is_over


def test_hosts_whose_settings_leave_other_points_share_no_sweep() -> None:
    fewer = dataclasses.replace(WANTED.expanded, points=WANTED.expanded.points[:-1])
    require_same_points({"a": WANTED, "b": WANTED})
    with pytest.raises(JobFileError, match="leave each another set of points"):
        require_same_points({"a": WANTED, "b": dataclasses.replace(WANTED, expanded=fewer)})


def test_more_starts_than_a_sweep_may_have_are_moved_to_no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [dataclasses.replace(part, launched=False) for part in first_parts()]
    most = max(len(part.job.units) for part in parts)
    monkeypatch.setattr(moving, "MOST_UNITS", most)
    assert [len(part.job.units) for part in go_on(parts, list(NAMES))] == [len(part.job.units) for part in parts]
    with pytest.raises(UsageError, match=rf"`a` would take \d+ starts, and a sweep has at most {most}"):
        go_on(parts, ["a"])
