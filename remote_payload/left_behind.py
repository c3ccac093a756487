"""What a worker leaves when it has ended: its own word on a failure, the end of its log, what it took."""

import resource
from pathlib import Path

from remote_payload.rundir import RunDir
from remote_payload.schema import Failure, ResourceUse, SchemaError, from_json


def read_failure(run: RunDir) -> Failure | None:
    """The worker's own word on why it failed; None: it left none that can be read."""
    try:
        return from_json(Failure, run.failure.read_text(encoding="utf-8", errors="replace"))
    except (OSError, SchemaError):
        return None


def tail_of(path: Path, lines: int = 20, limit_bytes: int = 8192) -> tuple[str, ...]:
    """The last lines of a log; none where it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - limit_bytes))
            return tuple(file.read().decode("utf-8", "replace").splitlines()[-lines:])
    except OSError:
        return ()


def resource_use(wall_s: float) -> ResourceUse:
    """What all children of this process that have ended took, in `wall_s` seconds."""
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ResourceUse(
        user_cpu_s=use.ru_utime,
        system_cpu_s=use.ru_stime,
        max_rss_bytes=use.ru_maxrss * 1024,  # Linux counts in KiB
        wall_s=wall_s,
    )
