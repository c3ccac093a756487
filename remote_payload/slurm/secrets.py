"""The way of a run's secrets from its launch to its batch job: a file for this user alone, until the run is over.

Slurm itself would keep them: what is exported with sbatch lies in the controller's spool, arguments and script in its
records, for every administrator and every backup. A file in the tool's own root is as private as the user's ssh keys
beside it. It outlives the batch job's start, since Slurm may start the job again, and goes with the run's end.
"""

import contextlib
import json
from pathlib import Path

from remote_payload.rundir import write_atomically


def keep(root: Path, run_id: str, values: dict[str, str]) -> None:
    """Write them down. Raises OSError."""
    if values:
        path = _path(root, run_id)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, json.dumps(values).encode("ascii"))


def read(root: Path, run_id: str) -> dict[str, str]:
    """The values by name; none where there is no such file."""
    try:
        value = json.loads(_path(root, run_id).read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(name): str(text) for name, text in value.items()} if isinstance(value, dict) else {}


def forget(root: Path, run_id: str) -> None:
    """Remove them."""
    with contextlib.suppress(OSError):
        _path(root, run_id).unlink(missing_ok=True)


def _path(root: Path, run_id: str) -> Path:
    return root / "slurm" / "secrets" / f"{run_id}.json"
