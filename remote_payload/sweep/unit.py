"""One attempt at a unit: an ordinary run with its own supervisor, started in this process, waited for to its end."""

import dataclasses
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from remote_payload import processes
from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.schema import LaunchRequest, RunSpec, RunState, Setting, SweepJob, SweepUnit, UnitJob, to_json
from remote_payload.supervisor_exit import SupervisorExit
from remote_payload.sweep.unit_ids import unit_run_id
from remote_payload.sweep.wanted import changed_settings

NONCE = "of-a-sweep"
"""Of a request that goes over no wire."""
LOOK_S = 1.0
"""How often the supervisor of a unit is looked at; its end wakes the sweep at once where the kernel has pidfds."""
BUSY_LOOK_S = 0.05


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
    """Where a sweep runs: its own run, what was asked of it, the payload file."""

    sweep: RunDir
    spec: RunSpec
    archive: Path

    @property
    def root(self) -> Path:
        """The tool's root on this host."""
        return self.sweep.path.parent.parent

    def run(self, run_id: str) -> RunDir:
        """Another run under the same root."""
        return RunDir(self.sweep.path.parent / run_id)


def spec_of(place: Place, sweep: SweepJob, unit: SweepUnit, attempt: int, job: UnitJob) -> RunSpec:
    """The spec of a unit's run: the sweep's, with the unit's job and where each setting came from.

    The sweep has waited for what it was to wait for, and holds what it leased: its units find both as they are.
    """
    changed = changed_settings(unit)
    source = f"sweep {place.spec.run_id}, unit {unit.unit_id}"
    settings = [setting for setting in place.spec.settings if setting.key not in changed]
    settings += [Setting(key=key, value=value, source=source) for key, value in changed.items()]
    return dataclasses.replace(
        place.spec,
        run_id=unit_run_id(place.spec.run_id, unit.unit_id, attempt),
        job_kind=job.kind,
        job_json=to_json(job),
        settings=tuple(settings),
        deadline_s=sweep.unit_deadline_s,
        created_unix_s=time.time(),
        waiting=None,
    )


def start(place: Place, spec: RunSpec) -> RunDir:
    """Start the unit's run under a supervisor of its own. Raises Refusal, SchemaError."""
    from remote_payload import launch  # noqa: PLC0415 - an element of an array launches nothing

    secrets = {name: os.environ[name] for name in spec.secret_names}
    request = LaunchRequest(nonce=NONCE, root=str(place.root), spec=spec, secrets=secrets, follow=False)
    launch.begin(request, place.root, place.archive, place.sweep)
    return place.run(spec.run_id)


def until_over(run: RunDir, is_stopped: Callable[[], bool]) -> RunState:
    """The run's final state, once there is one; a stopped sweep asks its unit's supervisor to end. Raises Refusal."""
    asked = False
    state = current_state(run)
    with SupervisorExit(state) as supervisor_exit:
        while state is None or not state.is_terminal:
            if state is not None and is_stopped() and not asked:
                asked = True
                if state.supervisor_pid is not None and state.supervisor_start_ticks is not None:
                    processes.send_signal(state.supervisor_pid, state.supervisor_start_ticks, signal.SIGTERM)
            supervisor_exit.wait(LOOK_S if supervisor_exit.is_told else BUSY_LOOK_S)
            state = current_state(run)
            if state is None:
                raise Refusal("no_such_run", f"the unit's state is gone: {run.state}")
        return state
