"""Entries in the user's crontab, through crontab(1) alone: every other line stays byte for byte what it was.

An entry goes to the top, because what stands above a line (`SHELL=`, `PATH=`, cronie's `CRON_TZ=`) holds for it. Two
of us take turns by a lock; an editor that knows no lock is found out by reading back what was written.
"""

import contextlib
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from remote_payload import processes
from remote_payload.refusal import Refusal
from remote_payload.schedule.calls import EngineError, call
from remote_payload.schedule.folder import ScheduleDir, locked_file
from remote_payload.schema.cron import parse_cron
from remote_payload.schema.schedule import EngineAnswer, Schedule

TAG = "# eagle3-remote schedule"
LONGEST_LINE = 990
"""Bytes; Vixie's cron takes commands of 999."""
TRIES = 3
DAEMONS = ("cron", "crond", "cronie", "fcron", "bcron-sched", "busybox-cron", "scron")
_ENTRY = re.compile(rb".* fire (?P<root>\S+|'.*') (?P<id>[a-z0-9][a-z0-9._-]*) # eagle3-remote schedule (?P=id)")


def look() -> EngineAnswer:
    """Whether the crontab can be read, and whether a cron runs."""
    try:
        read_crontab()
    except EngineError as error:
        return EngineAnswer(engine="cron", answer=error.answer, problem=error.problem, daemon=is_cron_running())
    return EngineAnswer(engine="cron", answer="ok", daemon=is_cron_running())


def is_cron_running() -> bool | None:
    """By the names of the processes; None where this user cannot see those of others (hidepid)."""
    names = set()
    for pid in processes.all_pids():
        with contextlib.suppress(OSError):
            names.add(Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip())
    if names & set(DAEMONS):
        return True
    return False if os.access("/proc/1/comm", os.R_OK) else None


def read_crontab() -> bytes:
    """The user's crontab, empty where there is none. Raises EngineError."""
    found = call(["crontab", "-l"])
    words = found.err.lower()
    if found.code == 0:
        return found.out
    if "no crontab for" in words or ("can't open" in words and "no such file" in words):  # the latter is busybox
        return b""
    if "not allowed" in words:
        raise EngineError("denied", f"this user may not use cron: {_shown(found.err)}")
    raise EngineError("failed", f"`crontab -l` failed, exit code {found.code}: {_shown(found.err)}")


def entries(root: Path) -> dict[str, bytes]:
    """Our lines for schedules of this root, by id. Raises EngineError."""
    return {entry[1]: line for line in read_crontab().splitlines() if (entry := _entry(line)) and entry[0] == str(root)}


def install(folder: ScheduleDir, schedule: Schedule) -> None:
    """Put the schedule's entry in, in place of an earlier one. Raises EngineError, Refusal."""
    line = line_of(folder, schedule)
    _edit(lambda before: line + b"\n" + _without(before, folder))


def remove(folder: ScheduleDir) -> None:
    """Take its entry out; none is no error. Raises EngineError, Refusal."""
    _edit(lambda before: _without(before, folder))


def line_of(folder: ScheduleDir, schedule: Schedule) -> bytes:
    """The entry. Raises EngineError for what no crontab can hold."""
    payload = folder.payload(schedule.spec.payload_sha256)
    words = (schedule.python, "-I", "-S", str(payload), "fire", str(folder.root), folder.schedule_id)
    if any(not word.isprintable() or "\\" in word for word in words):
        raise EngineError("failed", f"a crontab cannot hold this path: {payload}")
    command = shlex.join(words).replace("%", "\\%")  # an unescaped one ends the command
    line = os.fsencode(f"{parse_cron(schedule.cron).line} {command} {TAG} {folder.schedule_id}")
    if len(line) > LONGEST_LINE:
        raise EngineError("failed", f"a crontab's line is too short for this path: {payload}")
    return line


def _entry(line: bytes) -> tuple[str, str] | None:
    """Root and id of a line of ours."""
    found = _ENTRY.fullmatch(line)
    if found is None or line.lstrip().startswith(b"#"):
        return None
    try:
        (root,) = shlex.split(os.fsdecode(found["root"]).replace("\\%", "%"))
    except ValueError:
        return None
    return root, found["id"].decode("ascii")


def _without(text: bytes, folder: ScheduleDir) -> bytes:
    ours = (str(folder.root), folder.schedule_id)
    lines = text.split(b"\n")  # not splitlines: others may keep carriage returns
    return b"\n".join(line for line in lines if _entry(line) != ours)


def _edit(change: Callable[[bytes], bytes]) -> None:
    """Read, change, write, read back: what is there then is what was written, or somebody else was at it: again."""
    lock = Path(f"/var/tmp/eagle3-remote-crontab-{os.getuid()}.lock")  # noqa: S108 - opened without following links
    try:
        with locked_file(lock, "the crontab"):
            for _ in range(TRIES):
                before = read_crontab()
                wanted = change(before)
                if wanted == before:
                    return
                _write(wanted)
                if read_crontab() == wanted:
                    return
    except OSError as error:
        raise Refusal("schedule_refused", f"the lock around the crontab cannot be had: {error}") from None
    raise EngineError("failed", f"the crontab reads otherwise than it was written, {TRIES} times: who else edits it?")


def _write(text: bytes) -> None:
    command = ["crontab", "-"] if text else ["crontab", "-r"]
    done = call(command, text)
    if done.code:
        raise EngineError("failed", f"`{' '.join(command)}` failed, exit code {done.code}: {_shown(done.err)}")


def _shown(text: str) -> str:
    return " ".join(text.split())[:300] or "no message"
