"""Before the worker starts: wait for a time, for other runs, for GPUs - by the supervisor, so the laptop may be off.

The time is the host's. A host that is down at that time has lost the run (its state says so after the reboot); one
that was asleep, or whose clock was set, starts late and says it.
"""

import contextlib
import os
import pwd
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from remote_payload import gpu_choice
from remote_payload.event_log import EventLog
from remote_payload.failure import JobFailure, job_failure, machine_failure
from remote_payload.gpus import GpuFacts, look_at_gpus
from remote_payload.leases import Leases
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.runstate import current_state, run_at
from remote_payload.schema import Event, Failure, Gpu, RunSpec
from remote_payload.schema.waiting import Holder, Waiting

POLL_S = 2.0
LOOK_S = 5.0
"""How long nvidia-smi may take for one of its answers."""
CLOCK_STEP_S = 5.0
LATE_S = 60.0
"""From here on a start counts as late."""
TOUCH_S = 3600.0

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
        self._leases: Leases | None = None
        self.environment: dict[str, str] = {}
        """What the worker's environment gets: the devices it may see."""

    def wait(self, pause: Callable[[float], None]) -> None:
        """Until everything holds. `pause` sleeps so long at most and raises `Stopped` when the run is cancelled.

        Raises JobFailure where it never will, Stopped.
        """
        self._for_time(pause)
        self._for_runs(pause)
        if self._waiting.gpus:
            self._for_gpus(pause)

    def close(self) -> None:
        """Give back what was leased."""
        if self._leases is not None:
            self._leases.close()

    def _say(self, words: str) -> None:
        if words != self._told:
            self._told = words
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
        offset_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        while (left_s := due_s - time.time()) > 0:
            pause(min(POLL_S, left_s))
            now_offset_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
            if abs(now_offset_s - offset_s) > CLOCK_STEP_S:
                self._event("clock_step", f"the host's clock was set by {now_offset_s - offset_s:+.0f} s while waiting")
                offset_s = now_offset_s
        if -left_s > LATE_S:
            self._event("late_start", f"asked to start at {_clock(due_s)}: {-left_s:.0f} s late, the host was asleep")

    def _for_runs(self, pause: Callable[[float], None]) -> None:
        for run_id in self._waiting.after:
            while self._is_going(run_id):
                self._say(f"waits for the end of {run_id}")
                pause(POLL_S)

    def _is_going(self, run_id: str) -> bool:
        try:
            state = current_state(run_at(self._root, run_id))
        except Refusal as problem:
            raise job_failure(f"cannot wait for {run_id}: {problem.frame.message}", hint=problem.frame.hint) from None
        return state is None or not state.is_terminal

    def _for_gpus(self, pause: Callable[[float], None]) -> None:
        wish, since_s = self._waiting, time.clock_gettime(time.CLOCK_BOOTTIME)
        try:
            self._leases = leases = Leases(Path(wish.leases), self._holder())
            if wish.when_free:
                leases.queue_up()
            touched_s = since_s
            while (why := self._try(leases)) is not None:
                now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
                if not wish.when_free:
                    hint = "wait for them with --when-free, or see who has them: eagle3-remote hosts top NAME"
                    raise machine_failure(f"{_gpus(wish.gpus)} not free: {why}", hint=hint)
                if wish.longest_s is not None and now_s - since_s >= wish.longest_s:
                    raise machine_failure(f"{_gpus(wish.gpus)} not free within {wish.longest_s:g} s: {why}")
                self._say(f"waits for {_gpus(wish.gpus)}: {why}")
                pause(POLL_S)
                if now_s - touched_s > TOUCH_S:
                    leases.touch()
                    touched_s = now_s
            leases.leave_queue()
        except OSError as error:
            hint = "set `leases` for this host in eagle3.toml to a folder on a local disk that all its users may write"
            raise machine_failure(f"the GPU leases cannot be used: {error}", hint=hint) from None

    def _holder(self) -> Holder:
        wish, user = self._waiting, str(os.getuid())
        with contextlib.suppress(KeyError):
            user = pwd.getpwuid(os.getuid()).pw_name
        return Holder(
            run_id=self._spec.run_id,
            user=user,
            uid=os.getuid(),
            pid=os.getpid(),
            since_unix_s=time.time(),
            gpus=wish.gpus,
            min_free_bytes=wish.min_free_bytes,
        )

    def _try(self, leases: Leases) -> str | None:
        """Take the GPUs; why that cannot be, None = done. Raises JobFailure where waiting is of no use."""
        before = leases.before_us()
        if before:
            return f"{_runs(len(before))} in the queue before this one, the first: {_name(before[0])}"
        facts = look_at_gpus(LOOK_S, parts=True)
        if facts.answer == "no_nvidia_smi":
            raise machine_failure("this host has no nvidia-smi, so nobody knows which GPUs are free")
        if facts.answer != "ok":
            return f"nvidia-smi {facts.problem or facts.answer}"
        return self._choose(leases, facts)

    def _choose(self, leases: Leases, facts: GpuFacts) -> str | None:
        wish = self._waiting
        asked = {**os.environ, **self._spec.environment}
        mask, order = asked.get("CUDA_VISIBLE_DEVICES"), asked.get("CUDA_DEVICE_ORDER")
        try:
            seen = gpu_choice.visible(facts.gpus, mask, order)
        except gpu_choice.MaskError as error:
            raise JobFailure(Failure(kind="machine", message=str(error))) from None
        usable = [gpu for gpu in seen if not gpu.mig_devices]
        if len(usable) < wish.gpus:
            through = "" if mask is None else f" through CUDA_VISIBLE_DEVICES={mask}"
            raise machine_failure(f"{_gpus(wish.gpus)} asked for, this host shows {len(usable)}{through}")
        reasons = {gpu.uuid: gpu_choice.why_not(gpu, wish.min_free_bytes) for gpu in usable}
        free = [gpu for gpu in usable if reasons[gpu.uuid] is None]
        others = leases.take([gpu.uuid for gpu in free], wish.gpus)
        if others is not None:
            return _why(usable, {**reasons, **{uuid: f"leased by {_name(who)}" for uuid, who in others.items()}})
        taken = [gpu for gpu in free if gpu.uuid in leases.held]
        self.environment = gpu_choice.environment(taken)
        names = ", ".join(f"GPU {gpu.index} ({gpu.uuid})" for gpu in taken)
        self._report(Event(time_unix_s=time.time(), kind="note", name="gpus_leased", message=names))
        return None


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
    gate = Gate(run.path.parent.parent, spec, events.report, lambda words: advance(phase="queued", note=words))
    try:
        gate.wait(pause)
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
                return time.mktime((*told[:6], 0, 0, -1))
            today = time.localtime(now_s)
            for days in (0, 1):
                due_s = time.mktime((today.tm_year, today.tm_mon, today.tm_mday + days, *told[3:5], 0, 0, 0, -1))
                if due_s > now_s:
                    return due_s
    raise job_failure(f"a start is `HH:MM` or `YYYY-MM-DDTHH:MM`, found: {waiting.start_local!r}")


def _why(gpus: list[Gpu], reasons: dict[str, str | None]) -> str:
    return "; ".join(f"GPU {gpu.index} {reason}" for gpu in gpus if (reason := reasons[gpu.uuid]) is not None)


def _clock(unix_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(unix_s))


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _runs(count: int) -> str:
    return "1 run stands" if count == 1 else f"{count} runs stand"


def _name(holder: Holder | None) -> str:
    return "somebody" if holder is None else f"{holder.user}'s run {holder.run_id}"
