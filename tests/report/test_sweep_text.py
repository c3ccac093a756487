"""What a sweep says of points that were never run: each with its own reason, where it has one."""

import dataclasses

from orchestrator.report.sweep_text import progress_text
from orchestrator.sweep.standing import progress_of
from remote_payload.schema import Failure, PointOutcome, SweepAttempt
from tests.sweep.test_remaining import planned


def test_a_unit_that_had_no_room_to_start_says_so() -> None:
    job = planned()
    unit = job.units[0]
    attempt = SweepAttempt(
        unit_id=unit.unit_id,
        attempt=0,
        run_id=f"night.{unit.unit_id}.0",
        block=unit.block,
        phase="failed",
        points=tuple(PointOutcome(point_id=point, end="not_reached") for point in unit.points),
        failure=Failure(kind="disk_full", message="no room to create its folder"),
        started_unix_s=1.0,
        finished_unix_s=2.0,
    )
    text = " ".join(progress_text("night", "gpu1", job, progress_of(job, [attempt], "failed"), 100).split())
    assert f"block {unit.block}: no room to create its folder" in text
    assert text.count("no room") == len(unit.points)


def test_a_unit_that_was_taken_back_into_the_queue_waits() -> None:
    job = planned()
    unit = job.units[0]
    attempt = SweepAttempt(
        unit_id=unit.unit_id,
        attempt=0,
        run_id=f"night.{unit.unit_id}.0",
        block=unit.block,
        phase="queued",
        points=tuple(PointOutcome(point_id=point, end="not_reached") for point in unit.points),
        started_unix_s=1.0,
    )
    assert progress_of(job, [attempt], "running").counts["running"] == 0


def test_a_unit_that_was_left_out_is_not_run_while_others_go_on() -> None:
    job = dataclasses.replace(planned(), stop_after_failures=2)
    one, other = job.units[:2]
    began = SweepAttempt(
        unit_id=one.unit_id,
        attempt=0,
        run_id=f"night.{one.unit_id}.0",
        block=one.block,
        phase="failed",
        points=tuple(PointOutcome(point_id=point, end="failed") for point in one.points),
        started_unix_s=10.0,
        finished_unix_s=20.0,
    )
    never = dataclasses.replace(
        began,
        unit_id=other.unit_id,
        run_id=f"night.{other.unit_id}.0",
        block=other.block,
        phase="cancelled",
        points=tuple(PointOutcome(point_id=point, end="not_reached") for point in other.points),
        failure=Failure(kind="job", message="2 units in a row measured nothing"),
        started_unix_s=20.0,
        finished_unix_s=20.0,
    )
    progress = progress_of(job, [began, never], "running")
    assert progress.counts["not run"] == len(other.points)
    waiting = progress.counts["waiting"]
    assert progress.left_s == 10.0 / len(one.points) * waiting  # what never began took no time, and tells of none
    text = " ".join(progress_text("night", "gpu1", job, progress, 100).split())
    assert "`stop_after_failures` = 2: so many starts in a row measured nothing" in text
    assert "block 0: 2 units in a row measured nothing" in text
