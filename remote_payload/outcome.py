"""How a run ended: from the worker's wait status, why it was stopped and what it left, to a terminal phase. Pure."""

import os
import signal
from dataclasses import dataclass
from typing import Literal

from remote_payload.oom import UNKNOWN_OOM_KILLS, OomKills
from remote_payload.refusal import MAKE_ROOM
from remote_payload.schema import Failure
from remote_payload.schema.run import RunPhase

StopReason = Literal["cancelled", "timed_out", "time_limit"]
"""`time_limit` is the batch system's, `timed_out` the run's own deadline."""
DISK_FULL_EXIT_CODE = 74
"""The worker's way to say it when the disk does not even take its failure.json (sysexits.h: EX_IOERR)."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What the supervisor saw."""

    wait_status: int | None
    """As wait4 gave it; None: the worker could not be ended."""
    stopped: StopReason | None = None
    """Why the supervisor stopped it; None: it ended by itself."""
    deadline_s: float | None = None
    failure: Failure | None = None
    """The worker's own word (failure.json)."""
    stderr_tail: tuple[str, ...] = ()
    result_files: int = 0
    oom_kills: OomKills = UNKNOWN_OOM_KILLS
    """While the worker ran."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The fields of the terminal state."""

    phase: RunPhase
    exit_code: int | None = None
    signal: str | None = None
    failure: Failure | None = None
    note: str | None = None


def judge(ending: Ending) -> Outcome:
    """Decide the outcome; a stop that the supervisor began goes before what the worker made of it."""
    code, name = _exit_of(ending.wait_status)
    if ending.stopped == "time_limit":
        limit = "the batch system's time limit was near"
        return Outcome(phase="timed_out", exit_code=code, signal=name, failure=ending.failure, note=limit)
    if ending.stopped is not None:
        note = None if ending.stopped == "cancelled" else f"the deadline of {ending.deadline_s:g} s passed"
        return Outcome(phase=ending.stopped, exit_code=code, signal=name, failure=ending.failure, note=note)
    if name is not None:
        return _killed(ending, name)
    if code == 0 and ending.result_files:
        return Outcome(phase="succeeded", exit_code=0)
    if code == 0:
        failure = ending.failure or Failure(kind="bug", message="the worker ended well but left no result")
        return Outcome(phase="failed", exit_code=0, failure=failure)
    failure = ending.failure or _unexplained(code, ending.stderr_tail)
    return Outcome(phase="failed", exit_code=code, failure=failure, note=_oom_note(ending))


def _unexplained(code: int | None, stderr_tail: tuple[str, ...]) -> Failure:
    if code == DISK_FULL_EXIT_CODE:
        message = "the host's disk or quota is full"
        return Failure(kind="disk_full", message=message, hint=MAKE_ROOM, details=stderr_tail)
    if code is None:
        return Failure(kind="supervisor", message="the worker cannot be ended", hint="see `survivors`")
    message = f"the worker ended with exit code {code} and gave no reason"
    return Failure(kind="bug", message=message, hint="see stderr.log", details=stderr_tail)


def _killed(ending: Ending, name: str) -> Outcome:
    if name == "SIGKILL" and ending.oom_kills.group:
        failure = Failure(
            kind="machine",
            message="the kernel killed the worker because the memory of its control group or host was used up",
            hint="use a host with more memory, or a smaller job",
            details=ending.stderr_tail,
        )
        return Outcome(phase="out_of_memory", signal=name, failure=failure)
    failure = ending.failure or Failure(
        kind="job", message=f"the worker was killed by {name}", details=ending.stderr_tail
    )
    return Outcome(phase="killed", signal=name, failure=failure, note=_oom_note(ending))


def _oom_note(ending: Ending) -> str | None:
    if ending.oom_kills.group:
        return f"meanwhile the kernel killed processes of the run's control group for memory: {ending.oom_kills.group}"
    if ending.oom_kills.host:
        return f"meanwhile the kernel killed processes on this host for memory: {ending.oom_kills.host}"
    return None


def _exit_of(status: int | None) -> tuple[int | None, str | None]:
    if status is None:
        return None, None
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        known = number in set(signal.Signals)
        return None, signal.Signals(number).name if known else f"signal {number}"
    return os.WEXITSTATUS(status), None
