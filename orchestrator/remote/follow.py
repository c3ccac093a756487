"""Frames of a run -> files of the local run directory, and updates for whoever watches.

The byte cursors of the streams begin at the sizes of the local files, so a follow that was interrupted - a broken link,
a laptop that slept, another process - goes on where the last one stopped. Several processes may follow one run: each
has cursors of its own and writes every byte at its own place, so that the files stay the host's, whoever is faster.
"""

import base64
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from orchestrator.errors import ProtocolError, StoreError
from orchestrator.records import read_record, record_bytes
from orchestrator.remote.host_claims import is_plausible, require_manifest, require_state
from orchestrator.remote.local_disk import local_disk
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
    ManifestFrame,
    PulseFrame,
    RunState,
    StateFrame,
)

# The supervisor touches its heartbeat every 2 s; this long without one is worth telling.
SILENT_SUPERVISOR_S = 30.0
LONGEST_EVENT_BYTES = 2**20


class Receiver:
    """One run's frames on their way into `run_dir`. Survives reconnects; `state` and `manifest` are the last seen.

    asked: whether the launch was sent; from then on the host may have launched. launched: the host said so.
    has_none: it was asked for the result, and has none.
    """

    def __init__(self, run_dir: RunDir, shown: Cursor | None = None) -> None:
        """`run_dir` bears the run's id. `shown`: what was seen of stdout and stderr; None: all that is here."""
        self.run_dir = run_dir
        self.state: RunState | None = None
        self.manifest: Manifest | None = None
        self.has_none = False
        self.asked = False
        self.launched = False
        self._told_silence = False
        self._bad_events = 0
        with local_disk(run_dir.path):
            events = run_dir.events.read_bytes() if run_dir.events.exists() else b""
            self._partial_event = events.rpartition(b"\n")[2]
            self._at = {
                "events": len(events),
                "stdout": shown.stdout if shown else _size(run_dir.stdout),
                "stderr": shown.stderr if shown else _size(run_dir.stderr),
            }

    def cursor(self) -> Cursor:
        """How much of each stream this process has seen."""
        return Cursor(**self._at)

    def take(self, frames: Iterable[Frame]) -> Iterator[Update]:
        """Store every frame and yield what is worth telling.

        Raises ProtocolError on a gap in a stream and on what cannot be this run's; StoreError where the disk refuses.
        """
        for frame in frames:
            if isinstance(frame, LaunchedFrame):
                self.launched = True
                yield Note(name="launched", text=_launched(frame))
                yield from self._take_state(frame.state)
            elif isinstance(frame, StateFrame):
                yield from self._take_state(frame.state)
            elif isinstance(frame, ChunkFrame):
                yield from self._take_chunk(frame)
            elif isinstance(frame, ManifestFrame):
                self._take_manifest(frame)
            elif isinstance(frame, FileFrame):
                self._take_file(frame)
            elif isinstance(frame, PulseFrame):
                yield from self._take_pulse(frame)

    def _take_state(self, state: RunState) -> Iterator[Update]:
        require_state(state, self.run_dir.path.name)
        self.launched = True
        if state != self.state:
            with local_disk(self.run_dir.state):
                write_atomically(self.run_dir.state, record_bytes(state), durable=False)  # a copy of the record's
            self.state = state
            yield StateChanged(state=state)

    def _take_chunk(self, frame: ChunkFrame) -> Iterator[Update]:
        have, path = self._at[frame.stream], getattr(self.run_dir, frame.stream)
        if not 0 <= frame.offset <= have:
            raise ProtocolError(f"{path.name}: expected bytes from {have} on, found: {frame.offset}")
        data = _decode(frame.data_base64)[have - frame.offset :]
        if not data:
            return
        _write_at(path, have, data)
        self._at[frame.stream] = have + len(data)
        if frame.stream == "events":
            yield from self._events(data)
        else:
            yield LogArrived(stream=frame.stream, data=data)

    def _events(self, data: bytes) -> Iterator[Update]:
        *lines, self._partial_event = (self._partial_event + data).split(b"\n")
        if len(self._partial_event) > LONGEST_EVENT_BYTES:
            raise ProtocolError(f"an event of the job must end within {LONGEST_EVENT_BYTES} bytes")
        for line in lines:
            try:
                event = read_record(Event, line, where="event")
                if is_plausible(event):
                    yield Progressed(event=event)
                    continue
                problem = "a number that cannot be shown"
            except ProtocolError as error:
                problem = error.message
            self._bad_events += 1
            if self._bad_events == 1:  # a worker that was killed may leave one; they are no reason to lose the result
                yield Note(name="events", text=f"warning: an event line cannot be read and is skipped: {problem}")
            elif self._bad_events in (10, 100, 1000):
                yield Note(name="events", text=f"warning: {self._bad_events} event lines could not be read so far")

    def _take_manifest(self, frame: ManifestFrame) -> None:
        run_id = self.run_dir.path.name
        self.manifest = None if frame.manifest is None else require_manifest(frame.manifest, run_id)
        self.has_none = self.manifest is None

    def _take_file(self, frame: FileFrame) -> None:
        """Keep what the manifest lists; `collect` checks the content and fetches what is still missing."""
        listed = {file.name for file in self.manifest.files} if self.manifest else set()
        if frame.name not in listed:
            return
        path, data = self.run_dir.result / frame.name, _decode(frame.data_base64)
        with local_disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, data, durable=False)  # `collect` checks the hashes, and the manifest comes last

    def _take_pulse(self, frame: PulseFrame) -> Iterator[Update]:
        age = frame.heartbeat_age_s
        silent = age is not None and age > SILENT_SUPERVISOR_S
        if silent and not self._told_silence:
            yield Note(name="supervisor", text=f"the supervisor on the host has been silent for {age:.0f} s")
        self._told_silence = silent


def _launched(frame: LaunchedFrame) -> str:
    if frame.state.slurm is not None:
        return f"{'already launched, ' if frame.adopted else ''}Slurm job {frame.state.slurm.job_id}"
    pid = frame.state.supervisor_pid
    return f"already launched, adopted (supervisor {pid})" if frame.adopted else f"supervisor {pid} detached"


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:  # binascii.Error is one, and so is what text beyond ASCII gets
        raise ProtocolError(f"a chunk must be base64, found: {error}") from None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _write_at(path: Path, offset: int, data: bytes) -> None:
    """Write bytes of a stream at their own place: what another process wrote there are the same bytes."""
    with local_disk(path), os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
        if os.fstat(file.fileno()).st_size < offset:
            raise StoreError(f"{path}: somebody shortened or removed it meanwhile, expected at least {offset} bytes")
        file.seek(offset)
        file.write(data)
