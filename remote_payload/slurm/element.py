"""One element of a sweep's array: its unit, attempt after attempt, each an ordinary run supervised in this process.

Elements run at the same time on several nodes and write nothing that another one writes: each unit has a ledger of its
own, below `result/units/`. What an element that Slurm started again finds settled there is not run again.
"""

import dataclasses
import time

from remote_payload.end_told import tell_the_end
from remote_payload.rundir import RunDir, write_atomically
from remote_payload.runstate import advance, read_spec, read_state
from remote_payload.schema import (
    TERMINAL_PHASES,
    Failure,
    PointOutcome,
    RunSpec,
    RunState,
    SchemaError,
    SelftestJob,
    SweepAttempt,
    SweepJob,
    SweepUnit,
    job_from_json,
    to_json,
)
from remote_payload.slurm.elements import elements_of
from remote_payload.slurm.giving_up import left_out
from remote_payload.slurm.settle import is_all_told, settle_sweep
from remote_payload.slurm.taking_up import Here, take_up
from remote_payload.sweep.ledger import Ledger, read_unit_ledger, unit_folder
from remote_payload.sweep.outcome import outcomes_of
from remote_payload.sweep.unit import Place, spec_of
from remote_payload.sweep.unit_ids import unit_run_id
from remote_payload.sweep.wanted import Wanted, job_for


class Element:
    """The units that fall to one element."""

    def __init__(self, sweep: RunDir, spec: RunSpec, job: SweepJob, here: Here, values: dict[str, str]) -> None:
        self._sweep, self._job, self._here, self._values = sweep, job, here, values
        self._place = Place(sweep=sweep, spec=spec, archive=here.archive)

    def run(self, index: int) -> int:
        """Every unit of this element; the exit code is 0 where all were measured."""
        stride = elements_of(self._place.spec) or 1
        measured = True
        for unit in self._job.units[index::stride]:
            if self._sweep.cancel.exists():
                return 1
            if left_out(self._sweep, self._job, unit, unit_run_id(self._place.spec.run_id, unit.unit_id, 0)):
                measured = False
                continue
            ended = self._unit(unit)
            if ended is None:  # Slurm starts the job again, or its time is up
                return 1
            measured = measured and ended
        if self._here.log.exists() and not self._here.log.stat().st_size:
            self._here.log.unlink()
        if is_all_told(self._sweep):  # nobody need ask for the sweep to have its end; who sees too little leaves it so
            settle_sweep(self._sweep, {})
            tell_the_end(self._sweep, self._place.spec)
        return 0 if measured else 1

    def _unit(self, unit: SweepUnit) -> bool | None:
        """Whether every point was measured; None = the element is to end."""
        wanted = Wanted(points=unit.points, retries=self._job.retries)
        attempt, unfinished = 0, None
        for known in read_unit_ledger(self._sweep, unit.unit_id):
            if known.phase in TERMINAL_PHASES:
                wanted.settle(known.points)
                attempt = known.attempt + 1
            else:
                unfinished = known
        if unfinished is not None:
            attempt = unfinished.attempt
        ledger = Ledger(unit_folder(self._sweep, unit.unit_id))
        ends: dict[str, str] = {}
        while wanted.points:
            ended, goes_on = self._attempt(ledger, unit, wanted.points, attempt)
            if ended is None:
                return None
            wanted.settle(ended.points)
            ends |= {outcome.point_id: outcome.end for outcome in ended.points}
            if not goes_on:
                return None
            attempt += 1
        return all(end == "measured" for end in ends.values())

    def _attempt(
        self, ledger: Ledger, unit: SweepUnit, points: tuple[str, ...], attempt: int
    ) -> tuple[SweepAttempt | None, bool]:
        """One attempt written down, and whether a further one may follow; None = Slurm has not decided its end."""
        run_id = unit_run_id(self._place.spec.run_id, unit.unit_id, attempt)
        try:
            job, points = job_for(self._job, unit, points)
        except SchemaError as error:  # a job that this payload does not take
            failure = Failure(kind="supervisor", message=f"the unit could not be started: {error}")
            refused = RunState(run_id=run_id, sequence=0, phase="failed", failure=failure)
            ends = tuple(PointOutcome(point_id=point, end="failed") for point in points)
            return self._end(ledger, self._begin(ledger, unit, attempt, run_id, points), refused, ends), True
        began = self._begin(ledger, unit, attempt, run_id, points)
        if not isinstance(job, SelftestJob):  # which needs nothing that is installed
            from remote_payload.software import Software  # noqa: PLC0415 - to ask costs as much as to run it

            began = dataclasses.replace(began, installed=Software().installed_for(job))
        run = self._place.run(run_id)
        spec, before = self._claimed(run, spec_of(self._place, self._job, unit, attempt, job))
        state: RunState | None = before
        if not before.is_terminal:  # else it ended, and the node died before that was written down
            state = take_up(run, spec, self._values, self._here, before, sweep=self._sweep)
        if state is None or not state.is_terminal:
            return None, False
        told = outcomes_of(points, job_from_json(spec.job_json), state, run)
        goes_on = state.phase != "timed_out" or state.note is None or "time limit" not in state.note
        return self._end(ledger, began, state, told), goes_on

    def _claimed(self, run: RunDir, spec: RunSpec) -> tuple[RunSpec, RunState]:
        """The unit's run directory with spec and state: a new one's, or those of an attempt that was cut off."""
        run.result.mkdir(mode=0o700, parents=True, exist_ok=True)
        if run.spec.exists():
            spec = read_spec(run)
        else:
            write_atomically(run.spec, to_json(spec).encode("ascii"))
        state = read_state(run)
        if state is None:
            first = RunState(run_id=spec.run_id, sequence=0, phase="queued", slurm=self._here.job)
            state = advance(run, first, durable=False)
        return spec, state

    def _begin(
        self, ledger: Ledger, unit: SweepUnit, attempt: int, run_id: str, points: tuple[str, ...]
    ) -> SweepAttempt:
        began = SweepAttempt(
            unit_id=unit.unit_id,
            attempt=attempt,
            run_id=run_id,
            block=unit.block,
            phase="starting",
            points=tuple(PointOutcome(point_id=point, end="not_reached") for point in points),
            started_unix_s=time.time(),
        )
        ledger.write(began, durable=False)
        return began

    def _end(
        self, ledger: Ledger, began: SweepAttempt, state: RunState, points: tuple[PointOutcome, ...]
    ) -> SweepAttempt:
        ended = dataclasses.replace(
            began,
            phase=state.phase,
            failure=state.failure,
            points=points,
            finished_unix_s=state.finished_unix_s or time.time(),
        )
        ledger.write(ended, durable=True)
        return ended
