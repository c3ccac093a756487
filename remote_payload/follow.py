"""`follow`: state, events and logs of a run as frames, from the laptop's cursors on, until the run is over.

The state file alone says that a run is over; after that every stream is read to its end before the last state goes out.
"""

import base64
import time
from pathlib import Path

from remote_payload import leftovers
from remote_payload.claim import absolute_root
from remote_payload.frames import Send
from remote_payload.heartbeat import beat_age_s
from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.runstate import read_state, run_at
from remote_payload.schema import (
    ChunkFrame,
    Cursor,
    EndFrame,
    FileFrame,
    FollowRequest,
    Manifest,
    ManifestFrame,
    PulseFrame,
    RunState,
    SchemaError,
    StateFrame,
    from_json,
)
from remote_payload.supervisor_exit import SupervisorExit

CHUNK_BYTES = 64 * 1024
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 0.25
LIVENESS_S = 1.0
"""How often the supervisor itself is looked at, besides its state file."""
SLURM_S = 1.0
"""How long a Slurm that does not answer may keep the follower, whose pulses the laptop waits for."""
CLAIM_WAIT_S = 10.0
"""How long a run that is claimed but not started may take to get its first state."""


def follow(request: FollowRequest, send: Send) -> None:
    """Send frames until the run is over, or (`wait=False`) until what is there is sent. Raises Refusal, SchemaError.

    With `until_running` no longer than until its worker runs.
    """
    run = run_at(absolute_root(request.root), request.run_id)
    state = _first_state(run)
    send(StateFrame(state=state))
    streams = _streams(run, request.cursor)
    if request.wait and not _is_enough(state, request):
        state = _Follower(run, send, streams, request).until_over(state)
    if request.collect and state.phase == "lost":
        from remote_payload.lost_result import settle_lost  # noqa: PLC0415 - hashlib, for few

        state = settle_lost(run, state)
    for stream in streams:
        stream.send_rest(send)
    if request.wait or state.is_terminal:
        send(StateFrame(state=state))
    if request.collect and state.is_terminal:
        _send_result(run, request.inline_limit_bytes, send)
    send(EndFrame())


def _first_state(run: RunDir) -> RunState:
    until_s = time.monotonic() + CLAIM_WAIT_S
    while (state := current_state(run, SLURM_S)) is None:
        if time.monotonic() > until_s:
            if leftovers.supervisors(run):
                message = f"the run's state was removed while its supervisor runs on: {run.state}"
                raise Refusal("no_such_run", message, "`cancel` ends what still runs of it; then run again")
            message = f"this run was claimed but never started: {run.path.name}"
            raise Refusal("no_such_run", message, "launch it again with the same spec; it is safe")
        time.sleep(0.02)
    return _told(run, state)


def _told(run: RunDir, state: RunState) -> RunState:
    """A sweep may go on although it is lost."""
    if state.phase == "lost":
        from remote_payload.sweep.driven import as_told  # noqa: PLC0415 - for few

        state = as_told(run, state)
    return state


class _Stream:
    """One growing file and how far it was sent."""

    def __init__(self, name: str, path: Path, offset: int) -> None:
        self._name = name
        self._path = path
        self._offset = offset

    def _send_next(self, send: Send) -> bool:
        """Send one chunk if there is one."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(CHUNK_BYTES)
        except OSError:  # not there (yet), or something else in its place
            return False
        if data:
            text = base64.b64encode(data).decode("ascii")
            send(ChunkFrame(stream=self._name, offset=self._offset, data_base64=text))  # type: ignore[arg-type]
            self._offset += len(data)
        return bool(data)

    def send_rest(self, send: Send) -> bool:
        """Send what is there now, and no more: its writer may be faster than the link. True if anything was sent."""
        try:
            end = self._path.stat().st_size
        except OSError:  # not there (yet), or something else in its place
            return False
        start = self._offset
        while self._offset < end and self._send_next(send):
            pass
        return self._offset > start


def _streams(run: RunDir, cursor: Cursor) -> tuple[_Stream, ...]:
    return (
        _Stream("events", run.events, cursor.events),
        _Stream("stdout", run.stdout, cursor.stdout),
        _Stream("stderr", run.stderr, cursor.stderr),
    )


class _Follower:
    """The waiting part: looks often at first, less often while nothing happens."""

    def __init__(self, run: RunDir, send: Send, streams: tuple[_Stream, ...], request: FollowRequest) -> None:
        self._run = run
        self._send = send
        self._streams = streams
        self._request = request
        self._stamp: tuple[int, int, int] | None = None

    def until_over(self, state: RunState) -> RunState:
        """Stream until the state is one to wait for; returns that state, unsent."""
        pause_s, quiet_since_s, looked_s = FIRST_PAUSE_S, time.monotonic(), time.monotonic()
        with SupervisorExit(state) as supervisor_exit:
            while True:
                is_gone = supervisor_exit.wait(pause_s)
                now_s = time.monotonic()
                look = is_gone or now_s - looked_s >= LIVENESS_S
                looked_s = now_s if look else looked_s
                fresh = self._changed_state(look)
                if fresh is not None and _is_enough(fresh, self._request):
                    return fresh
                is_news = fresh is not None and _says_more(fresh, state)
                if fresh is not None and is_news:
                    state = fresh
                    self._send(StateFrame(state=state))
                sent = [stream.send_rest(self._send) for stream in self._streams]
                if is_news or any(sent):
                    pause_s, quiet_since_s = FIRST_PAUSE_S, now_s
                    continue
                pause_s = min(LONGEST_PAUSE_S, pause_s * 1.2)
                if now_s - quiet_since_s >= self._request.pulse_s:
                    self._send(PulseFrame(heartbeat_age_s=beat_age_s(self._run.heartbeat)))
                    quiet_since_s = now_s

    def _changed_state(self, look: bool) -> RunState | None:
        """The state when its file was replaced, or (`look`) after looking whether the supervisor lives."""
        try:
            found = self._run.state.stat()
        except FileNotFoundError:
            message = f"the run was removed meanwhile: {self._run.path.name}"
            raise Refusal("no_such_run", message, "`cancel` ends what still runs of it") from None
        if look:
            state = current_state(self._run, SLURM_S)
            return state and _told(self._run, state)
        stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        state = read_state(self._run)
        if state is not None and state.slurm is not None and not state.is_terminal:  # an array's: `queued` to its end
            return current_state(self._run, SLURM_S)
        return state and _told(self._run, state)


def _is_enough(state: RunState, request: FollowRequest) -> bool:
    return state.is_terminal or (request.until_running and state.phase == "running")


def _says_more(fresh: RunState, known: RunState) -> bool:
    """Whether it is another state; of a run under Slurm also the same with another word of Slurm."""
    return fresh.sequence != known.sequence or (fresh.slurm is not None and fresh != known)


def _send_result(run: RunDir, limit_bytes: int, send: Send) -> None:
    """The manifest, then the smallest files first while they fit; the laptop fetches the rest another way."""
    manifest = _read_manifest(run)
    send(ManifestFrame(manifest=manifest))
    left = limit_bytes
    for file in sorted(manifest.files if manifest else (), key=lambda file: file.size_bytes):
        if file.size_bytes > left:
            return
        try:
            data = (run.result / file.name).read_bytes()
        except OSError:  # removed since: the laptop sees that it is missing
            continue
        left -= len(data)
        send(FileFrame(name=file.name, data_base64=base64.b64encode(data).decode("ascii")))


def _read_manifest(run: RunDir) -> Manifest | None:
    if run.result.is_symlink():  # what it leads to is not this run's
        return None
    try:
        return from_json(Manifest, run.manifest.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, SchemaError):
        return None
