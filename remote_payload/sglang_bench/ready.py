"""Waiting until a server of ours is really ready.

Its own line "fired up and ready to roll" is no proof: with its port taken it talks to whoever has the port and prints
it all the same. Ready is: our process lives, what listens on the port is ours where /proc tells, `/server_info` names
our model, and `/health` answers 200, which a newer server does by generating a token.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remote_payload.failure import JobFailure, server_failure
from remote_payload.sglang_bench import ports
from remote_payload.sglang_bench.asking import ask
from remote_payload.sglang_bench.failures import find
from remote_payload.sglang_bench.info import server_info
from remote_payload.sglang_bench.launch import Process

PAUSE_S = 0.5
HEALTH_S = 30.0
"""A server before 0.5.10 gives up on its own health check after 20 s."""
DOUBT_S = 20.0
"""Where neither /proc nor the log tells whose the port is: time for our server to fail at taking it, and to say so."""
UNREACHABLE_S = 30.0
"""After our server told that it listens, connections are refused no longer than this, however long its warm-up is."""
LISTENS = "Uvicorn running on"
FATAL = {"port_taken"}
"""Signatures that end the wait while the process still lives."""


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One look over HTTP: the server's info when it is ready, else why it is not."""

    info: Mapping[str, Any] | None = None
    waiting_for: str = ""
    answered: bool = True


def wait_until_ready(
    process: Process, url: str, key: str | None, model: str, timeout_s: float, phase: Callable[[], str]
) -> Mapping[str, Any]:
    """Returns `/server_info` of the ready server. Raises JobFailure(server) as soon as it cannot become ready any more.

    `phase` names where it is, for the message of a timeout.
    """
    until_s = time.monotonic() + timeout_s
    probe, answered_s, unheard_s = Probe(waiting_for="the first answer"), until_s, until_s
    port = int(url.rpartition(":")[2])
    while time.monotonic() < until_s:
        looking = _Looking(url, key, model)
        while looking.is_alive() and not process.has_ended and time.monotonic() < until_s:
            looking.join(0.1)
        _check(process)
        probe = looking.found or probe
        if probe.info is not None:
            answered_s = min(answered_s, time.monotonic())
            if _is_ours(process, port) or time.monotonic() - answered_s > DOUBT_S:
                return probe.info
        unheard_s = time.monotonic() if probe.answered or not _listens(process) else unheard_s
        if time.monotonic() - unheard_s > UNREACHABLE_S:
            raise _unreachable(process, url)
        with process.log.changed:
            process.log.changed.wait_for(lambda: process.has_ended, PAUSE_S)
    what = f"it was not ready after {timeout_s:g} s, in phase `{phase()}`; waiting for: {probe.waiting_for}"
    raise process.failure(what)


def look(url: str, key: str | None, model: str | None) -> Probe:
    """One look; `model` None = any will do."""
    try:
        status, _ = ask(url, "/health", key, timeout_s=HEALTH_S)
        if status != 200:
            return Probe(waiting_for=f"/health, which answers HTTP {status}")
        info = server_info(url, key, HEALTH_S)
    except OSError as error:
        return Probe(waiting_for=f"an answer of {url}: {error}", answered=False)
    if info is None:
        return Probe(waiting_for="/server_info, which does not answer with JSON")
    shown = info.get("model_path")
    if model is not None and shown is not None and str(shown).rstrip("/") != model.rstrip("/"):
        return Probe(waiting_for=f"our server; the one at {url} serves another model: {shown}")
    return Probe(info=info)


class _Looking(threading.Thread):
    """A look in a thread of its own, so that a slow answer hides no death."""

    def __init__(self, url: str, key: str | None, model: str) -> None:
        super().__init__(name="look at the server", daemon=True)
        self._asked = (url, key, model)
        self.found: Probe | None = None
        self.start()

    def run(self) -> None:
        self.found = look(*self._asked)


def _check(process: Process) -> None:
    if process.has_ended:
        raise process.failure(f"{process.ending()}, before it was ready")
    found = find(tuple(process.log.tail))
    if found is not None and found[0].name in FATAL:
        raise process.failure("it cannot listen")


def _is_ours(process: Process, port: int) -> bool:
    """Whether it is our server that answers. Raises JobFailure(server) when it surely is another process."""
    tree = process.tree()
    owners = ports.listeners(port, tree)
    if owners:
        return True
    if owners == () and any(_words(pid)[1:] == process.argv[1:] for pid in tree):
        raise port_taken(port)
    # Behind `docker exec` the server is not below us; uvicorn tells that it has the port, unless its log is off.
    return _listens(process)


def _listens(process: Process) -> bool:
    return any(LISTENS in line for line in tuple(process.log.tail))


def _unreachable(process: Process, url: str) -> JobFailure:
    return server_failure(
        f"the server says that it listens, and cannot be reached from this host (unreachable): {url}",
        hint="a container needs the host's network (`--network host`), or a published port: then give that as `port` "
        "and `--host 0.0.0.0` in `server_args`; on another node start it yourself and use `attach_url`",
        details=tuple(line for line in process.log.tail if LISTENS in line),
    )


def _words(pid: int) -> tuple[str, ...]:
    try:
        return tuple(Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1])
    except OSError:
        return ()


def port_taken(port: int) -> JobFailure:
    """Another process has the port."""
    return server_failure(
        f"another process listens on the server's port (port_taken): {port}",
        hint="leave `port` out to have a free one chosen, or end the process that holds it",
    )
