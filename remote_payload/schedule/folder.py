"""A schedule's folder on its host: `<root>/schedules/<id>/` with what is launched, what became of it, the payload."""

import contextlib
import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from remote_payload.refusal import Refusal, disk_refusal
from remote_payload.rundir import write_atomically
from remote_payload.schema import SchemaError, from_json, to_json
from remote_payload.schema.run import RUN_ID_PATTERN
from remote_payload.schema.schedule import Schedule

LOCK_S = 20.0
_MOMENT = r"\d{8}-\d{4}"


@dataclass(frozen=True)
class ScheduleDir:
    """The names in the folder. `root` is the tool's own, absolute."""

    root: Path
    schedule_id: str

    @property
    def path(self) -> Path:
        """The folder."""
        return self.root / "schedules" / self.schedule_id

    @property
    def record(self) -> Path:
        """Schedule, written once."""
        return self.path / "schedule.json"

    @property
    def history(self) -> Path:
        """Occasion lines, append only."""
        return self.path / "history.jsonl"

    def payload(self, sha256: str) -> Path:
        """The payload it launches with: its own, so that no cleaning of payloads takes it away."""
        return self.path / f"{sha256}.pyz"

    def run_id(self, due_s: int) -> str:
        """Of the run that is due then: the moment in UTC, so no hour of summer time comes twice."""
        return f"{self.schedule_id}.{time.strftime('%Y%m%d-%H%M', time.gmtime(due_s))}"

    def run_ids(self) -> tuple[str, ...]:
        """Its runs that are on the host, in order; not the units of those that are sweeps."""
        wanted = re.compile(rf"{re.escape(self.schedule_id)}\.{_MOMENT}")
        with contextlib.suppress(OSError):
            return tuple(sorted(name for name in os.listdir(self.root / "runs") if wanted.fullmatch(name)))  # noqa: PTH208
        return ()

    def read(self) -> Schedule:
        """What it is. Raises FileNotFoundError, Refusal where it is damaged."""
        try:
            return from_json(Schedule, self.record.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise
        except (OSError, UnicodeDecodeError, SchemaError) as error:
            raise Refusal("no_such_run", f"the schedule is damaged: {error}: {self.record}") from None

    def make(self, schedule: Schedule, archive: Path) -> None:
        """Write the folder, with a link to the payload or a copy of it. Raises Refusal."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            own = self.payload(schedule.spec.payload_sha256)
            if not own.exists():
                try:
                    os.link(archive, own)
                except OSError:
                    shutil.copyfile(archive, own)
            write_atomically(self.record, to_json(schedule).encode("ascii"))
        except OSError as error:
            self.remove()
            raise disk_refusal(error, f"write {self.path}") from None

    def remove(self) -> None:
        """Take the folder away; what is not there is no error."""
        shutil.rmtree(self.path, ignore_errors=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One at a time: whoever fires and whoever looks. Raises Refusal where the other takes too long, OSError."""
        with locked_file(self.path / "lock", f"the schedule `{self.schedule_id}`"):
            yield


def folders(root: Path) -> tuple[ScheduleDir, ...]:
    """Every schedule's folder under the root, by id."""
    found = sorted(path.name for path in (root / "schedules").glob("*") if path.is_dir())
    return tuple(ScheduleDir(root, name) for name in found if RUN_ID_PATTERN.fullmatch(name))


@contextlib.contextmanager
def locked_file(path: Path, what: str) -> Iterator[None]:
    """Hold a lock of this user alone (flock); the kernel frees it with its holder. Raises Refusal, OSError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        if os.fstat(descriptor).st_uid != os.getuid():
            raise Refusal("schedule_refused", f"somebody else's file stands where our lock should be: {path}")
        until_s = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until_s:
                    message = f"somebody works on {what} for more than {LOCK_S:.0f} s: {path}"
                    raise Refusal("schedule_refused", message, "try again") from None
                time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)
