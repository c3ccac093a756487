"""Which Python interpreters a host has, and what each could run. Nothing heavy is imported to find out."""

import errno
import json
import os
import time
from collections.abc import Iterable, Mapping
from glob import glob
from pathlib import Path

from remote_payload.bounded import BoundedChild
from remote_payload.schema import PythonFacts, SchemaError
from remote_payload.schema.record import from_value

DEADLINE_S = 20.0
"""For all interpreters together; they run at the same time."""

# Runs in the candidate, which may be as old as Python 2.7: it must parse there to be able to say so.
_QUESTION = r"""
import json, os, re, sys
facts = {"version": "%d.%d.%d" % sys.version_info[:3]}
if sys.version_info >= (3, 10):
    from importlib import metadata, util
    for name in ("torch", "safetensors", "sglang", "transformers"):
        try:
            facts[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    found = util.find_spec("torch")
    if found is not None and found.submodule_search_locations:
        path = os.path.join(list(found.submodule_search_locations)[0], "version.py")
        if os.path.exists(path):
            with open(path) as file:
                cuda = re.search(r"^cuda\b[^=]*=\s*['\"]([^'\"]+)", file.read(), re.M)
            facts["torch_cuda"] = cuda.group(1) if cuda else None
else:
    facts["problem"] = "older than Python 3.10"
print("\n" + json.dumps(facts))
"""


def likely_pythons(environment: Mapping[str, str], home: Path) -> tuple[str, ...]:
    """Where interpreters usually are, best guesses first; each environment once.

    A venv's `bin/python` is a link to its base, so links of the file itself are kept and only its folder is resolved.
    """
    folders = [environment.get("VIRTUAL_ENV"), environment.get("CONDA_PREFIX"), *_below(home), *_below(Path("/opt"))]
    names = [f"{folder}/bin/python" for folder in folders if folder]
    names += [f"/usr/local/bin/python3.{minor}" for minor in range(14, 9, -1)]
    names += sorted(glob(f"{home}/.pyenv/versions/*/bin/python"), reverse=True)  # noqa: PTH207
    names += [f"{folder}/python3" for folder in environment.get("PATH", "/usr/bin:/bin").split(":") if folder]
    names += [f"/usr/bin/python3.{minor}" for minor in range(14, 9, -1)]
    seen, found = set(), []
    for name in names:
        place = Path(os.path.realpath(os.path.dirname(name)), os.path.basename(name))  # noqa: PTH119, PTH120
        same = place.parent if _is_environment(place) else Path(os.path.realpath(place))
        if os.access(name, os.X_OK) and same not in seen:
            seen.add(same)
            found.append(name)
    return tuple(found)


def _below(folder: Path) -> list[str]:
    """Folders that hold environments directly or one or two levels down."""
    patterns = (".venv", "venv", "env", "*/.venv", "*/venv", "*conda*", "*forge*", "*conda*/envs/*", "*forge*/envs/*")
    named = [path for pattern in patterns for path in sorted(glob(f"{folder}/{pattern}"))]  # noqa: PTH207
    return named + (sorted(glob(f"{folder}/*")) if str(folder) == "/opt" else [])  # noqa: PTH207


def _is_environment(python: Path) -> bool:
    return (python.parent.parent / "pyvenv.cfg").exists()


def examine(pythons: Iterable[str], deadline_s: float = DEADLINE_S) -> tuple[PythonFacts, ...]:
    """Ask every interpreter at the same time; one that does not answer in time is killed and says so."""
    asked = [(path, _ask(os.path.expanduser(path))) for path in pythons]
    until_s = time.monotonic() + deadline_s
    return tuple(_answer_of(path, child, until_s) for path, child in asked)


def _ask(path: str) -> BoundedChild | OSError:
    try:
        return BoundedChild([path, "-c", _QUESTION])
    except OSError as error:
        return error
    except ValueError:  # a NUL, or a character that no path can hold
        return OSError(errno.EINVAL, "not a path")


def _answer_of(path: str, child: BoundedChild | OSError, until_s: float) -> PythonFacts:
    if isinstance(child, OSError):
        return PythonFacts(path=path, problem=child.strerror)
    done = child.finish(until_s)
    if done is None:
        return PythonFacts(path=path, problem="gave no answer in time")
    lines = done[1].strip().splitlines() or [""]
    try:
        return from_value(PythonFacts, {"path": path, **json.loads(lines[-1])})
    except (ValueError, TypeError, SchemaError):
        return PythonFacts(path=path, problem=f"did not answer as a Python does: {lines[-1][:200]}")
