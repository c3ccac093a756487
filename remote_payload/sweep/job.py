"""The sweep's worker: unit after unit, attempt after attempt, every end written down before the next begins.

A unit's crash is that unit's; the sweep ends early only when it is stopped, when the disk is full, or when so many
units in a row measured nothing that the job says to stop. Points it did not come to are told as not reached.
"""

import contextlib
import dataclasses
import signal
import time
from collections.abc import Callable
from pathlib import Path

from remote_payload import leftovers
from remote_payload.failure import JobFailure
from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.schema import (
    Event,
    Failure,
    PointOutcome,
    RunSpec,
    RunState,
    SchemaError,
    SweepAttempt,
    SweepJob,
    SweepUnit,
)
from remote_payload.software import Software
from remote_payload.sweep.ledger import Ledger, read_ledger
from remote_payload.sweep.outcome import ends_of_adopted, outcomes_of
from remote_payload.sweep.unit import Place, spec_of, start, until_over
from remote_payload.sweep.unit_ids import unit_run_id
from remote_payload.sweep.wanted import Wanted, job_for

Report = Callable[[Event], None]
LEFTOVER_GRACE_S, LOOK_S = 5.0, 0.05
FULL_IN_A_ROW = 2
"""One unit's result may be too large for the disk; where the next one's is, too, the disk is full."""


def run(job: SweepJob, sweep: RunDir, spec: RunSpec, archive: Path, report: Report) -> None:
    """Run every unit; leaves `units.jsonl` in the result folder. Raises JobFailure when the disk is full, OSError."""
    driver = _Driver(job, Place(sweep=sweep, spec=spec, archive=archive), report)
    signal.signal(signal.SIGTERM, driver.stop)
    driver.run()


class _Driver:
    """One sweep on its way."""

    def __init__(self, job: SweepJob, place: Place, report: Report) -> None:
        self._job, self._place, self._report = job, place, report
        self._ledger = Ledger(place.sweep.result)
        self._is_stopped = False
        self._software = Software()
        self._settled = 0
        self._total = sum(len(unit.points) for unit in job.units)
        self._empty_in_a_row = self._full_in_a_row = 0

    def stop(self, *_: object) -> None:
        """End the unit under way, and begin no other: the handler of SIGTERM."""
        self._is_stopped = True

    def run(self) -> None:
        """Every unit in order. Raises JobFailure."""
        self._report(
            Event(time_unix_s=time.time(), kind="phase", name="sweep", message=f"{len(self._job.units)} units")
        )
        self._progress("")
        self._end_leftovers()
        for unit in self._job.units:
            if self._is_stopped:
                return
            if self._gives_up():
                self._warn("stopped", f"{self._empty_in_a_row} units in a row measured nothing; the rest is not run")
                return
            self._run_unit(unit)

    def _end_leftovers(self) -> None:
        """What lives of an earlier sweep's units whose supervisor was killed would run beside this one's."""
        earlier = self._job.resumes or self._job.confirms
        for attempt in () if earlier is None else read_ledger(self._place.run(earlier)):
            run = self._place.run(attempt.run_id)
            with contextlib.suppress(Refusal):
                state = current_state(run)
                if state is not None and state.phase == "lost":
                    leftovers.end(run, LEFTOVER_GRACE_S, LOOK_S)

    def _gives_up(self) -> bool:
        limit = self._job.stop_after_failures
        return limit is not None and self._empty_in_a_row >= limit

    def _run_unit(self, unit: SweepUnit) -> None:
        wanted = Wanted(points=unit.points, retries=self._job.retries)
        attempt, ended = 0, None
        adopted = () if unit.adopt is None else self._adopted(unit, unit.adopt)
        wanted.points = tuple(point for point in unit.points if point not in adopted)
        measured = len(adopted)
        while wanted.points and not self._is_stopped:
            ended = self._attempt(unit, wanted.points, attempt)
            wanted.settle(ended.points)
            measured += sum(outcome.end == "measured" for outcome in ended.points)
            self._settled = min(self._total, self._settled + len(ended.points) - len(wanted.points))
            self._progress(_in_words(ended))
            attempt += 1
        self._empty_in_a_row = 0 if measured else self._empty_in_a_row + 1
        is_full = ended is not None and not measured and ended.failure is not None and ended.failure.kind == "disk_full"
        self._full_in_a_row = self._full_in_a_row + 1 if is_full else 0
        if ended is not None and self._full_in_a_row == FULL_IN_A_ROW:
            raise JobFailure(ended.failure or Failure(kind="disk_full", message="the disk is full"))

    def _adopted(self, unit: SweepUnit, run_id: str) -> tuple[str, ...]:
        """The points of this unit that a run of an earlier sweep, waited for, measured."""
        run = self._place.run(run_id)
        try:
            if current_state(run) is None:
                return ()
            self._warn("adopted", f"{unit.unit_id}: waiting for {run_id}, which an earlier sweep began")
            began = self._line(unit, -1, run_id, unit.points, time.time())
            state = until_over(run, lambda: self._is_stopped)
            if state.phase == "lost":
                leftovers.end(run, LEFTOVER_GRACE_S, LOOK_S)
            ended = self._end(began, state, ends_of_adopted(unit, state, run))
        except Refusal:
            return ()
        measured = tuple(outcome.point_id for outcome in ended.points if outcome.end == "measured")
        self._settled += len(measured)
        self._progress(f"{unit.unit_id}: {len(measured)} of {len(unit.points)} points measured by {run_id}")
        return measured

    def _attempt(self, unit: SweepUnit, points: tuple[str, ...], attempt: int) -> SweepAttempt:
        """Start, wait, write down. What keeps a unit from starting is its failure, but for a full disk."""
        run_id = unit_run_id(self._place.spec.run_id, unit.unit_id, attempt)
        began_unix_s = time.time()
        try:
            job, points = job_for(self._job, unit, points)
            began = self._line(unit, attempt, run_id, points, began_unix_s)
            began = dataclasses.replace(began, installed=self._software.installed_for(job))
            run = start(self._place, spec_of(self._place, self._job, unit, attempt, job))
            state = until_over(run, lambda: self._is_stopped)
            if state.phase == "lost":  # its supervisor was killed, and what it looked after would meet the next unit
                leftovers.end(run, LEFTOVER_GRACE_S, LOOK_S)
        except Refusal as refusal:
            if refusal.code == "disk_full":
                raise self._full_before(began, refusal) from None
            state = _unstarted(run_id, refusal.message, refusal.hint)
            return self._end(began, state, _all_failed(points))
        except SchemaError as error:  # a job that this payload does not take
            began = self._line(unit, attempt, run_id, points, began_unix_s)
            return self._end(began, _unstarted(run_id, str(error), None), _all_failed(points))
        return self._end(began, state, outcomes_of(points, job, state, run))

    def _full_before(self, began: SweepAttempt, refusal: Refusal) -> JobFailure:
        """A unit had no room to start, so none has: told of this one, as far as there is room for that."""
        failure = Failure(kind="disk_full", message=refusal.message, hint=refusal.hint)
        told = {**began.__dict__, "phase": "failed", "failure": failure, "finished_unix_s": time.time()}
        with contextlib.suppress(OSError):
            self._ledger.write(SweepAttempt(**told), durable=True)
        return JobFailure(failure)

    def _line(
        self, unit: SweepUnit, attempt: int, run_id: str, points: tuple[str, ...], began_unix_s: float
    ) -> SweepAttempt:
        began = SweepAttempt(
            unit_id=unit.unit_id,
            attempt=max(0, attempt),
            run_id=run_id,
            block=unit.block,
            phase="starting",
            points=tuple(PointOutcome(point_id=point, end="not_reached") for point in points),
            started_unix_s=began_unix_s,
        )
        self._ledger.write(began, durable=False)
        return began

    def _end(self, began: SweepAttempt, state: RunState, points: tuple[PointOutcome, ...]) -> SweepAttempt:
        values = {**began.__dict__, "phase": state.phase, "failure": state.failure, "points": points}
        ended = SweepAttempt(**{**values, "finished_unix_s": state.finished_unix_s or time.time()})
        self._ledger.write(ended, durable=True)
        if state.failure is not None:
            self._warn(ended.unit_id, f"{ended.run_id}: {state.phase}: {state.failure.message}")
        return ended

    def _progress(self, message: str) -> None:
        self._report(
            Event(
                time_unix_s=time.time(),
                kind="progress",
                name="points",
                message=message,
                done=self._settled,
                total=self._total,
            )
        )

    def _warn(self, name: str, message: str) -> None:
        self._report(Event(time_unix_s=time.time(), kind="warning", name=name, message=message))


def _unstarted(run_id: str, message: str, hint: str | None) -> RunState:
    failure = Failure(kind="supervisor", message=f"the unit could not be started: {message}", hint=hint)
    return RunState(run_id=run_id, sequence=0, phase="failed", failure=failure)


def _all_failed(points: tuple[str, ...]) -> tuple[PointOutcome, ...]:
    return tuple(PointOutcome(point_id=point, end="failed") for point in points)


def _in_words(ended: SweepAttempt) -> str:
    measured = sum(outcome.end == "measured" for outcome in ended.points)
    return f"{ended.unit_id}: {ended.phase}, {measured} of {len(ended.points)} points measured"
