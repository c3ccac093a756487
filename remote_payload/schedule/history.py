"""What became of a schedule's times: a line each, also for those nobody was there for, and for a clock that jumps."""

import contextlib
import dataclasses
import os
import time
from collections import Counter

from remote_payload import processes
from remote_payload.rundir import write_atomically
from remote_payload.schedule.folder import ScheduleDir
from remote_payload.schedule.times import due_between
from remote_payload.schema import SchemaError, from_json, to_json
from remote_payload.schema.cron import parse_cron
from remote_payload.schema.schedule import Occasion, Schedule

CLOCK_STEP_S = 5.0
GRACE_S = 150.0
"""A time is missed when so long has passed: cron looks at its tables once a minute."""
MOST_BYTES = 4 << 20
KEPT_LINES = 5000


def read_history(folder: ScheduleDir) -> list[Occasion]:
    """Every line that can be read, oldest first."""
    found: list[Occasion] = []
    with contextlib.suppress(FileNotFoundError):
        for line in folder.history.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(SchemaError):  # half a line, of a full disk
                found.append(from_json(Occasion, line))
    return found


def note(folder: ScheduleDir, occasion: Occasion) -> None:
    """Append a line; a file that has grown large loses its oldest. Raises OSError."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(folder.history, flags, 0o600)
    try:
        os.write(descriptor, to_json(occasion).encode("ascii") + b"\n")
        is_large = os.fstat(descriptor).st_size > MOST_BYTES
    finally:
        os.close(descriptor)
    if is_large:
        kept = folder.history.read_bytes().splitlines(keepends=True)[-KEPT_LINES:]
        write_atomically(folder.history, b"".join(kept))


def at_this_moment(**fields: object) -> Occasion:
    """An occasion that is noted now."""
    now_s = time.time()
    offset_s = now_s - time.clock_gettime(time.CLOCK_BOOTTIME)
    return Occasion(noted_unix_s=now_s, boot_id=processes.boot_id(), boot_offset_s=offset_s, **fields)  # type: ignore[arg-type]


def note_steps_and_missed(folder: ScheduleDir, schedule: Schedule, until_s: float) -> list[Occasion]:
    """Bring the history up to `until_s`: the clock that was set since its last line, the times nobody was there for.

    Returns the whole history. Raises OSError. To be called under the folder's lock.
    """
    history = read_history(folder)
    step = clock_step(history, at_this_moment(what="clock_step"))
    if step is not None:
        note(folder, step)
        history.append(step)
    missed = missed_times(folder, schedule, history, until_s)
    if missed is not None:
        note(folder, missed)
        history.append(missed)
    return history


def clock_step(history: list[Occasion], now: Occasion) -> Occasion | None:
    """By how much the clock was set since the last line of this boot; `now` is what it would be noted as."""
    same_boot = [one for one in history if one.boot_id == now.boot_id and now.boot_id is not None]
    if not same_boot or abs(now.boot_offset_s - same_boot[-1].boot_offset_s) <= CLOCK_STEP_S:
        return None
    why = f"the host's clock was set by {now.boot_offset_s - same_boot[-1].boot_offset_s:+.0f} s"
    return dataclasses.replace(now, why=why)


def missed_times(folder: ScheduleDir, schedule: Schedule, history: list[Occasion], until_s: float) -> Occasion | None:
    """The row of times up to `until_s` that nothing is known of; None where there is none."""
    since_s = max(schedule.created_unix_s, known_until(history, time.time()))
    there = set(folder.run_ids())  # of one that was launched on a full disk no line may tell
    told = {one.due_unix_s for one in history if one.what != "missed"}
    due = [one for one in due_between(parse_cron(schedule.cron), since_s, until_s) if one not in told]
    due = [moment for moment in due if folder.run_id(moment) not in there] if there else due
    if not due:
        return None
    occasion = at_this_moment(what="missed", due_unix_s=due[0], until_unix_s=due[-1], count=len(due))
    return dataclasses.replace(occasion, why=_why_missed(due, occasion, history, schedule))


def known_until(history: list[Occasion], now_s: float) -> float:
    """Up to which moment the history tells of every time, by the clock as it is set now.

    What a clock that was ahead made it tell of the time to come is no knowledge of it.
    """
    known_s = 0.0
    before: Occasion | None = None
    for one in history:
        if one.what == "clock_step" and before is not None:
            set_by_s = one.boot_offset_s - before.boot_offset_s
            known_s = min(known_s, before.noted_unix_s + set_by_s) if set_by_s < 0 else known_s
        moments = (one.until_unix_s, one.due_unix_s)
        known_s = max(known_s, *(moment for moment in moments if moment is not None and moment <= now_s), 0.0)
        before = one
    return known_s


def _why_missed(due: list[int], now: Occasion, history: list[Occasion], schedule: Schedule) -> str:
    """The clock's last step is told of in the history as its last line."""
    booted_s = now.boot_offset_s
    if due[-1] < booted_s:
        return "the host was off"
    if due[0] < booted_s:
        return f"the host was off for some of them; then {schedule.engine} did not fire it"
    if history and history[-1].what == "clock_step":
        return f"{history[-1].why}, over it"
    return f"{schedule.engine} did not fire it: it did not run, or the host was asleep"


def counts(history: list[Occasion]) -> dict[str, int]:
    """Times by what became of them."""
    found: Counter[str] = Counter()
    for one in history:
        found[one.what] += one.count
    return dict(found)
