"""Frames of a run -> files of the local run directory, and updates for whoever watches.

The byte cursors of the streams are the sizes of the local files, so a follow that was interrupted - a broken link, a
laptop that slept, another process - goes on where the last one stopped.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator
from pathlib import Path

from orchestrator.errors import ProtocolError
from orchestrator.records import read_record, record_bytes
from orchestrator.updates import LogArrived, Note, Progressed, StateChanged, Update
from remote_payload.rundir import RunDir, write_atomically
from remote_payload.schema import (
    ChunkFrame,
    Cursor,
    Event,
    FileFrame,
    Frame,
    LaunchedFrame,
    Manifest,
    ManifestFile,
    ManifestFrame,
    PulseFrame,
    RunState,
    StateFrame,
)

# The supervisor touches its heartbeat every 2 s; this long without one is worth telling.
SILENT_SUPERVISOR_S = 30.0


class Receiver:
    """One run's frames on their way into `run_dir`. Survives reconnects; `state` and `manifest` are the last seen."""

    def __init__(self, run_dir: RunDir) -> None:
        self.run_dir = run_dir
        self.state: RunState | None = None
        self.manifest: Manifest | None = None
        self.launched = False
        self._told_silence = False
        self._partial_event = _after_last_newline(run_dir.events)

    def cursor(self) -> Cursor:
        """How much of each stream is already here."""
        return Cursor(
            events=_size(self.run_dir.events), stdout=_size(self.run_dir.stdout), stderr=_size(self.run_dir.stderr)
        )

    def take(self, frames: Iterable[Frame]) -> Iterator[Update]:
        """Store every frame and yield what is worth telling. Raises ProtocolError on a gap in a stream."""
        for frame in frames:
            if isinstance(frame, LaunchedFrame):
                self.launched = True
                yield Note(name="launched", text=_launched(frame))
            elif isinstance(frame, StateFrame):
                yield from self._take_state(frame.state)
            elif isinstance(frame, ChunkFrame):
                yield from self._take_chunk(frame)
            elif isinstance(frame, ManifestFrame):
                self.manifest = frame.manifest
            elif isinstance(frame, FileFrame):
                self._take_file(frame)
            elif isinstance(frame, PulseFrame):
                yield from self._take_pulse(frame)

    def _take_state(self, state: RunState) -> Iterator[Update]:
        self.launched = True
        if state != self.state:
            self.state = state
            write_atomically(self.run_dir.state, record_bytes(state))
            yield StateChanged(state=state)

    def _take_chunk(self, frame: ChunkFrame) -> Iterator[Update]:
        path = getattr(self.run_dir, frame.stream)
        data = _append(path, frame.offset, _decode(frame.data_base64))
        if frame.stream == "events":
            yield from self._events(data)
        elif data:
            yield LogArrived(stream=frame.stream, data=data)

    def _events(self, data: bytes) -> Iterator[Update]:
        *lines, self._partial_event = (self._partial_event + data).split(b"\n")
        for line in lines:
            yield Progressed(event=read_record(Event, line, where=str(self.run_dir.events)))

    def _take_file(self, frame: FileFrame) -> None:
        safe = ManifestFile(name=frame.name, size_bytes=0, sha256="")  # refuses names that leave the folder
        path = self.run_dir.result / safe.name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, _decode(frame.data_base64))

    def _take_pulse(self, frame: PulseFrame) -> Iterator[Update]:
        age = frame.heartbeat_age_s
        silent = age is not None and age > SILENT_SUPERVISOR_S
        if silent and not self._told_silence:
            yield Note(name="supervisor", text=f"the supervisor on the host has been silent for {age:.0f} s")
        self._told_silence = silent


def _launched(frame: LaunchedFrame) -> str:
    pid = frame.state.supervisor_pid
    return f"already launched, adopted (supervisor {pid})" if frame.adopted else f"supervisor {pid} detached"


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ProtocolError(f"a chunk must be base64, found: {error}") from None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _append(path: Path, offset: int, data: bytes) -> bytes:
    """Append what is new of `data`, which starts at `offset` of the stream; returns the new part."""
    have = _size(path)
    if offset > have:
        raise ProtocolError(f"{path.name}: expected bytes from {have} on, found: {offset}")
    new = data[have - offset :]
    with path.open("ab") as file:
        file.write(new)
    return new


def _after_last_newline(path: Path) -> bytes:
    return path.read_bytes().rpartition(b"\n")[2] if path.exists() else b""
