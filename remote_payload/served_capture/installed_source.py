"""The installed SGLang's source, read as text where the server is to run. Nothing of it is imported or run."""

import contextlib
import json
import secrets
import time

from remote_payload.bounded import BoundedChild
from remote_payload.schema.capture_job import CaptureJob
from remote_payload.schema.capture_rule import CaptureRule
from remote_payload.served_capture.source import READ, rule_from
from remote_payload.sglang_bench.command import python_of

DEADLINE_S = 60.0

# Runs where the server is to run. The models that speak of capturing, and what they are told by, come as text.
QUESTION = r"""
import importlib.util, json, os, sys
from importlib import metadata
token, folder, answer = sys.argv[1], sys.argv[2], {"files": {}}
if not folder:
    try:
        found = importlib.util.find_spec("sglang")
        folder = list(found.submodule_search_locations)[0] if found else ""
        answer["version"] = metadata.version("sglang")
    except (ImportError, ValueError, IndexError, TypeError, metadata.PackageNotFoundError):
        pass
def take(name):
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
if folder:
    answer["path"] = folder
    models = os.path.join(folder, "srt", "models")
    for name in sorted(os.listdir(models) if os.path.isdir(models) else []):
        text = take("srt/models/" + name) if name.endswith(".py") else ""
        if "layers_to_capture" in text or "_is_layer_to_capture" in text:
            answer["files"]["srt/models/" + name] = text
        elif text:
            answer.setdefault("classes", {})["srt/models/" + name] = [
                line for line in text.splitlines() if line.startswith("class ")
            ]
    for name in sys.argv[3:]:
        answer["files"][name] = take(name)
print("\n" + token + json.dumps(answer))
"""


def installed_rule(job: CaptureJob, target_config: str | None) -> CaptureRule:
    """What the package says that the job's Python would run; an empty rule where it cannot be read. Never raises."""
    target_class = class_of(target_config)
    if job.attach_url is not None:
        return CaptureRule(version=None, target_class=target_class)
    return rule_by([*job.exec_prefix, python_of(job.bench(()))], "", target_class)


def rule_by(python: list[str], folder: str, target_class: str | None) -> CaptureRule:
    """Ask that interpreter for the source in `folder`, or for that of the sglang it would import."""
    token = f"eagle3-{secrets.token_hex(8)} "
    nothing = CaptureRule(version=None, target_class=target_class)
    try:
        child = BoundedChild([*python, "-c", QUESTION, token, folder, *READ])
    except OSError:
        return nothing
    done = child.finish(time.monotonic() + DEADLINE_S)
    lines = done[1].splitlines() if done else []
    text = next((line[len(token) :] for line in lines if line.startswith(token)), "{}")
    with contextlib.suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, dict) and found.get("path"):
            files = {**found.get("classes", {}), **found.get("files", {})}
            return rule_from(found.get("version"), found["path"], files, target_class)
    return nothing


def class_of(target_config: str | None) -> str | None:
    """The target's class by its config.json."""
    with contextlib.suppress(ValueError, TypeError, LookupError, AttributeError, RecursionError):
        name = json.loads(target_config or "{}").get("architectures")[0]
        return name if isinstance(name, str) else None
    return None
