"""The worker of a hold: keeps what was leased while others use it, starts them, and ends when nobody needs it.

Its members are started here, so they are below its supervisor: they have its devices, are no strays on them, and go
with it. It ends with its last member once it was told that no more come, after `idle_s` without one, and where its own
supervisor is gone.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from remote_payload import launch, leftovers
from remote_payload.failure import machine_failure
from remote_payload.gpus.choice import handed_down
from remote_payload.hold.door import Door
from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir, write_atomically
from remote_payload.schema import Event, LaunchRequest, SchemaError, from_json, to_json
from remote_payload.schema.frames import HoldFrame
from remote_payload.schema.hold import HoldFacts, HoldJob, HoldRequest

LOOK_S = 0.5


def run(job: HoldJob, here: RunDir, archive: Path, report: Callable[[Event], None]) -> None:
    """Hold until nobody needs it. Raises JobFailure where no door can be opened."""
    devices = handed_down(os.environ)
    write_atomically(here.result / "leased.json", json.dumps(devices).encode("ascii") + b"\n")
    try:
        door = Door(here)
    except OSError as error:
        raise machine_failure(
            f"no socket can be made in the run's folder: {error}: {here.path}",
            hint="set `root` for this host in eagle3.toml to a folder on a local disk",
        ) from None
    with door:
        why = _Hold(job, here, archive).until_over(door)
    report(Event(time_unix_s=time.time(), kind="note", name="given_back", message=why))


class _Hold:
    """The members and whether more may come."""

    def __init__(self, job: HoldJob, here: RunDir, archive: Path) -> None:
        self._job, self._here, self._archive = job, here, archive
        self._members: set[str] = set()
        self._is_wanted = True
        self._needed_s = time.monotonic()
        self._supervisor = os.getppid()

    def until_over(self, door: Door) -> str:
        """Answer until it is over; returns why it is."""
        while True:
            if door.answer_next(LOOK_S, self._answer):
                self._needed_s = time.monotonic()
            self._members = {run_id for run_id in self._members if self._lives(run_id)}
            if self._members:
                self._needed_s = time.monotonic()
            elif self._is_orphaned:
                return "its supervisor is gone"
            elif not self._is_wanted:
                return "no more runs come"
            elif time.monotonic() - self._needed_s >= self._job.idle_s:
                return f"no run came for {self._job.idle_s:g} s"

    @property
    def _is_orphaned(self) -> bool:
        return os.getppid() != self._supervisor

    def _lives(self, run_id: str) -> bool:
        """Whether the run, its supervisor or anything that it left still uses the devices."""
        return self._goes_on(run_id) or bool(leftovers.alive(self._member(run_id)))

    def _goes_on(self, run_id: str) -> bool:
        try:
            state = current_state(self._member(run_id))
        except Refusal:  # damaged: what lives of it counts
            return False
        return state is not None and not state.is_terminal

    def _member(self, run_id: str) -> RunDir:
        return RunDir(self._here.path.parent / run_id)

    def _answer(self, verb: str, text: str) -> str:
        if verb == "launch":
            return self._launch(from_json(LaunchRequest, text))
        if verb == "hold":
            self._is_wanted = from_json(HoldRequest, text).goes_on
            return to_json(self._facts())
        raise SchemaError(f"$: expected `launch` or `hold`, found: {verb!r}")

    def _launch(self, request: LaunchRequest) -> str:
        if self._is_orphaned:
            raise Refusal("lease_over", f"the supervisor of this hold is gone: {self._here.path.name}")
        answer = launch.begin(request, self._here.path.parent.parent, self._archive, hold=self._here)
        self._members.add(request.spec.run_id)
        self._is_wanted = True
        return answer

    def _facts(self) -> HoldFrame:
        state = current_state(self._here)
        if state is None:
            raise Refusal("no_such_run", f"the hold's own state is gone: {self._here.state}")
        members = tuple(sorted(run_id for run_id in self._members if self._goes_on(run_id)))
        return HoldFrame(facts=HoldFacts(state=state, members=members))
