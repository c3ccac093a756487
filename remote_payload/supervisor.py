"""The supervisor: starts the worker, watches it, ends its whole tree, and ALWAYS leaves a final state.

It is a child subreaper (prctl(2)): processes of the tree that lose their parent - daemons, children in sessions of
their own, with a cleared environment - become its children, so "no children left" means that the tree is gone.
Not covered: processes started through another service (systemd, a container daemon), which were never in the tree;
and the logs, which grow as the worker likes.
"""

import contextlib
import dataclasses
import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remote_payload import processes, runstate
from remote_payload.detach import Report
from remote_payload.heartbeat import Heartbeat
from remote_payload.left_behind import read_failure, resource_use, tail_of
from remote_payload.oom import count_oom_kills
from remote_payload.outcome import Ending, Outcome, judge
from remote_payload.refusal import MAKE_ROOM, is_disk_full
from remote_payload.rundir import RunDir, set_aside, sync
from remote_payload.schema import (
    TERMINAL_PHASES,
    Failure,
    LaunchedFrame,
    Manifest,
    ResourceUse,
    RunSpec,
    RunState,
    to_json,
)
from remote_payload.schema.slurm import SlurmJob
from remote_payload.spawn import no_worker, spawn_worker
from remote_payload.subreaper import become_subreaper
from remote_payload.watch import KILL_PATIENCE_S, WATCHED, Watch

RESERVE_BYTES = 64 * 1024
DEFAULT_GRACE_S = 5.0
WITH_OTHERS = ("sweep", "hold")  # kinds whose tree holds other runs, each with its own supervisor


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a run comes from: the payload file, and the sweep or the hold that it is a part of."""

    archive: Path
    sweep: RunDir | None = None
    hold: RunDir | None = None
    slurm: SlurmJob | None = None
    before: RunState | None = None
    """The state that is there already: a batch job's run was queued, or ran before."""
    reworded: Callable[[Outcome], Outcome] = lambda verdict: verdict
    """What the batch system has to say about an end; a phase that is none leaves the run to it."""


def supervise(run: RunDir, spec: RunSpec, secrets: dict[str, str], origin: Origin, report: Report, claim: int) -> None:
    """The detached process's whole life; `report` gets one line: a LaunchedFrame, or `refused ERRNO`."""
    _listen()
    try:
        supervisor = Supervisor(run, spec, origin)
    except OSError as error:
        report(f"refused {error.errno or 0}")
        return
    report(to_json(LaunchedFrame(state=supervisor.state)))
    os.close(claim)
    _to_its_end(supervisor, secrets)


def supervise_here(run: RunDir, spec: RunSpec, secrets: dict[str, str], origin: Origin) -> None:
    """A run's whole life in this very process, which a batch system started. Raises OSError at its first state."""
    _listen()
    _to_its_end(Supervisor(run, spec, origin), secrets)


def _listen() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)


def _to_its_end(supervisor: "Supervisor", secrets: dict[str, str]) -> None:
    try:
        supervisor.see_through(secrets)
    except Exception:  # noqa: BLE001 - the last resort: a run without a final state helps nobody
        supervisor.give_up(traceback.format_exc())


class Supervisor:
    """One run's supervisor. Raises OSError at construction when the disk does not even take the first state."""

    def __init__(self, run: RunDir, spec: RunSpec, origin: Origin) -> None:
        self._run = run
        self._spec = spec
        self._origin = origin
        self._give_back: Callable[[], None] = lambda: None  # frees what was leased
        self._keep: Callable[[], None] = lambda: None  # shows it to be in use
        self._heartbeat = Heartbeat(run.heartbeat, locked=origin.slurm is None)
        self._heartbeat.beat_when_due()
        set_aside(run.reserve, RESERVE_BYTES)
        is_subreaper = become_subreaper()
        me = processes.read_stat(os.getpid())
        first = RunState(
            run_id=spec.run_id,
            sequence=0 if origin.before is None else origin.before.sequence,
            phase="starting",
            slurm=origin.slurm,
            supervisor_pid=os.getpid(),
            supervisor_start_ticks=me.start_ticks if me else None,
            boot_id=processes.boot_id(),
            note=None if is_subreaper else "no subreaper on this host: daemons of the job may escape `cancel`",
        )
        self.state = runstate.advance(run, first, durable=False)  # `running` follows at once

    def see_through(self, secrets: dict[str, str]) -> None:
        """From what it waits for, over the worker's start, to the final state."""
        environment = self._admitted()
        if environment is None:
            return
        kills = count_oom_kills()
        started_s = time.monotonic()
        spec = dataclasses.replace(self._spec, environment={**self._spec.environment, **environment})
        try:
            worker = spawn_worker(self._run, spec, secrets, self._origin.archive)
        except OSError as error:
            self._finish(phase="failed", failure=no_worker(self._spec.python, error))
            return
        self._advance(phase="running", worker_pid=worker, started_unix_s=time.time())
        from remote_payload.manifest import write_manifest  # noqa: PLC0415 - hashlib loads beside the worker's start

        watch = Watch(
            worker, deadline_s=self._spec.deadline_s, grace_s=self._grace_s, nested=self._spec.job_kind in WITH_OTHERS
        )
        watched = watch.until_empty(self._every_round)
        use = resource_use(time.monotonic() - started_s)
        self._run.reserve.unlink(missing_ok=True)
        files, failure = self._left_behind(write_manifest)
        ending = Ending(
            wait_status=watched.wait_status,
            stopped=watched.stopped,
            deadline_s=self._spec.deadline_s,
            failure=failure,
            stderr_tail=tail_of(self._run.stderr),
            result_files=files,
            oom_kills=count_oom_kills().since(kills),
        )
        self._settle(self._origin.reworded(judge(ending)), watched.survivors, use)

    def _every_round(self) -> None:
        self._heartbeat.beat_when_due()
        self._keep()

    def _admitted(self) -> dict[str, str] | None:
        """What the worker's environment gets once everything holds that it waits for; None = it ended in waiting."""
        if self._spec.waiting is None:
            return {}
        from remote_payload.waiting import admit  # noqa: PLC0415 - most runs wait for nothing

        before = self.state
        gate, ended = admit(self._run, self._spec, self._advance, self._stop_asked)
        if ended is not None:
            self._finish(**ended)
            return None
        self._give_back, self._keep = gate.close, gate.keep
        self._advance(phase=before.phase, note=before.note)
        return gate.environment

    def _stop_asked(self, seconds: float) -> bool:
        """Sleep so long; whether somebody cancelled the run. A child's end, as nvidia-smi's, is no reason to wake."""
        until_s = time.monotonic() + seconds
        while True:
            self._heartbeat.beat_when_due()
            caught = signal.sigtimedwait(WATCHED, max(0.0, until_s - time.monotonic()))
            if self._grace_s(caught is not None and caught.si_signo != signal.SIGCHLD) is not None:
                return True
            if time.monotonic() >= until_s:
                return False

    def _settle(self, verdict: Outcome, survivors: tuple[int, ...], use: ResourceUse) -> None:
        if verdict.phase not in TERMINAL_PHASES:
            self._advance(phase=verdict.phase, note=verdict.note)
            return
        self._finish(
            phase=verdict.phase,
            exit_code=verdict.exit_code,
            signal=verdict.signal,
            failure=verdict.failure,
            note=verdict.note or self.state.note,
            survivors=survivors,
            resource_use=use,
        )

    def give_up(self, trace: str) -> None:
        """Something here is broken: end the tree and say so."""
        until_s = time.monotonic() + KILL_PATIENCE_S
        while (left := processes.descendants(os.getpid())) and time.monotonic() < until_s:
            processes.signal_all(left, signal.SIGKILL)
            time.sleep(0.01)
        lines = tuple(trace.splitlines()[-40:])
        failure = Failure(kind="supervisor", message=f"the supervisor failed: {lines[-1]}", details=lines)
        self._finish(phase="failed", failure=failure, survivors=left)

    def _advance(self, **changes: Any) -> None:
        """The next state; on a full disk only in memory, the final one has its reserve."""
        with contextlib.suppress(OSError):
            self.state = runstate.advance(self._run, self.state, **changes)
            sync(self._run.spec)

    def _finish(self, **changes: Any) -> None:
        self._give_back()
        self._run.reserve.unlink(missing_ok=True)
        changes["finished_unix_s"] = time.time()
        try:
            runstate.advance(self._run, self.state, **changes)
        except OSError:
            runstate.overwrite(self._run, self.state, **changes)

    def _left_behind(self, write_manifest: Callable[[RunDir], Manifest]) -> tuple[int, Failure | None]:
        """Count the result's files, with their manifest written, and read the worker's own word."""
        try:
            return len(write_manifest(self._run).files), read_failure(self._run)
        except OSError as error:
            message = f"the result's manifest cannot be written: {error}"
            is_full = is_disk_full(error)
            hint = MAKE_ROOM if is_full else None
            return 0, Failure(kind="disk_full" if is_full else "machine", message=message, hint=hint)

    def _grace_s(self, asked: bool) -> float | None:
        """How long a cancelled tree gets; None: nobody cancelled it, nor the sweep or the hold that it is a part of."""
        found = _grace_in(self._run)
        for whole in (self._origin.sweep, self._origin.hold):
            if found is None and whole is not None:
                found = _grace_in(whole)
        return DEFAULT_GRACE_S if found is None and asked else found


def _grace_in(run: RunDir) -> float | None:
    """What a run's cancel request says, JSON: `{"grace_s": 5.0}`; None: there is none."""
    try:
        return min(600.0, max(0.0, float(json.loads(run.cancel.read_text())["grace_s"])))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return DEFAULT_GRACE_S
