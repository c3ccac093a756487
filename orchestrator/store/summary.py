"""One line of `runs list`: only the keys it shows, read with the plain json module, because a listing starts at once.

A run that cannot be read becomes a line that says why. The whole record is validated where a run is really used.
"""

import hashlib
import json
import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import StoreError
from orchestrator.store.files import read_text
from orchestrator.store.layout import LABELS, MEASUREMENTS, VERDICT, is_imported, record_path
from remote_payload.rundir import RunDir

_WORDS = {"no_difference": "undecided"}


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One line of `runs list`. An unreadable run has a `problem` and nothing else that is known."""

    run_id: str
    phase: str
    """The last state seen, `unknown`, `imported`, or `unreadable`."""
    job_kind: str | None = None
    host: str | None = None
    created_unix_s: float | None = None
    finished_unix_s: float | None = None
    has_result: bool = False
    """It succeeded and left a result; what a run that ended badly left behind is none."""
    tags: tuple[str, ...] = ()
    problem: str | None = None
    note: str = ""
    model: str | None = None
    """The target, as it was asked for."""
    draft: str | None = None
    """The drafter, as it was asked for."""
    verdict: str | None = None
    """What the last review said of this very result; None = nobody looked yet."""

    @property
    def verdict_word(self) -> str | None:
        """The verdict as it is shown and asked for, e.g. `mis-wired`; what could not be told apart is `undecided`."""
        return None if self.verdict is None else verdict_word(self.verdict)


def verdict_word(verdict: str) -> str:
    """As a verdict is shown: words with hyphens, but for those that say more otherwise."""
    return _WORDS.get(verdict, verdict.replace("_", "-"))


def read_summary(run: RunDir) -> RunSummary:
    """The run's line; never raises for what is wrong with its record."""
    path = record_path(run)
    try:
        if is_imported(run):
            path = run.path / MEASUREMENTS
            return _imported(json.loads(read_text(path)), run)
        return _summary(json.loads(read_text(path)), run)
    except StoreError as error:
        problem = error.message
    except (json.JSONDecodeError, RecursionError) as error:
        problem = f"{path}: expected JSON, found: {error}"
    except ValueError as error:
        problem = f"{path}: {error}"
    return RunSummary(run_id=run.path.name, phase="unreadable", problem=problem)


def _summary(value: object, run: RunDir) -> RunSummary:
    run_id = _get(value, "spec.run_id", str)
    if run_id != run.path.name:
        raise ValueError(f"expected the run `{run.path.name}`, found: {run_id}")
    seen = _get(value, "state", (dict, type(None))) is not None
    phase = _get(value, "state.phase", str) if seen else "unknown"
    labels = _side_file(run, LABELS)
    first = [str(tag) for tag in _get(value, "tags", list)]
    job = _job(_get(value, "spec.job_json", str))
    return RunSummary(
        run_id=run_id,
        phase=phase,
        job_kind=_get(value, "spec.job_kind", str),
        host=_get(value, "host.name", str),
        created_unix_s=_finite(_get(value, "spec.created_unix_s", (int, float))),
        finished_unix_s=_finite(_get(value, "state.finished_unix_s", (int, float, type(None)))) if seen else None,
        has_result=phase == "succeeded" and run.manifest.is_file(),
        tags=_tags(labels, first),
        note=_text(labels, "note") or "",
        model=_text(job, "model") or _text(job, "target"),
        draft=_text(job, "draft"),
        verdict=_verdict(run),
    )


def _imported(value: object, run: RunDir) -> RunSummary:
    run_id = _get(value, "run_id", str)
    if run_id != run.path.name:
        raise ValueError(f"expected the measurements of `{run.path.name}`, found: {run_id}")
    labels = _side_file(run, LABELS)
    facts = _facts(_get(value, "measurements", list))
    return RunSummary(
        run_id=run_id,
        phase="imported",
        job_kind=_get(value, "job_kind", str),
        host=_text(value, "host"),
        created_unix_s=_finite(_get(value, "created_unix_s", (int, float, type(None)))),
        has_result=True,
        tags=_tags(labels, []),
        note=_text(labels, "note") or "",
        model=facts.get("target"),
        draft=facts.get("draft"),
    )


def _facts(measurements: list[Any]) -> dict[str, str]:
    """The circumstances of the first measurement that tells them, by name."""
    found: dict[str, str] = {}
    for one in measurements:
        for kind in ("hard", "soft", "arguments"):
            for fact in _get(one, kind, list):
                name, value = _text(fact, "name"), _text(fact, "value")
                if name is not None and value is not None:
                    found.setdefault(name, value)
    return found


def _job(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None  # whoever uses the run says so


def _side_file(run: RunDir, name: str) -> object:
    """What is said about a run; None where nothing is, or it cannot be read: the run itself can be."""
    with suppress(OSError, ValueError, RecursionError):
        return json.loads((run.path / name).read_bytes())
    return None


def _verdict(run: RunDir) -> str | None:
    told = _side_file(run, VERDICT)
    if told is None:
        return None
    with suppress(OSError):
        if _text(told, "manifest_sha256") == hashlib.sha256(run.manifest.read_bytes()).hexdigest():
            return _text(told, "verdict")
    return None


def _tags(labels: object, first: list[str]) -> tuple[str, ...]:
    tags = labels.get("tags") if isinstance(labels, dict) else None
    return tuple(str(tag) for tag in (tags if isinstance(tags, list) else first))


def _text(value: object, key: str) -> str | None:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


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
