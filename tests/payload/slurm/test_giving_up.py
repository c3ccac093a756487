"""When the elements of an array stop measuring: by how those units ended that ended last, not those that began last."""

from pathlib import Path

import pytest

from remote_payload.rundir import RunDir
from remote_payload.schema import PointOutcome, SweepAttempt, SweepJob
from remote_payload.schema.sweep import PointEnd
from remote_payload.slurm.giving_up import failures_in_a_row, is_left_out, left_out
from remote_payload.sweep.ledger import Ledger, read_ledger, unit_folder
from tests.payload.sweep.test_sweep import sweep_of

JOB = sweep_of(*({"duration_s": 0.1 + at} for at in range(6)), stop_after_failures=2)


def attempt(unit: int, end: PointEnd, finished_s: float | None, number: int = 0) -> SweepAttempt:
    return SweepAttempt(
        unit_id=f"u{unit}",
        attempt=number,
        run_id=f"s1.u{unit}.{number}",
        block=0,
        phase="running" if finished_s is None else "succeeded" if end == "measured" else "failed",
        points=(PointOutcome(point_id=f"p{unit}", end=end),),
        started_unix_s=1.0,
        finished_unix_s=finished_s,
    )


@pytest.mark.parametrize(
    ("attempts", "in_a_row"),
    [
        ([], 0),
        ([attempt(0, "failed", 5), attempt(1, "failed", 6)], 2),
        ([attempt(0, "failed", 5), attempt(1, "measured", 6)], 0),
        ([attempt(0, "failed", 7), attempt(1, "measured", 6)], 1),  # the order of their ends, not of their starts
        ([attempt(0, "failed", 5), attempt(1, "failed", 6), attempt(2, "not_reached", None)], 2),
        ([attempt(0, "failed", 5), attempt(0, "measured", 8, 1), attempt(1, "failed", 6)], 0),
    ],
)
def test_units_in_a_row_that_measured_nothing(attempts: list[SweepAttempt], in_a_row: int) -> None:
    assert failures_in_a_row(JOB, attempts) == in_a_row


def test_a_unit_that_is_to_be_tried_again_has_not_ended() -> None:
    job = SweepJob(**{**JOB.__dict__, "retries": 1})
    failed = [attempt(0, "failed", 5), attempt(1, "failed", 6)]
    assert failures_in_a_row(job, failed) == 0
    assert failures_in_a_row(job, [*failed, attempt(0, "failed", 9, 1)]) == 1


def test_a_unit_is_left_out_once_and_so_is_every_later_one(tmp_path: Path) -> None:
    sweep = RunDir(tmp_path / "s1")

    def end(one: SweepAttempt) -> None:
        Ledger(unit_folder(sweep, one.unit_id)).write(one, durable=False)

    end(attempt(0, "failed", 5))
    assert not left_out(sweep, JOB, JOB.units[1], "s1.u1.0")
    end(attempt(1, "failed", 6))
    assert left_out(sweep, JOB, JOB.units[2], "s1.u2.0")
    end(attempt(3, "measured", 9))  # it ran already
    assert not left_out(sweep, JOB, JOB.units[3], "s1.u3.0")  # and goes on if Slurm starts it again
    assert left_out(sweep, JOB, JOB.units[2], "s1.u2.0")
    assert left_out(sweep, JOB, JOB.units[4], "s1.u4.0")
    told = {one.unit_id: one for one in read_ledger(sweep)}
    assert [name for name, one in told.items() if is_left_out(one)] == ["u2", "u4"]
    assert told["u2"].failure is not None
    assert told["u2"].failure.message == "not run: 2 units in a row measured nothing (`stop_after_failures`)"
    assert not left_out(sweep, SweepJob(**{**JOB.__dict__, "stop_after_failures": None}), JOB.units[5], "s1.u5.0")
