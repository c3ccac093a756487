"""Telling somebody that a run is over: the desktop, a command, a webhook, apprise. Once for each run and laptop.

What fails is tried again a few times at once, and when the end is seen next; what may have told all the same is not.

Nothing here raises, and nothing changes what became of the run or a command's exit code: what fails is a sentence.
"""

import logging
import os
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException, HTTPMessage
from typing import IO, ParamSpec

from orchestrator.config import NotifyConfig
from orchestrator.errors import StoreError
from orchestrator.records import RunRecord
from orchestrator.store import Store
from orchestrator.store.telling import claim, settle
from remote_payload.rundir import RunDir
from remote_payload.schema import SweepAttempt, to_json
from remote_payload.schema.ending import Ending, ending_of

LONGEST_S = 30.0
ANSWER_S = 10.0
TRIES = 3
"""At once: of a webhook that cannot be reached or is out of order, of a command that ends with another code than 0."""
FIRST_PAUSE_S = 0.2
_SCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


P = ParamSpec("P")


class NotToldError(Exception):
    """A way of telling that failed, in words without the address."""

    may_have_told = False


class LeftBehindError(NotToldError):
    """One that took too long: it may have told, and is not tried again."""

    may_have_told = True


class _EndedBadlyError(NotToldError):
    """A command that said by its exit code that it did not tell."""


def notify(
    record: RunRecord, store: Store, config: NotifyConfig, attempts: Sequence[SweepAttempt] = ()
) -> tuple[str, ...]:
    """Tell everybody of `[notify]` that a run is over, who was not yet; what failed, a sentence each.

    `attempts`: of a sweep, as far as this laptop knows.
    """
    if config.is_empty or record.state is None or not record.state.is_terminal:
        return ()
    ending = ending_of(record.spec, record.state, record.host.name, "laptop", attempts)
    return tell(ending, store.run_dir(record.run_id), store, config)


def tell(ending: Ending, run: RunDir, store: Store, config: NotifyConfig) -> tuple[str, ...]:
    """The same of any ending; in the folder `run` it is kept who was told of it."""
    ways = _ways(config)
    try:
        due = claim(store.home, run, tuple(ways))
    except StoreError as error:
        return (f"nobody is told of the end of {ending.run_id}: {error.message}",)
    failed = {way: problem for way in due if (problem := _tried(ways[way], ending)) is not None}
    problems = {way: str(problem) for way, problem in failed.items()}
    told = [f"the end of {ending.run_id} could not be told by {way}: {problem}" for way, problem in problems.items()]
    try:
        settle(store.home, run, due, problems, [way for way, problem in failed.items() if problem.may_have_told])
    except StoreError as error:
        told.append(f"that is not kept, and not tried again: {error.message}")
    return tuple(told)


def _ways(config: NotifyConfig) -> dict[str, Callable[[Ending], None]]:
    ways: dict[str, Callable[[Ending], None]] = {}
    if config.desktop:
        ways["desktop"] = _on_desktop
    if config.command:
        ways["command"] = lambda ending: _run(config.command, to_json(ending).encode() + b"\n")
    if (name := config.webhook) is not None:
        ways["webhook"] = lambda ending: _bounded(post, _value(name, os.environ), to_json(ending).encode())
    if (names := config.apprise) is not None:
        ways["apprise"] = lambda ending: _bounded(_by_apprise, _value(names, os.environ), ending)
    return ways


def _bounded(one: Callable[P, None], *arguments: P.args, **named: P.kwargs) -> None:
    """Call it, for `LONGEST_S` at most: an answer that comes a byte at a time keeps every time-out of a socket.

    Raises what it raises, NotToldError where it is left behind.
    """
    problems: list[NotToldError] = []

    def told() -> None:
        try:
            one(*arguments, **named)
        except NotToldError as problem:
            problems.append(problem)

    telling = threading.Thread(target=told, daemon=True)
    telling.start()
    telling.join(LONGEST_S)
    if telling.is_alive():
        raise LeftBehindError(f"it took longer than {LONGEST_S:.0f} s")
    for problem in problems:
        raise problem


def _tried(way: Callable[[Ending], None], ending: Ending) -> NotToldError | None:
    try:
        way(ending)
    except NotToldError as problem:
        return problem
    return None


def _value(name: str, environment: Mapping[str, str]) -> str:
    if not environment.get(name):
        raise NotToldError(f"the environment variable that holds the address is not set: {name}")
    return environment[name]


def _on_desktop(ending: Ending) -> None:
    title = f"eagle3-remote: {ending.run_id} {ending.phase.replace('_', ' ')}"
    if sys.platform == "darwin":
        lines = [word for line in _SCRIPT for word in ("-e", line)]
        _run(["osascript", *lines, title, ending.text], b"")
    elif shutil.which("notify-send") is None:
        raise NotToldError("this laptop has no notify-send")
    else:
        _run(["notify-send", "--app-name=eagle3-remote", title, ending.text], b"")


def _run(command: "tuple[str, ...] | list[str]", data: bytes) -> None:
    """Run it, again after a moment where it ends badly. Raises NotToldError."""
    import stamina  # noqa: PLC0415 - few have a command

    stamina.instrumentation.set_on_retry_hooks(())
    for attempt in stamina.retry_context(
        on=_EndedBadlyError, attempts=TRIES, timeout=LONGEST_S, wait_initial=FIRST_PAUSE_S
    ):
        with attempt:
            _run_once(command, data)


def _run_once(command: "tuple[str, ...] | list[str]", data: bytes) -> None:
    """Raises NotToldError. What it prints goes nowhere, for our own output may be read by a program."""
    try:
        done = subprocess.run(
            [os.path.expanduser(command[0]), *command[1:]],
            input=data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LeftBehindError(f"`{command[0]}` took longer than {LONGEST_S:.0f} s") from None
    except (OSError, ValueError) as error:
        raise NotToldError(f"`{command[0]}` cannot be run: {error}") from None
    if done.returncode:
        raise _EndedBadlyError(f"`{command[0]}` ended with exit code {done.returncode}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The address is the secret and the ending is for it alone: neither goes to another place."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Never."""


def post(address: str, data: bytes) -> None:
    """POST JSON; again after a moment where nobody answers or the other side is out of order. Raises NotToldError."""
    import stamina  # noqa: PLC0415 - few notifications are webhooks

    try:
        parts = urllib.parse.urlsplit(address)
        if parts.scheme not in ("http", "https"):
            raise NotToldError(f"expected an http or https address, found one of: {parts.scheme or 'nothing'}")
        if "@" in parts.netloc:
            raise NotToldError("expected an address without user and password: `command` and curl send those")
        request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method="POST")  # noqa: S310
    except ValueError:
        raise NotToldError("expected an http or https address, found none") from None
    stamina.instrumentation.set_on_retry_hooks(())  # what it logs holds the request, and with it the address
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        for attempt in stamina.retry_context(
            on=_is_passing, attempts=TRIES, timeout=LONGEST_S, wait_initial=FIRST_PAUSE_S
        ):
            with attempt, opener.open(request, timeout=ANSWER_S) as answer:
                answer.read(1)
    except urllib.error.HTTPError as error:
        words = "wants to send us elsewhere, and that is not followed" if 300 <= error.code < 400 else "refuses it"
        error.close()
        raise NotToldError(f"the address {words}: HTTP {error.code}") from None
    except urllib.error.URLError as error:
        raise NotToldError(f"nobody answers: {error.reason}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise NotToldError(f"no answer that is HTTP: {type(error).__name__}") from None  # its text may hold the address


def _is_passing(error: Exception) -> bool:
    """Whether it may be otherwise in a moment."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code >= 500 or error.code == 429
    return isinstance(error, OSError)


def _by_apprise(addresses: str, ending: Ending) -> None:
    try:
        import apprise  # noqa: PLC0415 - an extra
    except ImportError:
        raise NotToldError("apprise is not installed: pip install 'eagle3-remote[apprise]'") from None
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)  # what it logs may hold an address
    told = apprise.Apprise()
    if not told.add(addresses.split()):
        raise NotToldError("apprise does not understand one of the addresses")
    title = f"eagle3-remote: {ending.run_id} {ending.phase.replace('_', ' ')}"
    if not told.notify(title=title, body=ending.text):
        raise NotToldError("apprise could not deliver it everywhere")
