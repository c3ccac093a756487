"""How a run ended, in a few words: what a notification carries, told by the host or by a laptop that sees the end."""

from collections.abc import Sequence
from typing import Literal

from remote_payload.schema.record import Record, from_json
from remote_payload.schema.run import RunSpec, RunState
from remote_payload.schema.sweep import SweepAttempt, SweepJob


class Ending(Record):
    """Nothing of the job's settings and no secret: it may go through anybody's hands."""

    run_id: str
    job_kind: str
    phase: str
    host: str
    """As this laptop calls it; told by the host, as the laptop does that launched the run, of old ones its own name."""
    told_by: Literal["host", "laptop"]
    text: str
    """One sentence for people."""
    failure: str | None = None
    exit_code: int | None = None
    signal: str | None = None
    started_unix_s: float | None = None
    finished_unix_s: float | None = None
    launched_by: str
    points: int | None = None
    """Of a sweep: how many measurements it is about, points times blocks; None = no sweep."""
    points_measured: int | None = None
    """How many of them were measured, by this sweep or one that it goes on with."""


def ending_of(
    spec: RunSpec,
    state: RunState,
    host: str,
    told_by: Literal["host", "laptop"],
    attempts: Sequence[SweepAttempt] = (),
) -> Ending:
    """The ending of a run that is over; `attempts` of a sweep."""
    failure = None if state.failure is None else state.failure.message
    took = ""
    if state.started_unix_s is not None and state.finished_unix_s is not None:
        took = f" after {_duration(state.finished_unix_s - state.started_unix_s)}"
    why = f": {failure}" if failure else ""
    points, measured = _points(spec, attempts) if spec.job_kind == "sweep" else (None, None)
    came_to = "" if points is None else f", {measured} of {points} points measured"
    return Ending(
        run_id=spec.run_id,
        job_kind=spec.job_kind,
        phase=state.phase,
        host=host,
        told_by=told_by,
        text=f"{spec.job_kind} {spec.run_id} on {host}: {state.phase.replace('_', ' ')}{took}{came_to}{why}",
        failure=failure,
        exit_code=state.exit_code,
        signal=state.signal,
        started_unix_s=state.started_unix_s,
        finished_unix_s=state.finished_unix_s,
        launched_by=spec.launched_by,
        points=points,
        points_measured=measured,
    )


def _points(spec: RunSpec, attempts: Sequence[SweepAttempt]) -> tuple[int, int]:
    """How many measurements a sweep is about, and how many there are."""
    job = from_json(SweepJob, spec.job_json)
    done = {(one.block, one.point_id) for one in job.done}
    wanted = done | {(unit.block, point_id) for unit in job.units for point_id in unit.points}
    measured = {(one.block, point.point_id) for one in attempts for point in one.points if point.end == "measured"}
    return len(wanted), len(wanted & (done | measured))


def _duration(seconds: float) -> str:
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
