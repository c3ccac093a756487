"""Before the worker starts: wait for a time, for other runs, for GPUs - by the supervisor, so the laptop may be off.

The time is the host's. A host that is down at that time has lost the run (its state says so after the reboot); one
that was asleep, or whose clock was set, starts late and says it.
"""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from remote_payload import leftovers
from remote_payload.event_log import EventLog
from remote_payload.failure import JobFailure, job_failure
from remote_payload.gpus.queue import GpuQueue
from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.runstate import read_spec, read_state, run_at
from remote_payload.schema import Event, RunSpec
from remote_payload.schema.waiting import Waiting

POLL_S = 2.0
CLOCK_STEP_S = 5.0
LATE_S = 60.0
"""From here on a start counts as late."""
TELL_S = 30.0
STARTING_S = 60.0
"""How long a run that was claimed may take to start."""

Tell = Callable[[str], None]
Report = Callable[[Event], None]


class Stopped(Exception):  # noqa: N818 - no error
    """Somebody cancelled the run while it waited."""


class Gate:
    """One run's waiting. `close` gives the GPUs back; the end of the process does, too."""

    def __init__(self, root: Path, spec: RunSpec, report: Report, tell: Tell) -> None:
        """`tell` is given what the run waits for, in words, whenever that changes; `report` what is worth keeping."""
        self._root = root
        self._spec = spec
        self._waiting = spec.waiting or Waiting()
        self._report = report
        self._tell = tell
        self._told: str | None = None
        self._told_s = float("-inf")
        self._gpus = GpuQueue(spec, self._waiting, report, self._say)

    def keep(self) -> None:
        """Now and then while the run goes on: what it leased stays seen to be in use."""
        self._gpus.keep()

    def wait(self, pause: Callable[[float], None], meanwhile: Callable[[], None] | None = None) -> None:
        """Until everything holds. `pause` sleeps so long at most and raises `Stopped` when the run is cancelled.

        So may `meanwhile`, which is called while nvidia-smi is asked.

        Raises JobFailure where it never will - what can be seen at once is seen before the waiting -, Stopped.
        """
        self._gpus.meanwhile = meanwhile
        for run_id in self._waiting.after:
            self._is_going(run_id)
        if self._waiting.gpus:
            self._gpus.look()
        self._for_time(pause)
        self._for_runs(pause)
        if self._waiting.gpus:
            self._gpus.wait(pause)

    def close(self) -> None:
        """Give back what was leased."""
        self._gpus.close()

    @property
    def environment(self) -> dict[str, str]:
        """What the worker's environment gets: the devices it may see."""
        return self._gpus.environment

    def _say(self, words: str) -> None:
        """A figure that changes at every look is told twice a minute: each is a state that goes to the disk."""
        now_s = time.monotonic()
        if words != self._told and now_s - self._told_s >= TELL_S:
            self._told, self._told_s = words, now_s
            self._tell(words)

    def _event(self, name: str, message: str) -> None:
        self._report(Event(time_unix_s=time.time(), kind="warning", name=name, message=message))

    def _for_time(self, pause: Callable[[float], None]) -> None:
        due_s = start_of(self._waiting, time.time())
        if due_s is None:
            return
        if time.time() - due_s > LATE_S:
            self._event("start_in_the_past", f"asked to start at {_clock(due_s)}, launched at {_clock(time.time())}")
            return
        self._say(f"starts at {_clock(due_s)} (the host's time)")
        offset_s = first_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        while (left_s := due_s - time.time()) > 0:
            pause(min(POLL_S, left_s))
            now_offset_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
            if abs(now_offset_s - offset_s) > CLOCK_STEP_S:
                self._event("clock_step", f"the host's clock was set by {now_offset_s - offset_s:+.0f} s while waiting")
                offset_s = now_offset_s
        if -left_s > LATE_S:
            set_by_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) - first_s
            was_set = set_by_s > CLOCK_STEP_S and -left_s <= set_by_s + CLOCK_STEP_S + POLL_S
            why = f"the host's clock was set by {set_by_s:+.0f} s" if was_set else "the host was asleep"
            self._event("late_start", f"asked to start at {_clock(due_s)}: {-left_s:.0f} s late, {why}")

    def _for_runs(self, pause: Callable[[float], None]) -> None:
        for run_id in self._waiting.after:
            until_s = time.monotonic() + STARTING_S
            has_looked = False
            while (going := self._is_going(run_id)) is not False:
                if going and not has_looked:  # it has started, so what it waits for stands in its folder
                    has_looked = True
                    self._refuse_circle(run_id)
                if going is None and time.monotonic() > until_s:
                    raise job_failure(f"cannot wait for {run_id}: it was claimed and never started")
                self._say(f"waits for the end of {run_id}{_left_of(run_at(self._root, run_id))}")
                pause(POLL_S)

    def _refuse_circle(self, run_id: str) -> None:
        """Raises JobFailure where that run waits for this one, whoever stands between them."""
        ways: list[tuple[str, ...]] = [(run_id,)]
        seen = {run_id}
        while ways:
            way = ways.pop()
            for further in _waited_for(self._root, way[-1]):
                if further == self._spec.run_id:
                    raise job_failure(f"these runs wait for each other: {' -> '.join((further, *way, further))}")
                if further not in seen:
                    seen.add(further)
                    ways.append((*way, further))

    def _is_going(self, run_id: str) -> bool | None:
        """None = it was claimed and has not started."""
        if run_id == self._spec.run_id:
            raise job_failure(f"a run cannot wait for its own end: {run_id}")
        try:
            state = current_state(run_at(self._root, run_id))
        except Refusal as problem:
            raise job_failure(f"cannot wait for {run_id}: {problem.frame.message}", hint=problem.frame.hint) from None
        if state is None:
            return None
        is_lost_and_alive = state.phase == "lost" and bool(leftovers.alive(run_at(self._root, run_id)))
        return not state.is_terminal or is_lost_and_alive


def _left_of(run: RunDir) -> str:
    """Who drives a lost run on, in words: its supervisor is gone, and a sweep's worker may measure all the same."""
    state = read_state(run)
    left = leftovers.alive(run) if state is not None and state.phase == "lost" else ()
    return f", lost and yet alive: pid {', '.join(map(str, left))}; `cancel` ends it" if left else ""


def admit(
    run: RunDir, spec: RunSpec, advance: Callable[..., None], is_stopped: Callable[[float], bool]
) -> tuple[Gate, dict[str, Any] | None]:
    """Wait until a run may start: its gate, and None, or the changes of the state that end it in waiting.

    The leases are the gate's: they end with this process at the latest, and no child has them. `is_stopped` sleeps so
    long at most and says whether the run was cancelled.
    """

    def pause(seconds: float) -> None:
        if is_stopped(seconds):
            raise Stopped

    events = EventLog(run.events)

    def report(event: Event) -> None:
        with contextlib.suppress(OSError):  # a full disk is no reason to wait no longer
            events.report(event)

    gate = Gate(run.path.parent.parent, spec, report, lambda words: advance(phase="queued", note=words))
    try:
        gate.wait(pause, lambda: pause(0.0))
    except Stopped:
        gate.close()
        return gate, {"phase": "cancelled", "note": "cancelled while it waited"}
    except JobFailure as problem:
        gate.close()
        return gate, {"phase": "failed", "failure": problem.failure}
    return gate, None


def start_of(waiting: Waiting, now_s: float) -> float | None:
    """When the run is due, Unix seconds; `HH:MM` is the next one of the host's own zone. Raises JobFailure."""
    if waiting.start_local is None:
        return waiting.start_unix_s
    for form in ("%Y-%m-%dT%H:%M", "%H:%M"):
        with contextlib.suppress(ValueError):
            told = time.strptime(waiting.start_local, form)
            if form != "%H:%M":
                shown = _moments(told[:5])
                if not shown:
                    raise job_failure(f"the clocks of this host skip the time of the start: {waiting.start_local}")
                return next((due_s for due_s in shown if due_s > now_s), shown[0])
            today = time.localtime(now_s)
            for days in range(3):  # one of them may not have that time
                day = time.localtime(time.mktime((*today[:2], today.tm_mday + days, 12, 0, 0, 0, 0, -1)))
                for due_s in _moments((*day[:3], *told[3:5])):
                    if due_s > now_s:
                        return due_s
    raise job_failure(f"a start is `HH:MM` or `YYYY-MM-DDTHH:MM`, found: {waiting.start_local!r}")


def _moments(wall: tuple[int, ...]) -> tuple[float, ...]:
    """When the clock of this host shows year, month, day, hour, minute: once, or around summer time twice or never."""
    about_s = time.mktime((*wall, 0, 0, 0, -1))  # type: ignore[arg-type]
    around = (about_s + half_hours * 1800 for half_hours in range(-4, 5))
    return tuple(moment for moment in around if time.localtime(moment)[:5] == wall)


def _waited_for(root: Path, run_id: str) -> tuple[str, ...]:
    """What a run that is not over waits for; none where it cannot be read."""
    run = RunDir(root / "runs" / run_id)
    try:
        state = read_state(run)
        waiting = read_spec(run).waiting
    except (OSError, Refusal):
        return ()
    return () if waiting is None or (state is not None and state.is_terminal) else waiting.after


def _clock(unix_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(unix_s))
