"""What is installed where a job's server, or its own computation, runs: versions by their metadata, not imported.

Not covered: code that was changed in its place under the same version, as in an editable checkout.
"""

import contextlib
import json
import os
import secrets
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from remote_payload.bounded import BoundedChild
from remote_payload.schema import BenchJob, UnitJob
from remote_payload.schema.capture_job import CaptureJob
from remote_payload.sglang_bench.command import python_of

DEADLINE_S = 20.0
PACKAGES = ("sglang", "sgl-kernel", "sglang-kernel", "flashinfer-python", "torch", "triton", "transformers")
"""What decides what a point measures."""
# Runs in the other interpreter, whatever its version is.
_QUESTION = r"""
import json, sys
if sys.path and sys.path[0] == "":
    del sys.path[0]
from importlib import metadata
answer = {"python": "%d.%d.%d" % sys.version_info[:3]}
for name in sys.argv[2:]:
    try:
        answer[name] = metadata.version(name) or ""
    except metadata.PackageNotFoundError:
        pass
print("\n" + sys.argv[1] + json.dumps([answer, sys.path]))
"""


@dataclass(frozen=True)
class _Answer:
    """Versions by package, and the folders they were looked for in, each with when it changed last."""

    versions: dict[str, str]
    folders: tuple[tuple[str, int], ...]


class Software:
    """What this host has installed, asked of each interpreter once, and again where a folder of its path changed."""

    def __init__(self) -> None:
        self._known: dict[str, _Answer] = {}

    def installed_for(self, job: UnitJob) -> dict[str, str]:
        """Versions by package, and of `python`, for a job that this interpreter is to run; empty = nobody can tell."""
        if _is_attached(job):
            return {}
        words = _elsewhere(job) or (sys.executable,)
        if len(words) > 1:  # in another root, whose folders are not to be seen from here
            return _asked(words).versions
        known = self._known.get(words[0])
        if known is None or known.folders != _folders(name for name, _ in known.folders):
            known = self._known[words[0]] = _asked(words)
        return known.versions


def installed_as(job: UnitJob, python: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The same for a job that `python` is to run, with this `environment`."""
    if _is_attached(job):
        return {}
    values = [f"{name}={value}" for name, value in environment.items()]
    return _asked(("env", *values, *(_elsewhere(job) or (os.path.expanduser(python),)))).versions


def _is_attached(job: UnitJob) -> bool:
    return isinstance(job, BenchJob | CaptureJob) and job.attach_url is not None


def _elsewhere(job: UnitJob) -> tuple[str, ...] | None:
    """The words that start the server's interpreter; None = it is the job's own."""
    if not isinstance(job, BenchJob | CaptureJob) or not (job.exec_prefix or job.server_python):
        return None
    return (*job.exec_prefix, python_of(job if isinstance(job, BenchJob) else job.bench(())))


def _asked(interpreter: Sequence[str]) -> _Answer:
    token = f"eagle3-{secrets.token_hex(8)} "
    try:
        child = BoundedChild([*interpreter, "-c", _QUESTION, token, *PACKAGES])
    except OSError:
        return _Answer({}, ())
    done = child.finish(time.monotonic() + DEADLINE_S)
    lines = done[1].splitlines() if done else []
    answer = next((line[len(token) :] for line in lines if line.startswith(token)), "")
    with contextlib.suppress(ValueError, TypeError, AttributeError):  # it answered something else
        versions, path = json.loads(answer)
        told = {str(name): str(version) for name, version in versions.items()}
        return _Answer(told, _folders(str(name) for name in path))
    return _Answer({}, ())


def _folders(names: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """What is installed or taken away changes its folder: metadata lies in one that is named by the version."""
    return tuple((name, _changed_ns(name)) for name in names)


def _changed_ns(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0
