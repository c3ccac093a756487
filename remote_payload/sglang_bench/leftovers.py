"""SGLang servers that are there already: of earlier runs, of other people."""

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from remote_payload import processes
from remote_payload.liveness import is_supervised
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.runstate import read_state

_TITLES = ("sglang::", "sglang serve")
_MODULES = ("sglang.launch_server", "sglang.srt", "sglang/launch_server.py")


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """One process of an SGLang server that is none of ours now."""

    pid: int
    title: str
    age_s: float | None
    run_directory: str | None
    """Of the run of ours that started it; None: not one of ours, or not for us to see."""
    is_of_live_run: bool = False
    """Whether that run still goes on: then it left nothing."""

    def in_words(self) -> str:
        """For a warning."""
        age = "" if self.age_s is None else f", since {self.age_s / 3600:.1f} h"
        goes_on = ", which goes on" if self.is_of_live_run else ""
        origin = "" if self.run_directory is None else f", started by run {Path(self.run_directory).name}{goes_on}"
        return f"{self.title} (pid {self.pid}{age}{origin})"


def find_leftovers(own: tuple[int, ...] = ()) -> tuple[Leftover, ...]:
    """Every SGLang process of this host that /proc shows, but for `own`."""
    found = []
    for pid in processes.all_pids():
        title = _title(pid)
        if title is not None and pid not in own and pid != os.getpid() and processes.is_alive(pid):
            run = _run_directory(pid)
            lives = run is not None and _goes_on(run)
            found.append(Leftover(pid=pid, title=title, age_s=_age_s(pid), run_directory=run, is_of_live_run=lives))
    return tuple(found)


def warning_of(found: tuple[Leftover, ...]) -> str | None:
    """One warning about all of them; None when there are none."""
    if not found:
        return None
    left = sorted({Path(one.run_directory).name for one in found if one.run_directory and not one.is_of_live_run})
    commands = " and ".join(f"`eagle3-remote cancel {run}`" for run in left)
    hint = f"; {commands} end{'' if len(left) > 1 else 's'} what is left of ended runs" if left else ""
    names = ", ".join(one.in_words() for one in found[:8])
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    return f"another SGLang server is on this host, which takes memory and time from ours: {names}{more}{hint}"


def _goes_on(run_directory: str) -> bool:
    """Whether the run's supervisor lives, as far as its folder tells here."""
    with contextlib.suppress(OSError, Refusal, FileNotFoundError):
        run = RunDir(Path(run_directory))
        state = read_state(run)
        return state is not None and not state.is_terminal and is_supervised(run, state)
    return False


def _title(pid: int) -> str | None:
    """What to call the process, if it is one of SGLang's."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        line = " ".join(words).strip()
        if line.startswith(_TITLES):
            return line[:60]
        if any(word.endswith(_MODULES) for word in words[:6]):
            return "sglang.launch_server"
    return None


def _age_s(pid: int) -> float | None:
    stat = processes.read_stat(pid)
    if stat is None:
        return None
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - stat.start_ticks / os.sysconf("SC_CLK_TCK"))


def _run_directory(pid: int) -> str | None:
    wanted = f"{processes.MARK}=".encode()
    with contextlib.suppress(OSError):
        for pair in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if pair.startswith(wanted):
                return os.fsdecode(pair[len(wanted) :])
    return None
