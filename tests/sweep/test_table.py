"""The table of a sweep from measurements, half-way and whole; what is confirmed, and what is not."""

import dataclasses
import json
from typing import Any

from orchestrator.compare.stats import Estimate
from orchestrator.config import Config
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series
from orchestrator.report.sweep_table import table_json, table_text
from orchestrator.sweep.confirmation import best_configurations, confirm
from orchestrator.sweep.file import from_table
from orchestrator.sweep.plan import Circumstances, plan
from orchestrator.sweep.remaining import remaining
from orchestrator.sweep.standing import progress_of
from orchestrator.sweep.table import Row, SweepTable, table
from orchestrator.sweeping import planning
from remote_payload.schema import (
    BenchJob,
    Failure,
    PointOutcome,
    SweepAttempt,
    SweepJob,
    SweepPoint,
    SweepUnit,
    job_of_unit,
)

BASE = {"model": "/m", "draft": "/d", "eagle_topk": 1, "concurrency": [1, 4]}
FILE: dict[str, Any] = {"job": "bench", "repeats": 3, "base": BASE, "grid": {"num_steps": [1, 2, 3, 4, 6]}}
SPEED = {None: 90.0, 1: 130.0, 2: 150.0, 3: 230.0, 4: 160.0, 6: 155.0}
"""Tokens a second by steps; six steps have accepted 3.0 a verify."""


def planned() -> SweepJob:
    file = from_table(FILE, "s.toml")
    wanted = planning.wanted(file, {}, Config(), "gpu1")
    return plan(file, wanted.base, wanted.expanded, Circumstances(payload_sha256="a" * 64))


def measurement(job: BenchJob, users: int, run_id: str, luck: float) -> Measurement:
    speed = SPEED[job.num_steps] * users**0.5 * luck
    words = {"unit": "tok/s", "definition": "output tokens / seconds", "level": "run"}
    series = [Series(metric="output_throughput_tok_s", **words, keys=(f"{run_id}#0",), clusters=(run_id,), y=(speed,))]
    histogram: tuple[int, ...] = ()
    if job.speculates:
        histogram = (10, 10, 20, 60)[: (job.num_steps or 0) + 1]
        keys = tuple(f"p{n}" for n in range(8))
        accept = {"metric": "accept_length_pooled", "unit": "tokens", "definition": "1 + accepted / verify steps"}
        series.append(Series(**accept, level="prompt", keys=keys, y=(30.0,) * 8, x=(10.0,) * 8))
    side = "spec" if job.speculates else "plain"
    case = (Fact(name="side", value=side), Fact(name="concurrency", value=str(users)))
    arguments = (Fact(name="model_path", value="/m"),)
    return Measurement(case=case, series=tuple(series), arguments=arguments, histogram=histogram)


def repeated(item: Measurement, repeats: int) -> Measurement:
    """The same with its figure of speed measured so often on its one start, a little apart."""
    speed, *rest = item.series
    (start,) = speed.clusters
    values = tuple(speed.y[0] * (1 + 0.001 * at) for at in range(repeats))
    keys = tuple(f"{start}#{at}" for at in range(repeats))
    return dataclasses.replace(
        item, series=(dataclasses.replace(speed, keys=keys, clusters=(start,) * repeats, y=values), *rest)
    )


def night(job: SweepJob, until: int, failing: str = "", repeats: int = 1) -> SweepTable:
    """The first `until` units measured, `failing` one not."""
    attempts, sets = [], {}
    for number, unit in enumerate(job.units[:until]):
        run_id = f"night.{unit.unit_id}.0"
        asked = job_of_unit(job, unit)
        assert isinstance(asked, BenchJob)
        end = "failed" if unit.unit_id == failing else "measured"
        attempts.append(attempt(unit, run_id, end))
        luck = 1 + 0.01 * ((number * 7) % 5 - 2)
        found = tuple(repeated(measurement(asked, users, run_id, luck), repeats) for users in asked.concurrency)
        if end == "measured":
            sets[run_id] = MeasurementSet(run_id=run_id, origin="own", tool="t", job_kind="bench", measurements=found)
    phase = "running" if until < len(job.units) else "succeeded"
    return table("night", "gpu1", job, progress_of(job, attempts, phase), sets)


def attempt(unit: SweepUnit, run_id: str, end: str) -> SweepAttempt:
    return SweepAttempt(
        unit_id=unit.unit_id,
        attempt=0,
        run_id=run_id,
        block=unit.block,
        phase="succeeded" if end == "measured" else "failed",
        points=tuple(PointOutcome(point_id=point, end=end) for point in unit.points),  # type: ignore[arg-type]
        failure=None if end == "measured" else Failure(kind="server", message="the server died"),
        started_unix_s=0.0,
        finished_unix_s=60.0,
    )


def test_half_way_what_cannot_win_is_proposed_and_the_rest_is_waited_for() -> None:
    job = planned()
    order = {unit.unit_id: job_of_unit(job, unit).__dict__["num_steps"] for unit in job.units}
    assert list(order.values())[:6] == [None, 1, 2, 3, 4, 6]
    is_deep = {unit.unit_id: order[unit.unit_id] not in (1, 2) for unit in job.units}
    deep_first = dataclasses.replace(job, units=tuple(sorted(job.units, key=lambda unit: not is_deep[unit.unit_id])))
    assert night(deep_first, 4).proposals == ()  # one start of each has no interval, however often it was measured
    once = night(deep_first, 4, repeats=5)
    figures = [row.figures["output_throughput_tok_s"] for row in once.rows if row.measured]
    assert {(one.low, one.high, one.rows) for one in figures} == {(None, None, 1)}
    assert once.proposals == ()
    half = night(deep_first, 12)
    assert {one.point_id for one in half.proposals} == {
        row.point.point_id for row in half.rows if '"num_steps": 1' in row.point.changes_json
    }
    text = table_text(half, 110)
    assert "Proposed to leave out (`sweep resume night --prune` does):" in text
    assert "points  24 of 36 measured, 12 waiting; about 6 min left, by those so far" in text
    hopeless = {one.point_id: one.reason for one in half.proposals}
    left = remaining(deep_first, "night", half.progress, hopeless=hopeless)
    assert not {point for unit in left.units for point in unit.points} & set(hopeless)
    assert [one.reason for one in left.skipped] == list(hopeless.values())


def test_the_whole_table_and_its_best_three_measured_afresh() -> None:
    job = planned()
    whole = night(job, len(job.units), failing="u0004")
    assert whole.progress.counts == {"measured": 34, "failed": 2}
    row = next(row for row in whole.rows if '"num_steps": 3, "concurrency": 4' in row.point.changes_json)
    assert (row.measured, row.figures["output_throughput_tok_s"].rows) == (3, 3)
    assert row.against_plain is not None
    assert row.against_plain.verdict == "improved"
    text = table_text(whole, 110)
    assert "2 of 3" in text
    assert text.count("failed: num_steps 4") == 2
    assert "recommend" not in text.lower()  # the runs that chose the best do not judge it
    chosen = best_configurations(whole)
    assert list(chosen) == ['{"num_steps": 3}', '{"num_steps": 4}', '{"num_steps": 6}']
    fresh = confirm(job, "night", chosen, blocks=3, seed=1)
    assert fresh.confirms == "night"
    assert len(fresh.units) == 3 * 4  # plain decoding and three, each with both loads
    told = {unit.unit_id: job_of_unit(fresh, unit) for unit in fresh.units}
    assert all(isinstance(one, BenchJob) and one.concurrency == (1, 4) for one in told.values())
    confirmed = night(fresh, len(fresh.units))
    text = table_text(confirmed, 110)
    assert "From these fresh starts alone (they confirm night):" in text
    assert text.count("take num_steps 3") == 2
    assert "in every block" not in text
    one_failed = table_text(night(fresh, len(fresh.units), failing="u0000"), 110)
    assert "2 of its 8 points are not measured in every block" in one_failed  # both loads of that start
    drifted = night(dataclasses.replace(fresh, drift=("the tool's payload is another",)), 1)
    assert "DRIFT: the tool's payload is another; earlier and later" in table_text(drifted, 110)
    value = table_json(confirmed)
    best = [row for row in confirmed.rows if '"num_steps": 3' in row.point.changes_json]
    assert [one["point_id"] for one in value["recommended"]] == [row.point.point_id for row in best]


def gained(like: Row, changes: str, gain: float | None) -> Row:
    """A point that gains so much against plain decoding; None = it failed."""
    assert like.against_plain is not None
    told = None if gain is None else dataclasses.replace(like.against_plain, change=Estimate(value=gain, rows=3))
    return Row(point=SweepPoint(point_id=changes, changes_json=changes), standings=(), figures={}, against_plain=told)


def slower(row: Row) -> Row:
    """The same, surely slower than plain decoding."""
    assert row.against_plain is not None
    return dataclasses.replace(row, against_plain=dataclasses.replace(row.against_plain, verdict="regressed"))


def test_the_best_of_each_load_is_confirmed_beside_the_best_three_of_all() -> None:
    """Gains at 1 and at 32 users: `a` is the best alone, and third to none over both; `f` failed at 32, `g` at 1."""
    gains = {"a": (2.0, -0.6), "b": (0.5, 0.5), "c": (0.6, 0.3), "d": (0.4, 0.4), "e": (0.1, 0.1), "f": (0.9, None)}
    gains["g"] = (None, 0.6)
    whole = night(planned(), 12)
    like = next(row for row in whole.rows if row.against_plain is not None)
    rows = [
        gained(like, json.dumps({"draft": name, "concurrency": users}), gain)
        for name, some in gains.items()
        for users, gain in zip((1, 32), some, strict=True)
    ]
    job = dataclasses.replace(whole.job, points=tuple(row.point for row in rows))
    whole = dataclasses.replace(whole, job=job, rows=tuple(rows))
    chosen = [json.loads(one)["draft"] for one in best_configurations(whole)]
    assert chosen == ["b", "c", "d", "a", "g"]  # 1.5 * 1.5, 1.6 * 1.3, 1.4 * 1.4; 3.0 alone, 1.6 alone
    # What surely lost wherever it was measured is not measured again, unless nothing else is left.
    lost = tuple(slower(row) if row is rows[0] or '"draft": "b"' in row.point.changes_json else row for row in rows)
    left = best_configurations(dataclasses.replace(whole, rows=lost))
    assert [json.loads(one)["draft"] for one in left] == ["c", "d", "a", "g"]  # `a` lost at one of its loads alone
    alone = tuple(row for row in lost if '"draft": "b"' in row.point.changes_json)
    assert len(best_configurations(dataclasses.replace(whole, rows=alone))) == 1
    # A point that was left out at one load does not pass for the mean over both.
    left_out = tuple(row for row in rows if row.point.changes_json != '{"draft": "f", "concurrency": 32}')
    assert len(left_out) == len(rows) - 1
    assert [
        json.loads(one)["draft"] for one in best_configurations(dataclasses.replace(whole, rows=left_out))
    ] == chosen


def test_a_chain_whose_server_drafted_otherwise_tells_nothing_of_other_depths() -> None:
    half = night(planned(), 18)
    assert len(half.chains) == 12
    otherwise = {"speculative_num_steps": "1"}
    rows = tuple(
        dataclasses.replace(row, served=otherwise if '"num_steps": 6' in row.point.changes_json else {})
        for row in half.rows
    )
    assert len(dataclasses.replace(half, rows=rows).chains) == 10
    assert half.rows[0].served == {"model_path": "/m"}  # as its server told it


def test_nothing_is_recommended_of_one_start_each() -> None:
    job = planned()
    one_block = confirm(job, "night", ['{"num_steps": 3}'], blocks=1, seed=0)
    text = table_text(night(one_block, len(one_block.units)), 110)
    assert text.count("no recommendation, none is surely better than plain decoding") == 2


def test_every_definition_of_a_figure_is_told_and_no_comparison_where_there_is_none() -> None:
    job = planned()
    sets = {}
    for unit in job.units[:2]:
        asked = job_of_unit(job, unit)
        assert isinstance(asked, BenchJob)
        one = measurement(asked, 1, unit.unit_id, 1.0)
        series = dataclasses.replace(one.series[0], definition=f"as {unit.unit_id} counts")
        found = (dataclasses.replace(one, series=(series,)),)
        sets[unit.unit_id] = MeasurementSet(run_id="r", origin="own", tool="t", job_kind="bench", measurements=found)
    attempts = [attempt(unit, unit.unit_id, "measured") for unit in job.units[1:2]]
    text = table_text(table("night", "gpu1", job, progress_of(job, attempts, "running"), sets), 110)
    assert "tok/s: as u0001 counts" in text
    assert "against plain" not in text
    attempts.append(attempt(job.units[0], "u0000", "measured"))
    text = table_text(table("night", "gpu1", job, progress_of(job, attempts, "running"), sets), 110)
    assert "tok/s: as u0000 counts | as u0001 counts" in text
    assert "`eagle3-remote sweep confirm night`" in text


def test_what_was_never_run_is_told_with_why() -> None:
    """A sweep that `stop_after_failures` ended is one that succeeded: nothing else would say so."""
    job = dataclasses.replace(planned(), stop_after_failures=1)
    attempts = [attempt(job.units[0], "night.u0000.0", "failed")]
    stopped = table("night", "gpu1", job, progress_of(job, attempts, "succeeded"), {})
    text = table_text(stopped, 110)
    assert "not run: 34 measurements, `stop_after_failures` = 1: so many starts in a row measured nothing:" in text
    assert "    num_steps 1, concurrency 1, block 0\n" in text
    assert "    and 24 more; --json has them all" in text
    assert table_json(stopped)["not_run_because"].startswith("`stop_after_failures` = 1")
    cancelled = table("night", "gpu1", job, progress_of(job, attempts, "cancelled"), {})
    assert "not run: 34 measurements, the sweep ended before, cancelled:" in table_text(cancelled, 110)
    assert table_json(night(job, 2))["not_run_because"] is None
