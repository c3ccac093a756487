"""How long a sweep may take, by runs of other settings."""

import dataclasses
from pathlib import Path

import pytest

from orchestrator.estimating import Estimate, Size, estimate, size_of, unit_bounds
from orchestrator.store import Store
from remote_payload.schema import BenchJob, SelftestJob, SweepJob, SweepPoint, SweepUnit, to_json
from remote_payload.schema.run import ResourceUse
from tests.support.made_runs import made_run


def sweep(duration_s: float, units: int) -> SweepJob:
    return SweepJob(
        base_json=to_json(SelftestJob(duration_s=duration_s)),
        units=tuple(SweepUnit(unit_id=f"u{at:04d}", block=at, changes_json="{}", points=("p",)) for at in range(units)),
        points=(SweepPoint(point_id="p", changes_json="{}"),),
    )


def test_runs_of_six_seconds_say_little_of_points_of_one(tmp_path: Path) -> None:
    store = Store(home=tmp_path, project=None)
    for number in range(3):
        run = made_run(f"t{number}")
        spec = dataclasses.replace(run.spec, job_kind="selftest", job_json=to_json(SelftestJob(duration_s=6.0)))
        assert run.state is not None
        use = ResourceUse(user_cpu_s=0.1, system_cpu_s=0.1, max_rss_bytes=1, wall_s=6.1)
        record = dataclasses.replace(run, spec=spec, state=None)
        store.begin(record)
        store.update(dataclasses.replace(record, state=dataclasses.replace(run.state, resource_use=use)))
    short = estimate(sweep(1.0, 12), "gpu1", store)
    assert short.seconds == pytest.approx(12 * 6.1)
    assert short.least_s == pytest.approx(12 * 6.1 / 6)
    assert short.in_words == "12 s to 73 s, from 3 earlier runs of other settings"
    assert estimate(sweep(6.0, 12), "gpu1", store).in_words == "about 73 s, from 3 earlier runs"
    assert estimate(sweep(6.0, 12), "gpu2", store).in_words.startswith("unknown")


def test_the_time_of_starts_and_work_lies_between_the_bounds() -> None:
    """300 s a start and 2 s a unit of work, and no run alike: the truth is within; one that is alike stands alone."""
    runs = [Size(starts=1, work=100.0, wall_s=500.0), Size(starts=2, work=1000.0, wall_s=2600.0)]
    for work in (10.0, 250.0, 2000.0):
        for run in runs:
            least, most = unit_bounds(Size(starts=1, work=work), [run])
            assert least <= 300 + 2 * work <= most
    assert unit_bounds(Size(starts=1, work=100.0), runs) == (500.0, 500.0)
    assert unit_bounds(Size(starts=2, work=None), runs[:1]) == (1000.0, 1000.0)


def test_the_work_of_a_served_benchmark_has_its_tokens_requests_and_loads() -> None:
    base = BenchJob(model="/m", draft="/d", max_new_tokens=100, requests=40)
    work = size_of(base).work
    assert work == 4000
    assert size_of(dataclasses.replace(base, max_new_tokens=200)).work == 2 * work
    assert size_of(dataclasses.replace(base, requests=80)).work == 2 * work
    assert size_of(dataclasses.replace(base, concurrency=(1, 4))).work == 1.25 * work
    pair = size_of(dataclasses.replace(base, with_baseline=True, repeats=3))
    assert (pair.starts, pair.work) == (6, 6 * work)
    assert Estimate(seconds=100.0, least_s=90.0, runs=1).in_words == "about 100 s, from 1 earlier run"
