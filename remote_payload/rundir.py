"""The names inside a run directory, in one place, and the atomic write every file there goes through."""

import os
from dataclasses import dataclass
from pathlib import Path


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


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data`: temporary name in the same folder, fsync, rename, fsync of the folder. Mode 0600.

    A reader sees the old content or the new, also after a power cut. Raises OSError (nothing half-written is left).
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # Windows laptops cannot open a folder; the rename alone has to do there
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
