"""`stop_after_failures` of a sweep that is an array: an element looks before it measures a unit, and may leave it out.

Elements run at the same time, so "in a row" is in the order in which units ended, by the clocks of their nodes; what
runs already when it is noticed runs on. Once a unit is left out every later one is.
"""

import time
from collections.abc import Iterable, Sequence

from remote_payload.rundir import RunDir
from remote_payload.schema import TERMINAL_PHASES, Failure, PointOutcome, SweepAttempt, SweepJob, SweepUnit
from remote_payload.sweep.ledger import Ledger, read_ledger, unit_folder
from remote_payload.sweep.wanted import Wanted


def left_out(sweep: RunDir, job: SweepJob, unit: SweepUnit, run_id: str) -> bool:
    """Whether the unit is not to be measured: that is written down, as of the run that it would be. Raises OSError."""
    limit = job.stop_after_failures
    if limit is None:
        return False
    known = read_ledger(sweep)
    own = [one for one in known if one.unit_id == unit.unit_id]
    if own:  # it began, or was left out, before Slurm started this element again
        return any(is_left_out(one) for one in own)
    if not any(is_left_out(one) for one in known) and failures_in_a_row(job, known) < limit:
        return False
    Ledger(unit_folder(sweep, unit.unit_id)).write(_attempt(unit, run_id, limit), durable=True)
    return True


def _attempt(unit: SweepUnit, run_id: str, limit: int) -> SweepAttempt:
    now_s = time.time()
    message = f"not run: {limit} units in a row measured nothing (`stop_after_failures`)"
    return SweepAttempt(
        unit_id=unit.unit_id,
        attempt=0,
        run_id=run_id,
        block=unit.block,
        phase="cancelled",
        points=tuple(PointOutcome(point_id=point, end="not_reached") for point in unit.points),
        failure=Failure(kind="job", message=message, hint="`sweep resume` measures its points"),
        started_unix_s=now_s,
        finished_unix_s=now_s,
    )


def is_left_out(attempt: SweepAttempt) -> bool:
    """Whether the line is that of a unit that was left out: nothing follows, and its points were never reached."""
    return attempt.phase == "cancelled" and all(one.end == "not_reached" for one in attempt.points)


def failures_in_a_row(job: SweepJob, attempts: Iterable[SweepAttempt]) -> int:
    """How many of the units that ended last measured nothing; a unit that is to be tried again has not ended. Pure."""
    by_unit: dict[str, list[SweepAttempt]] = {}
    for attempt in attempts:
        by_unit.setdefault(attempt.unit_id, []).append(attempt)
    points = {unit.unit_id: unit.points for unit in job.units}
    ended = [some for unit, some in by_unit.items() if unit in points and _is_over(points[unit], some, job.retries)]
    ended.sort(key=lambda some: max(one.finished_unix_s or one.started_unix_s for one in some))
    in_a_row = 0
    for some in reversed(ended):
        if any(point.end == "measured" for one in some for point in one.points):
            break
        in_a_row += 1
    return in_a_row


def _is_over(points: tuple[str, ...], attempts: Sequence[SweepAttempt], retries: int) -> bool:
    wanted = Wanted(points=points, retries=retries)
    for one in attempts:
        if one.phase not in TERMINAL_PHASES:
            return False
        wanted.settle(one.points)
    return not wanted.points
