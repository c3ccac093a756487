"""What a host says of a sweep is believed for the sweep's own runs and points alone."""

import pytest

from orchestrator.errors import ProtocolError
from orchestrator.sweeping.asking import require_own
from remote_payload.schema import PointOutcome, SelftestJob, SweepAttempt, SweepJob, SweepPoint, SweepUnit, to_json

UNIT = SweepUnit(unit_id="u0", block=0, changes_json="{}", points=("p0",), adopt="earlier.u0.0")
JOB = SweepJob(base_json=to_json(SelftestJob()), units=(UNIT,), points=(SweepPoint(point_id="p0", changes_json="{}"),))


def attempt(run_id: str, unit_id: str = "u0", point: str = "p0") -> SweepAttempt:
    return SweepAttempt(
        unit_id=unit_id,
        attempt=1,
        run_id=run_id,
        block=0,
        phase="succeeded",
        points=(PointOutcome(point_id=point, end="measured"),),
        started_unix_s=0.0,
    )


def test_its_own_runs_and_the_one_it_adopts() -> None:
    require_own("night", JOB, [attempt("night.u0.1"), attempt("earlier.u0.0")])


@pytest.mark.parametrize(
    "other",
    [attempt("standalone-1"), attempt("night.u0.2"), attempt("night.u9.1", "u9"), attempt("night.u0.1", point="p9")],
)
def test_no_others(other: SweepAttempt) -> None:
    with pytest.raises(ProtocolError, match="none of sweep `night`"):
        require_own("night", JOB, [other])
