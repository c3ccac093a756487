"""Processes of this host: who a pid really is, who descends from whom, who carries a run's mark, and signals."""

import contextlib
import os
import signal
import stat as stats
from collections.abc import Iterable
from dataclasses import dataclass

MARK = "EAGLE3_RUN_DIR"
"""Environment variable that marks a run's processes; the directory is unique on the host, a run id is not."""


@dataclass(frozen=True)
class ProcessStat:
    """The fields of /proc/PID/stat that we use."""

    pid: int
    state: str
    parent: int
    start_ticks: int


def read_stat(pid: int) -> ProcessStat | None:
    """None when there is no such process (any more), or none that we may see (hidepid)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode("ascii", "replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()  # the name before may hold spaces and brackets
    return ProcessStat(pid=pid, state=fields[0], parent=int(fields[1]), start_ticks=int(fields[19]))


def boot_id() -> str | None:
    """This boot of the kernel; None where /proc does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None


def is_running(pid: int, start_ticks: int) -> bool:
    """Whether this very process is alive: same pid, same start time, not a zombie."""
    stat = read_stat(pid)
    return stat is not None and stat.start_ticks == start_ticks and stat.state not in "ZX"


def is_alive(pid: int) -> bool:
    """Whether some process has this pid and is no zombie."""
    stat = read_stat(pid)
    return stat is not None and stat.state not in "ZX"


def all_pids() -> list[int]:
    """Every pid of /proc."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names only, 10 times faster


def descendants(ancestor: int) -> tuple[int, ...]:
    """Living processes below `ancestor`, children before grandchildren. One look: a forking tree needs several."""
    children: dict[int, list[int]] = {}
    for pid in all_pids():
        stat = read_stat(pid)
        if stat is not None and stat.state not in "ZX":
            children.setdefault(stat.parent, []).append(pid)
    found: list[int] = []
    frontier = [ancestor]
    while frontier:
        frontier = [child for parent in frontier for child in children.get(parent, ())]
        found += frontier
    return tuple(found)


def children(parent: int) -> tuple[int, ...]:
    """Living processes whose parent this is."""
    stats_of = (read_stat(pid) for pid in all_pids())
    return tuple(stat.pid for stat in stats_of if stat is not None and stat.parent == parent and stat.state not in "ZX")


def marked(run_directory: str) -> tuple[int, ...]:
    """Living processes that carry the run's mark in their environment (not: those that cleared it, or other users')."""
    wanted = f"{MARK}={run_directory}".encode("utf-8", "surrogateescape")
    found = []
    for pid in all_pids():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read()
        except OSError:
            continue
        if wanted in environment.split(b"\0") and pid != os.getpid():
            found.append(pid)
    return tuple(found)


def writers(path: str, commands: tuple[bytes, ...]) -> tuple[int, ...]:
    """Living processes that have `path`, or what was `path` before it was removed, open for writing.

    `commands`: one of them is in their command line; looking into every process of a large host would take a second.
    """
    wanted = (path, f"{path} (deleted)")
    found = []
    for pid in all_pids():
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read()
                if not any(command in line for command in commands):
                    continue
            if is_alive(pid) and _has_open(f"/proc/{pid}/fd", wanted):
                found.append(pid)
    return tuple(found)


def _has_open(folder: str, wanted: tuple[str, ...]) -> bool:
    for name in os.listdir(folder):  # noqa: PTH208
        with contextlib.suppress(OSError):  # closed since
            link = f"{folder}/{name}"
            if os.readlink(link) in wanted and os.lstat(link).st_mode & stats.S_IWUSR:  # noqa: PTH115 - proc(5)
                return True
    return False


def send_signal(pid: int, start_ticks: int, number: signal.Signals) -> bool:
    """Signal this very process, never a later one that got its pid. False when it is gone. Raises PermissionError."""
    if not hasattr(os, "pidfd_open"):
        return is_running(pid, start_ticks) and signal_all((pid,), number) == ()
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except OSError:  # a kernel older than 5.3: a tiny window between look and signal remains
        return is_running(pid, start_ticks) and signal_all((pid,), number) == ()
    try:
        if not is_running(pid, start_ticks):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def signal_all(pids: Iterable[int], number: signal.Signals) -> tuple[int, ...]:
    """Signal each; returns those we were not allowed to signal. Gone ones are fine."""
    refused = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            if not _may_signal(pid, number):
                refused.append(pid)
    return tuple(refused)


def _may_signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except PermissionError:
        return False
    return True
