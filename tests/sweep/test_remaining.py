"""A sweep that is cut off anywhere, again and again, measures every point of every block exactly once."""

import dataclasses
import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import pipeline
from orchestrator.config import Config, HostConfig
from orchestrator.errors import ClaimedError
from orchestrator.sweep.file import from_table
from orchestrator.sweep.plan import Circumstances, plan, point_id
from orchestrator.sweep.remaining import drifted, remaining
from orchestrator.sweep.software import measured_with, mixed
from orchestrator.sweep.standing import progress_of
from orchestrator.sweeping import planning
from orchestrator.sweeping.going_on import question_of, require_none_runs
from remote_payload.schema import BenchJob, PathIdentity, PointOutcome, SweepAttempt, SweepJob, job_of_unit, to_json
from remote_payload.sweep.outcome import ends_of_loads
from remote_payload.sweep.wanted import Wanted, job_for

AROUND = Circumstances(payload_sha256="a" * 64, identity=(PathIdentity(path="/m", digest="1"),))
TABLE: dict[str, Any] = {
    "job": "bench",
    "repeats": 2,
    "base": {"model": "/m", "draft": "/d", "request_rate": [2.0]},
    "grid": {"num_steps": [1, 2, 3]},
}


def planned(around: Circumstances = AROUND, **changes: Any) -> SweepJob:
    file = from_table({**TABLE, **changes}, "s.toml")
    wanted = planning.wanted(file, {"concurrency": [1, 4]}, Config(), "gpu1")
    return plan(file, wanted.base, wanted.expanded, around)


def one_night(job: SweepJob, chance: random.Random, measured: "Counter[tuple[str, int]]") -> list[SweepAttempt]:
    """What a host makes of a sweep: units fail under a load, or at their start, and the sweep ends anywhere."""
    attempts: list[SweepAttempt] = []
    for unit in job.units:
        wanted, number = Wanted(points=unit.points, retries=job.retries), 0
        while wanted.points:
            if chance.random() < 0.1:
                return attempts
            asked, points = job_for(job, unit, wanted.points)
            assert isinstance(asked, BenchJob)
            assert len(points) == len(asked.concurrency) + len(asked.request_rate)
            finished = chance.randint(0, len(points))
            ends = ends_of_loads(len(points), 1, finished, chance.choice([0, finished + 1]))
            outcomes = tuple(PointOutcome(point_id=p, end=e) for p, e in zip(points, ends, strict=True))
            measured.update((one.point_id, unit.block) for one in outcomes if one.end == "measured")
            attempts.append(
                SweepAttempt(
                    unit_id=unit.unit_id,
                    attempt=number,
                    run_id=f"{chance.random()}.{unit.unit_id}.{number}",
                    block=unit.block,
                    phase="succeeded" if finished == len(points) else "failed",
                    points=outcomes,
                    started_unix_s=0.0,
                )
            )
            wanted.settle(outcomes)
            number += 1
    return attempts


@given(seed=st.integers(0, 10**6), retries=st.integers(0, 2))
@settings(max_examples=40, deadline=None)
def test_every_point_of_every_block_is_measured_once_however_often_it_is_cut_off(seed: int, retries: int) -> None:
    chance = random.Random(seed)
    job = planned(retries=retries)
    everything = {(point, unit.block) for unit in job.units for point in unit.points}
    assert len(everything) == 4 * 3 * 2  # plain and three numbers of steps, three loads, two blocks
    measured: Counter[tuple[str, int]] = Counter()
    for night in range(200):
        progress = progress_of(job, one_night(job, chance, measured), "cancelled")
        assert {(one.point_id, one.block) for one in progress.standings} == everything
        assert progress.counts["measured"] == len(measured)
        job = remaining(job, f"night-{night}", progress)
        assert {(one.point_id, one.block) for one in job.done} == set(measured)
        assert {(p, unit.block) for unit in job.units for p in unit.points} == everything - set(measured)
        if not job.units:
            break
    assert measured == Counter(everything)


def test_blocks_have_one_order_or_a_seeded_one_and_the_same_points() -> None:
    def order(job: SweepJob, block: int) -> list[tuple[str, ...]]:
        return [unit.points for unit in job.units if unit.block == block]

    same, mixed = planned(), planned(blocks="random", seed=3)
    assert order(same, 0) == order(same, 1)
    assert order(mixed, 0) != order(mixed, 1)
    assert sorted(order(mixed, 0)) == sorted(order(mixed, 1)) == sorted(order(same, 0))
    assert mixed == planned(blocks="random", seed=3)
    first = job_of_unit(same, same.units[0])
    assert isinstance(first, BenchJob)
    assert (first.speculates, first.concurrency, first.request_rate) == (False, (1, 4), (2.0,))


def test_a_points_id_is_its_job_its_payload_and_what_its_paths_lead_to() -> None:
    job = BenchJob(model="/m")
    ids = {
        point_id(job, AROUND),
        point_id(dataclasses.replace(job, seed=1), AROUND),
        point_id(job, dataclasses.replace(AROUND, payload_sha256="b" * 64)),
        point_id(job, Circumstances(payload_sha256="a" * 64, identity=(PathIdentity(path="/m", digest="2"),))),
    }
    assert len(ids) == 4
    others = (*AROUND.identity, PathIdentity(path="/elsewhere", digest="3"))
    assert point_id(job, dataclasses.replace(AROUND, identity=others)) == point_id(job, AROUND)


@pytest.mark.parametrize(
    ("loads", "repeats", "finished", "begun", "ends"),
    [
        (3, 1, 0, 0, "fff"),  # the server never came up
        (3, 1, 1, 2, "mfn"),
        (3, 1, 1, 1, "mfn"),  # it ended between two loads
        (3, 1, 0, 1, "fnn"),
        (2, 2, 3, 4, "mf"),  # in the second repeat of the second load
        (2, 2, 1, 2, "nf"),  # the first load has one of two repeats: it is measured anew
        (2, 1, 2, 2, "mm"),  # it failed when all was measured
    ],
)
def test_ends_of_loads(loads: int, repeats: int, finished: int, begun: int, ends: str) -> None:
    assert "".join(end[0] for end in ends_of_loads(loads, repeats, finished, begun)) == ends


def test_what_is_left_of_a_start_has_its_own_loads_and_a_running_one_is_adopted() -> None:
    job = planned(repeats=1)
    unit = job.units[1]
    ends = ("measured", "failed", "not_reached")
    outcomes = tuple(PointOutcome(point_id=p, end=e) for p, e in zip(unit.points, ends, strict=True))  # type: ignore[arg-type]
    attempt = SweepAttempt(
        unit_id=unit.unit_id, attempt=0, run_id="s.u.0", block=0, phase="running", points=outcomes, started_unix_s=0.0
    )
    left = remaining(job, "s", progress_of(job, [attempt], "lost"))
    (mine,) = (one for one in left.units if one.unit_id == unit.unit_id)
    assert (mine.points, mine.adopt) == (unit.points[1:], "s.u.0")
    again = job_of_unit(left, mine)
    assert isinstance(again, BenchJob)
    assert (again.concurrency, again.request_rate) == ((4,), (2.0,))
    without = remaining(job, "s", progress_of(job, [attempt], "lost"), skip_failed=True)
    assert next(one for one in without.units if one.unit_id == unit.unit_id).points == unit.points[2:]
    (left_out,) = (one for one in without.skipped if one not in job.skipped)
    assert json.loads(left_out.changes_json)["concurrency"] == 4
    assert left_out.reason == "it failed in block 0 (s.u.0); left out by --skip-failed"


def test_a_start_that_still_runs_is_waited_for_though_it_cannot_win_and_nothing_is_confirmed_beside_it() -> None:
    job = planned(repeats=2)
    units = [unit for unit in job.units if json.loads(unit.changes_json).get("num_steps") == 1]
    runs, open_yet = units
    outcomes = tuple(PointOutcome(point_id=point, end="not_reached") for point in runs.points)
    attempt = SweepAttempt(
        unit_id=runs.unit_id, attempt=0, run_id="s.u.0", block=0, phase="running", points=outcomes, started_unix_s=0.0
    )
    progress = progress_of(job, [attempt], "lost")
    left = remaining(job, "s", progress, hopeless=dict.fromkeys(runs.points, "cannot win"))
    adopted = next(unit for unit in left.units if unit.unit_id == runs.unit_id)
    assert (adopted.points, adopted.adopt) == (runs.points, "s.u.0")
    assert [one for one in left.skipped if one not in job.skipped] == []
    with pytest.raises(ClaimedError, match=r"a start of sweep `s` outlived it and still runs on gpu1, .*: s\.u\.0"):
        require_none_runs("s", "gpu1", progress)
    quiet = progress_of(job, [dataclasses.replace(attempt, phase="lost")], "lost")
    require_none_runs("s", "gpu1", quiet)
    pruned = remaining(job, "s", quiet, hopeless=dict.fromkeys(runs.points, "cannot win"))
    assert not {runs.unit_id, open_yet.unit_id} & {unit.unit_id for unit in pruned.units}


def test_drift_is_told_by_what_drifted() -> None:
    job = dataclasses.replace(planned(), identity=AROUND.identity)
    ran = "/home/me/venv/bin/python"
    for runs in (ran, "~/venv/bin/python", "python3"):
        assert drifted(job, AROUND.identity, ("a", "a"), ({}, {}), (ran, runs)) == ()
    now = (PathIdentity(path="/m", digest="2"),)
    found = drifted(job, now, ("a", "b"), ({}, {"X": "1"}), (ran, "/usr/bin/python3"))
    assert len(found) == 4
    assert found[3] == f"the interpreter is another: {ran} then, /usr/bin/python3 now"
    assert found[0] == "what lies under /m on the host is another than it was"


def test_another_version_of_what_was_measured_with_is_drift_and_another_path_of_the_same_is_none() -> None:
    job = dataclasses.replace(planned(), identity=AROUND.identity)
    old, new = {"python": "3.11.7", "sglang": "0.5.9"}, {"python": "3.11.7", "sglang": "0.5.10", "torch": "2.13.0"}

    def found(ran: str, runs: str, then: list[dict[str, str]], now: dict[str, str]) -> tuple[str, ...]:
        return drifted(job, AROUND.identity, ("a", "a"), ({}, {}), (ran, runs), (then, now))

    assert found("/a/python", "/b/python", [old], old) == ()  # the environment was moved
    told = ("sglang is another: 0.5.9 then, 0.5.10 now", "torch is another: none then, 2.13.0 now")
    assert found("/a/python", "/a/python", [{}, old], new) == told
    assert found("/a/python", "/a/python", [old, {**old, "sglang": "0.5.10"}], {**old, "sglang": "0.5.10"}) == (
        "sglang is another: 0.5.9 and 0.5.10 then, 0.5.10 now",
    )
    moved = "the interpreter is another: /a/python then, /b/python now"
    assert found("/a/python", "/b/python", [old], new) == (moved, *told)
    for then, now in (([], old), ([{}], old), ([old], {})):  # nobody can tell: then the path alone
        assert found("/a/python", "/b/python", then, now) == (moved,)
        assert found("/a/python", "/a/python", then, now) == ()


def test_what_was_measured_with_is_known_by_the_attempts_that_measured() -> None:
    job = planned()
    units = job.units[:4]
    attempts = [
        SweepAttempt(
            unit_id=unit.unit_id,
            attempt=0,
            run_id=f"s.{unit.unit_id}.0",
            block=0,
            phase="succeeded",
            points=(PointOutcome(point_id=unit.points[0], end=end),),
            started_unix_s=0.0,
            installed=installed,
        )
        for unit, end, installed in zip(
            units,
            ("measured", "measured", "failed", "measured"),
            ({"torch": "1"}, {"torch": "1"}, {"torch": "2"}, {"torch": "3"}),
            strict=True,
        )
    ]
    assert measured_with(job, attempts) == ({"torch": "1"}, {"torch": "3"})
    assert mixed(measured_with(job, attempts)) == ("torch was replaced on the way: 1, then 3",)
    assert mixed([{"torch": "1"}, {"torch": "1", "sglang": "2"}]) == ("sglang was replaced on the way: none, then 2",)
    assert mixed([{"torch": "1"}]) == mixed([]) == ()
    own = dataclasses.replace(units[3], changes_json=json.dumps({"server_python": "/c/python"}))
    assert measured_with(dataclasses.replace(job, units=(*units[:3], own)), attempts) == ({"torch": "1"},)


def test_on_a_login_node_no_prefix_is_entered_that_would_wait_for_a_node() -> None:
    inside = to_json(BenchJob(model="/m", exec_prefix=("srun",)))
    for scheduler, job_json, is_asked in (
        ("slurm", inside, False),
        ("slurm", to_json(BenchJob(model="/m")), True),
        (None, inside, True),
    ):
        host = HostConfig(ssh="c1", scheduler=scheduler, environment={"A": "1"})
        session = pipeline.session("c1", Config(hosts={"c1": host}), lambda _: None, accept_new=False)
        asked = question_of(session, job_json, "/venv/bin/python", AROUND.identity)
        assert (asked.job_json == job_json, asked.job_json is None) == (is_asked, not is_asked)
        assert (asked.python, asked.environment, asked.paths) == ("/venv/bin/python", {"A": "1"}, ("/m",))
