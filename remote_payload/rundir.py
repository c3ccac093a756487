"""The names inside a run directory, in one place, and the atomic write every file there goes through."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

RUN_ID_PATTERN = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
"""A run id names a directory and stands in command lines."""


@dataclass(frozen=True)
class Root:
    """`<root>` of the tool on a host; mode 0700, never /tmp."""

    path: Path

    @classmethod
    def at(cls, text: str) -> "Root":
        """Expand `~` on this machine."""
        return cls(Path(os.path.expanduser(text)))

    @property
    def payloads(self) -> Path:
        """Payloads, one `<sha256>.pyz` each."""
        return self.path / "payloads"

    @property
    def runs(self) -> Path:
        """Run directories, one a run id."""
        return self.path / "runs"

    def run(self, run_id: str) -> "RunDir":
        """The directory of one run; `run_id` must have passed `require_run_id`."""
        return RunDir(self.runs / run_id)


@dataclass(frozen=True)
class RunDir:
    """One run's directory: spec in, logs, state, result out. Also the layout of a run collected on the laptop."""

    path: Path

    @property
    def spec(self) -> Path:
        """RunSpec, written first, never changed."""
        return self.path / "spec.json"

    @property
    def state(self) -> Path:
        """RunState, replaced atomically."""
        return self.path / "state.json"

    @property
    def events(self) -> Path:
        """Event lines, append only."""
        return self.path / "events.jsonl"

    @property
    def stdout(self) -> Path:
        """The worker's standard output."""
        return self.path / "stdout.log"

    @property
    def stderr(self) -> Path:
        """The worker's standard error."""
        return self.path / "stderr.log"

    @property
    def heartbeat(self) -> Path:
        """Touched by the supervisor every few seconds."""
        return self.path / "heartbeat"

    @property
    def claim(self) -> Path:
        """Locked (flock) while somebody claims, launches or settles the run; the kernel frees it with its holder."""
        return self.path / "claim"

    @property
    def reserve(self) -> Path:
        """A few blocks set aside, given back so that the final state fits on a full disk."""
        return self.path / "reserve"

    @property
    def failure(self) -> Path:
        """Failure, written by a worker that gives up for a reason it can name."""
        return self.path / "failure.json"

    @property
    def partial(self) -> Path:
        """What an unfinished drafter test has measured so far, a line each; gone once its result is complete."""
        return self.path / "partial.jsonl"

    @property
    def cancel(self) -> Path:
        """Its presence asks the supervisor to stop the run."""
        return self.path / "cancel"

    @property
    def result(self) -> Path:
        """The folder of result files."""
        return self.path / "result"

    @property
    def manifest(self) -> Path:
        """Manifest, written last of all; without it the result is not complete."""
        return self.result / "manifest.json"


def write_atomically(path: Path, data: bytes, *, durable: bool = True, mode: int = 0o600) -> None:
    """Replace `path` by `data`: temporary name in the same folder, fsync, rename, fsync of the folder.

    `mode` as the umask leaves it.

    A reader sees the old content or the new, also after a power cut. `durable=False` leaves out the syncs, some
    milliseconds each, where something durable follows soon: only a power cut may then lose or empty the file.
    Raises OSError (nothing half-written is left).
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable and os.name == "posix":  # Windows laptops cannot open a folder; the rename alone has to do there
        sync(path.parent)


def sync(path: Path) -> None:
    """Bring a file or the entries of a folder to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def set_aside(path: Path, size_bytes: int) -> None:
    """A file of blocks that nothing else gets. Raises OSError where the disk has not so many."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size_bytes)
    finally:
        os.close(descriptor)
