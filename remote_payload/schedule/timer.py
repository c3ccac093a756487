"""Entries as timers of the user's own systemd: a `.timer` and a `.service` file, through systemctl(1) alone.

A user's systemd runs without a login only where lingering is on (loginctl(1)), so it is asked for. Missed times are not
caught up with (no `Persistent=`): they are told as missed, as those of cron are. Source: systemd.timer(5),
systemd.time(7), systemd.service(5), "COMMAND LINES".
"""

import os
import re
from pathlib import Path

from remote_payload.rundir import write_atomically
from remote_payload.schedule.calls import EngineError, call
from remote_payload.schedule.folder import ScheduleDir
from remote_payload.schema.cron import parse_cron
from remote_payload.schema.schedule import EngineAnswer, Schedule

PREFIX = "eagle3-remote-"
_WEEK = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_ROOT = re.compile(r"^# root: (.*)$", re.MULTILINE)


def look() -> EngineAnswer:
    """Whether the user's systemd answers, and outlives the login."""
    try:
        _systemctl("show-environment")
    except EngineError as error:
        return EngineAnswer(engine="systemd", answer=error.answer, problem=error.problem)
    if _lingers() is False:
        problem = "lingering is off, so its timers end with the login: `loginctl enable-linger` turns it on"
        return EngineAnswer(engine="systemd", answer="denied", problem=problem, daemon=False)
    return EngineAnswer(engine="systemd", answer="ok", daemon=True)


def _lingers() -> bool | None:
    """Whether the user's systemd stays when the user goes; None where nobody says."""
    try:
        said = call(["loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value"])
    except EngineError:
        return None
    if said.code:
        return False if "not logged in or lingering" in said.err else None
    return {b"yes": True, b"no": False}.get(said.out.strip())


def entries(root: Path) -> dict[str, bytes]:
    """Timers for schedules of this root, by id: their files. Raises EngineError."""
    found: dict[str, bytes] = {}
    try:
        for path in sorted(_units().glob(f"{PREFIX}*.timer")):
            text = path.read_text(encoding="utf-8", errors="replace")
            if (told := _ROOT.search(text)) is not None and told[1] == str(root):
                found[path.stem.removeprefix(PREFIX)] = text.encode()
    except OSError as error:
        raise EngineError("failed", f"the timers cannot be read: {error}") from None
    return found


def install(folder: ScheduleDir, schedule: Schedule) -> None:
    """Write both files, load them and start the timer. Raises EngineError; then nothing is left of it."""
    timer, service = _files(folder)
    payload = folder.payload(schedule.spec.payload_sha256)
    words = (schedule.python, "-I", "-S", str(payload), "fire", str(folder.root), folder.schedule_id)
    if any(not word.isprintable() for word in words):
        raise EngineError("failed", f"a unit file cannot hold this path: {payload}")
    head = f"# eagle3-remote schedule {folder.schedule_id}\n# root: {folder.root}\n"
    what = f"[Unit]\nDescription=eagle3-remote schedule {folder.schedule_id}\n"
    when = "".join(f"OnCalendar={calendar}\n" for calendar in calendars(schedule.cron))
    # KillMode: what is launched goes on when the launcher has ended.
    run = f"[Service]\nType=oneshot\nKillMode=process\nExecStart={' '.join(map(_quoted, words))}\n"
    try:
        timer.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(service, f"{head}{what}{run}".encode())
        write_atomically(
            timer, f"{head}{what}[Timer]\n{when}AccuracySec=1s\n[Install]\nWantedBy=timers.target\n".encode()
        )
        _systemctl("daemon-reload")
        _systemctl("enable", "--now", timer.name)
    except OSError as error:
        remove(folder)
        raise EngineError("failed", f"the timer cannot be written: {error}") from None
    except EngineError:
        timer.unlink(missing_ok=True)
        service.unlink(missing_ok=True)
        raise


def remove(folder: ScheduleDir) -> None:
    """Stop the timer and take both files away; none is no error. Raises EngineError."""
    timer, service = _files(folder)
    if not timer.exists() and not service.exists():
        return
    _systemctl("disable", "--now", timer.name)
    try:
        timer.unlink(missing_ok=True)
        service.unlink(missing_ok=True)
    except OSError as error:
        raise EngineError("failed", f"the timer cannot be removed: {error}") from None
    _systemctl("daemon-reload")


def calendars(text: str) -> tuple[str, ...]:
    """The same times as calendar events; two where a day is meant by its date or else by its weekday."""
    cron = parse_cron(text)
    clock = f"{_listed(cron.hours)}:{_listed(cron.minutes)}:00"
    dates = f"*-{_listed(cron.months)}-{_listed(cron.days)} {clock}"
    any_date = f"*-{_listed(cron.months)}-* {clock}"
    week = ",".join(_WEEK[day] for day in sorted(cron.weekdays))
    every_weekday = len(cron.weekdays) == len(_WEEK)
    if cron.both_days:
        return (dates if every_weekday else f"{week} {dates}",)
    return (dates, f"{week} {any_date}")


def _listed(numbers: frozenset[int]) -> str:
    return ",".join(f"{number:02d}" for number in sorted(numbers))


def _quoted(word: str) -> str:
    """For ExecStart=: specifiers and variables doubled, the rest in quotes."""
    inside = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{inside}"'


def _files(folder: ScheduleDir) -> tuple[Path, Path]:
    name = f"{PREFIX}{folder.schedule_id}"
    return _units() / f"{name}.timer", _units() / f"{name}.service"


def _units() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "systemd" / "user"


def _systemctl(*words: str) -> None:
    """Raises EngineError. A login over SSH need not have been told where the user's systemd listens."""
    listening = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    done = call(["systemctl", "--user", *words], environment={"XDG_RUNTIME_DIR": listening})
    if done.code:
        said = " ".join(done.err.split())[:300] or "no message"
        raise EngineError("failed", f"`systemctl --user {' '.join(words)}` failed, exit code {done.code}: {said}")
