"""A server's process: started and ended through its guard, behind the `exec_prefix`; heard through its log."""

import contextlib
import dataclasses
import json
import os
import secrets
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from remote_payload import processes
from remote_payload.failure import JobFailure, server_failure
from remote_payload.sglang_bench.failures import explain
from remote_payload.sglang_bench.log import ServerLog

GUARD_PATIENCE_S = 30.0
"""How long the guard may take to tell that the server is started; entering a container can be slow."""
OVER_PATIENCE_S = 15.0
"""Beyond the grace: until the guard has killed what did not end by itself, and told so."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a server's process came to its end."""

    how: Literal["term", "kill", "died"]
    seconds: float
    survivors: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be run."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Beside what it inherits."""
    files: Mapping[str, str] | None = None
    """Texts by name, put into a folder of its own, in which it is run; None: it needs no folder."""
    wanted: tuple[str, ...] = ()
    """Names in that folder whose texts are to come back. The folder is removed."""


class Process:
    """A process (a server, or a tool) and everything below it."""

    def __init__(
        self,
        prefix: tuple[str, ...],
        order: Order,
        path: Path,
        *,
        hidden: tuple[str, ...] = (),
        on_line: Callable[[str, float], None] = lambda _line, _now_s: None,
    ) -> None:
        """Start it; its log goes to `path` without the values `hidden`. Raises JobFailure(server) when it cannot be."""
        token = f"eagle3-guard-{secrets.token_hex(8)}"
        source = resources.files("remote_payload.sglang_bench").joinpath("guard.py").read_text(encoding="utf-8")
        argv = order.argv
        command = [*prefix, argv[0], "-c", source]
        try:
            self._guard = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=path.parent,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise server_failure(
                f"the server cannot be started, {error.strerror}: {command[0]}",
                hint="check the host's `exec_prefix` and the job's `server_python`",
            ) from None
        self.argv = argv
        self._entered_by = " ".join([*prefix, argv[0]])
        self._known: dict[int, int] = {}
        assert self._guard.stdin is not None and self._guard.stdout is not None  # noqa: PT018 - both are pipes
        self.log = ServerLog(self._guard.stdout, path, token, hidden, on_line)
        os.set_blocking(self._guard.stdin.fileno(), False)
        self._say(json.dumps({"token": token, **dataclasses.asdict(order)}), GUARD_PATIENCE_S)
        started = self._await("started", GUARD_PATIENCE_S)
        if started is None:
            raise self._not_started()
        self.pid: int | None = started["pid"]

    @property
    def has_ended(self) -> bool:
        """Whether the server's main process is gone (or whoever could have told)."""
        return self.log.said("ended") is not None or self.log.is_over

    def ending(self) -> str:
        """In words, how it ended."""
        message = self.log.said("ended")
        if message is None:
            return "its guard was cut off" if self.log.is_over else "it runs"
        code = int(message["code"])
        return f"it ended with exit code {code}" if code >= 0 else f"it was ended by signal {-code}"

    @property
    def exit_code(self) -> int | None:
        """Of the main process; negative: the signal that ended it. None: it runs, or nobody could tell."""
        message = self.log.said("ended")
        return None if message is None else int(message["code"])

    def returned(self) -> dict[str, str]:
        """After `end`: the wanted files that it left, by name."""
        parts: dict[str, list[str]] = {}
        for message in self.log.guard:
            if message.get("guard") == "file":
                parts.setdefault(message["name"], []).append(message["part"])
        return {name: "".join(some) for name, some in parts.items()}

    def failure(self, what: str | None = None) -> JobFailure:
        """Why it failed, as its log says."""
        self.log.join(1.0 if self.log.said("over") else 0.2)
        failure = explain(self.log.tail, what or self.ending()).failure
        where = f"its whole log, on the server: {self.log.path}"
        return JobFailure(dataclasses.replace(failure, details=(*failure.details, where)))

    def tree(self) -> tuple[int, ...]:
        """Its processes as this host's /proc shows them: not those behind `docker exec`, which are not below us."""
        found = processes.descendants(self._guard.pid)
        for pid in found:
            stat = processes.read_stat(pid)
            if stat is not None:
                self._known[pid] = stat.start_ticks
        return (self._guard.pid, *found)

    def end(self, grace_s: float) -> Ended:
        """Ask the guard to end it, and see that nothing is left; the last resort is killing what we see ourselves."""
        began = time.monotonic()
        self.tree()
        self._say(f"stop {grace_s}", 1.0)
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        over = self._await("over", grace_s + OVER_PATIENCE_S)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._guard.wait(2.0 if over else 0.1)
        left = self._kill_known()
        if self._guard.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(self._guard.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._guard.wait(5.0)
        self.log.join(2.0)
        survivors = {*left, *map(int, over["survivors"] if over else ())}
        return Ended(
            how="kill" if over is None else over["how"],
            seconds=time.monotonic() - began,
            survivors=tuple(sorted(survivors)),
        )

    def _say(self, line: str, patience_s: float) -> None:
        """To the guard, as far as it listens: a prefix that hangs takes no long order, and its output says why."""
        assert self._guard.stdin is not None
        if self._guard.stdin.closed:
            return
        data, until_s = memoryview(line.encode("ascii") + b"\n"), time.monotonic() + patience_s
        while data and (left_s := until_s - time.monotonic()) > 0:
            if select.select([], [self._guard.stdin], [], left_s)[1]:
                try:
                    data = data[os.write(self._guard.stdin.fileno(), data) :]
                except BlockingIOError:
                    continue
                except OSError:  # it is gone already
                    return

    def _kill_known(self) -> tuple[int, ...]:
        """Kill those of the tree that still live; returns those that cannot be killed."""
        until_s = time.monotonic() + 5.0
        known = {pid: ticks for pid, ticks in self._known.items() if pid != self._guard.pid}
        while True:
            left = tuple(pid for pid, ticks in known.items() if processes.is_running(pid, ticks))
            if not left or time.monotonic() > until_s:
                return left
            for pid in left:
                with contextlib.suppress(PermissionError):
                    processes.send_signal(pid, known[pid], signal.SIGKILL)
            time.sleep(0.05)

    def _await(self, what: str, patience_s: float) -> dict[str, Any] | None:
        until_s = time.monotonic() + patience_s
        with self.log.changed:
            while (message := self.log.said(what)) is None and not self.log.is_over:
                left_s = until_s - time.monotonic()
                if left_s <= 0 or self.log.said("failed") is not None:
                    break
                self.log.changed.wait(left_s)
            return message

    def _not_started(self) -> JobFailure:
        failed = self.log.said("failed")
        self.end(0.0)
        if failed is not None:
            return server_failure(
                f"the server cannot be started, {failed['problem']}", hint="check the job's `server_python`"
            )
        return explain(self.log.tail, f"it was not started by: {self._entered_by}")
