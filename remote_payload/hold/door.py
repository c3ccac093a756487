"""The door of a hold: a socket in its folder, where other processes of the same user ask for what it alone can do.

A launch's secrets go through the kernel's memory and never to the disk. One call, one connection: a line with the
verb, the request as JSON, end of file; the answer is one frame as JSON.
"""

import contextlib
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator

from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.runstate import read_spec
from remote_payload.schema import ErrorFrame, Frame, SchemaError, frame_from_json, to_json

NAME = "door"
CALL_S = 10.0
"""For a call to arrive whole."""
ANSWER_S = 30.0
"""For its answer: a supervisor has to report back."""
OPEN_S = 15.0
"""How long a hold that has its lease may take to open its door: an interpreter starts."""
LOOK_S = 0.05
_LONGEST_BYTES = 16 << 20

Answer = Callable[[str, str], str]
"""From a verb and its request's JSON to a frame's JSON. Raises Refusal, SchemaError."""


class Door:
    """The hold's side. Raises OSError where the folder's file system has no sockets."""

    def __init__(self, run: RunDir) -> None:
        self._path = run.path / NAME
        self._path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _short(run) as folder:
            self._socket.bind(f"{folder}/{NAME}")
        self._socket.listen(8)

    def __enter__(self) -> "Door":
        return self

    def __exit__(self, *_: object) -> None:
        self._path.unlink(missing_ok=True)
        self._socket.close()

    def answer_next(self, seconds: float, answer: Answer) -> bool:
        """Answer one call, if one comes in that time; whether one came. A caller that is gone is no error."""
        self._socket.settimeout(seconds)
        try:
            caller, _ = self._socket.accept()
        except TimeoutError:
            return False
        with caller, contextlib.suppress(OSError):
            caller.settimeout(CALL_S)
            verb, _, request = _until_end(caller).partition("\n")
            caller.sendall(_answered(answer, verb, request).encode("utf-8"))
        return True


def _answered(answer: Answer, verb: str, request: str) -> str:
    try:
        return answer(verb, request)
    except Refusal as refusal:
        return to_json(refusal.frame)
    except SchemaError as error:
        return to_json(ErrorFrame(code="bad_request", message=f"`{verb}` request: {error}"))


def ask(run: RunDir, verb: str, request: str) -> Frame | None:
    """What the hold answers; None = it is over, or was before it answered. Raises Refusal, its own among them."""
    until_s = time.monotonic() + OPEN_S
    while (caller := _connected(run)) is None:
        if time.monotonic() > until_s or not _opens(run):
            return None
        time.sleep(LOOK_S)
    with caller:
        try:
            caller.settimeout(ANSWER_S)
            caller.sendall(f"{verb}\n{request}".encode())
            caller.shutdown(socket.SHUT_WR)
            frame = frame_from_json(_until_end(caller))
        except (OSError, SchemaError):  # it ended, or was ended, under our hands
            return None
    if isinstance(frame, ErrorFrame):
        if frame.code == "payload_bug":
            return None
        raise Refusal(frame.code, frame.message, frame.hint)
    return frame


def _opens(run: RunDir) -> bool:
    """Whether a hold has its lease and no door yet. Raises Refusal."""
    try:
        is_hold = read_spec(run).job_kind == "hold"
    except FileNotFoundError:
        return False
    state = current_state(run) if is_hold else None
    return state is not None and state.phase == "running"


def _connected(run: RunDir) -> socket.socket | None:
    """A connection to a process of this very user; None where nobody listens."""
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(run) as folder:
            caller.connect(f"{folder}/{NAME}")
        _pid, uid, _gid = struct.unpack("3i", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    except OSError:
        caller.close()
        return None
    if uid == os.getuid():
        return caller
    caller.close()
    raise Refusal("lease_over", f"another user holds these GPUs: {run.path.name} (uid {uid})")


@contextlib.contextmanager
def _short(run: RunDir) -> Iterator[str]:
    """A name of the folder that fits into a socket's address, which takes 107 bytes (unix(7)). Raises OSError."""
    folder = os.open(run.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}"
    finally:
        os.close(folder)


def _until_end(caller: socket.socket) -> str:
    """Everything up to the other side's end. Raises OSError."""
    received = bytearray()
    while chunk := caller.recv(1 << 16):
        received += chunk
        if len(received) > _LONGEST_BYTES:
            raise OSError("a call longer than any")
    return received.decode("utf-8", "replace")
