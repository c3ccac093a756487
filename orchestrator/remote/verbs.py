"""Calls of the payload's verbs: one exec, a request as JSON on stdin, nonce-framed answers on stdout."""

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from orchestrator.errors import (
    ClaimedError,
    Eagle3Error,
    HostNotReadyError,
    InvalidRunError,
    LeaseOverError,
    LinkLostError,
    NotFoundError,
    ProtocolError,
    SweepGoesOnError,
    UsageError,
)
from orchestrator.records import read_frame
from orchestrator.remote.host_shell import EXPAND, NO_HOME, NO_HOME_WORDS
from remote_payload.schema import (
    CancelRequest,
    EndFrame,
    ErrorFrame,
    FollowRequest,
    Frame,
    GatherRequest,
    IdentifyRequest,
    LaunchRequest,
    ProbeRequest,
    StatusRequest,
    SweepRequest,
    to_json,
)
from remote_payload.schema.capture_rule import WiringRequest
from remote_payload.schema.corrected import CorrectRequest
from remote_payload.schema.group import TellRequest
from remote_payload.schema.hold import HoldRequest
from remote_payload.schema.housekeeping import GcRequest
from remote_payload.schema.schedule import ScheduleRequest
from remote_payload.schema.top import TopRequest

if TYPE_CHECKING:
    from orchestrator.remote.link import LineStream, Link

F = TypeVar("F", bound=Frame)

Request = (
    LaunchRequest
    | FollowRequest
    | StatusRequest
    | CancelRequest
    | ProbeRequest
    | TopRequest
    | SweepRequest
    | GatherRequest
    | IdentifyRequest
    | TellRequest
    | ScheduleRequest
    | GcRequest
    | WiringRequest
    | CorrectRequest
    | HoldRequest
)

NOISE_S = 10.0
"""How much longer than silence an answer may take that start-up files print before or into."""
NO_PAYLOAD = 97
NO_PYTHON = 98

# A fixed text: what varies comes as positional parameters, which no shell parses again.
_START = (
    EXPAND
    + """
expand "$2"; payload="$path/payloads/$3.pyz"
expand "$1"; python=$path
command -v "$python" >/dev/null 2>&1 || exit 98
[ -f "$payload" ] || exit 97
exec "$python" -I -S "$payload" "$4"
"""
)


class NotRunError(ProtocolError):
    """The verb certainly did nothing: it could not be run, or did not understand the request."""


class NotAnsweredError(NotRunError):
    """Nothing of the payload came: it may be damaged on the host (see `HostSession`)."""


class PayloadBugError(ProtocolError):
    """The payload broke: a bug of ours, unless it is damaged on the host."""


_ERRORS: dict[str, type[Eagle3Error]] = {
    "bad_request": NotRunError,
    "claimed_by_other_spec": ClaimedError,
    "no_such_run": NotFoundError,
    "root_not_writable": HostNotReadyError,
    "disk_full": HostNotReadyError,
    "supervisor_did_not_start": HostNotReadyError,
    "schedule_refused": HostNotReadyError,
    "sweep_goes_on": SweepGoesOnError,
    "lease_over": LeaseOverError,
    "wrong_place": UsageError,
    "changed_meanwhile": InvalidRunError,
    "payload_bug": PayloadBugError,
}


class PayloadMissingError(Exception):
    """The payload is not on the host (any more): ship it and call again."""


class PythonMissingError(Exception):
    """The interpreter is not on the host (any more): choose one again."""


@dataclass(frozen=True, kw_only=True)
class Installed:
    """A payload on a host and the interpreter that runs it. `root` and `python` may start with `~/`."""

    python: str
    root: str
    sha256: str


def new_nonce() -> str:
    """Marks the lines of one call's answer; unguessable, so that no output of a job can pass for a frame."""
    return secrets.token_hex(16)


def call(link: "Link", installed: Installed, verb: str, request: Request, silence_s: float) -> Iterator[Frame]:
    """Call a verb and yield its frames as they come; the last is the one before EndFrame.

    A verb that follows ends with EndFrame; one that answers once may just exit with 0.
    Raises PayloadMissingError, PythonMissingError; the host's own refusals as ours (ClaimedError, HostNotReadyError,
    NotFoundError); LinkLostError when the answer was cut off or nothing came for `silence_s`; ProtocolError when the
    answer ended without its end.
    """
    argv = ["sh", "-c", _START, "eagle3-remote", installed.python, installed.root, installed.sha256, verb]
    with link.stream(argv, stdin=to_json(request).encode(), silence_s=silence_s) as lines:
        answered, until_s = False, time.monotonic() + silence_s + NOISE_S
        for line in lines:
            frame = _frame(line, request.nonce)
            if frame is not None:
                answered, until_s = True, time.monotonic() + silence_s + NOISE_S
            elif time.monotonic() > until_s:
                raise ProtocolError(f"the host prints and prints, and none of it is the answer of `{verb}`")
            if isinstance(frame, EndFrame):
                return
            if isinstance(frame, ErrorFrame):
                raise _ERRORS.get(frame.code, ProtocolError)(frame.message, hint=frame.hint)
            if frame is not None:
                yield frame
        if not (answered and lines.exit_code == 0):
            _explain_end(lines, installed, verb, answered=answered)


def ask(link: "Link", installed: Installed, verb: str, request: Request, kind: type[F], silence_s: float) -> F:
    """Call a verb that answers with one frame of `kind`."""
    answer = None
    for frame in call(link, installed, verb, request, silence_s):
        if isinstance(frame, kind):
            answer = frame
    if answer is None:
        raise ProtocolError(f"`{verb}` must answer with a {kind.__name__}, found: none")
    return answer


def _frame(line: bytes, nonce: str) -> Frame | None:
    """The frame in a line, None for noise (banners, start-up files that print)."""
    mark = f"{nonce} ".encode()
    return read_frame(line[len(mark) :], where="answer of the host") if line.startswith(mark) else None


def _explain_end(lines: "LineStream", installed: Installed, verb: str, *, answered: bool) -> None:
    """The stream ended without an EndFrame: say why."""
    if lines.exit_code == NO_PAYLOAD:
        raise PayloadMissingError
    if lines.exit_code == NO_PYTHON:
        raise PythonMissingError
    if lines.exit_code == NO_HOME:
        raise HostNotReadyError(NO_HOME_WORDS)
    if lines.exit_code is None:
        raise LinkLostError(f"the answer of `{verb}` was cut off")
    tail = lines.stderr_tail.decode(errors="replace").strip()
    kind = ProtocolError if answered else NotAnsweredError
    raise kind(
        f"`{installed.python}` could not run the payload's `{verb}`, exit code {lines.exit_code}: "
        f"{tail or 'no message'}",
        hint="`eagle3-remote hosts check` shows the interpreters of the host; set `python` in eagle3.toml",
    )
