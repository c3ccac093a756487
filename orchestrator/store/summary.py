"""One line of `runs list`: only the keys it shows, read with the plain json module, because a listing starts at once.

A run that cannot be read becomes a line that says why. The whole record is validated where a run is really used.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import StoreError
from orchestrator.store.files import read_text
from remote_payload.rundir import RunDir


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One line of `runs list`. An unreadable run has a `problem` and nothing else that is known."""

    run_id: str
    phase: str
    """The last state seen, `unknown`, or `unreadable`."""
    job_kind: str | None = None
    host: str | None = None
    created_unix_s: float | None = None
    finished_unix_s: float | None = None
    has_result: bool = False
    """It succeeded and left a result; what a run that ended badly left behind is none."""
    tags: tuple[str, ...] = ()
    problem: str | None = None


def record_path(run: RunDir) -> Path:
    """Where a run's RunRecord lies."""
    return run.path / "run.json"


def read_summary(run: RunDir) -> RunSummary:
    """The run's line; never raises for what is wrong with its record."""
    try:
        return _summary(json.loads(read_text(record_path(run))), run)
    except StoreError as error:
        problem = error.message
    except (json.JSONDecodeError, RecursionError) as error:
        problem = f"{record_path(run)}: expected JSON, found: {error}"
    except ValueError as error:
        problem = f"{record_path(run)}: {error}"
    return RunSummary(run_id=run.path.name, phase="unreadable", problem=problem)


def _summary(value: object, run: RunDir) -> RunSummary:
    run_id = _get(value, "spec.run_id", str)
    if run_id != run.path.name:
        raise ValueError(f"expected the run `{run.path.name}`, found: {run_id}")
    seen = _get(value, "state", (dict, type(None))) is not None
    phase = _get(value, "state.phase", str) if seen else "unknown"
    return RunSummary(
        run_id=run_id,
        phase=phase,
        job_kind=_get(value, "spec.job_kind", str),
        host=_get(value, "host.name", str),
        created_unix_s=_finite(_get(value, "spec.created_unix_s", (int, float))),
        finished_unix_s=_finite(_get(value, "state.finished_unix_s", (int, float, type(None)))) if seen else None,
        has_result=phase == "succeeded" and run.manifest.is_file(),
        tags=tuple(str(tag) for tag in _get(value, "tags", list)),
    )


def _get(value: object, path: str, kind: type | tuple[type, ...]) -> Any:
    """The value at a dotted path. Raises ValueError naming the path."""
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            raise ValueError(f"missing key: {path}")
        value = value[key]
    if not isinstance(value, kind):
        raise ValueError(f"`{path}`: not of the expected type, found: {str(value)[:80]!r}")
    return value


def _finite(value: float | None) -> float | None:
    """None for what is no time: NaN, infinity, an integer beyond all floats."""
    try:
        return value if value is not None and math.isfinite(value) else None
    except OverflowError:
        return None
