"""The SGLang that is installed, read from its files without importing it: its source says what it does, no table."""

import ast
import contextlib
import dataclasses
import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping

from remote_payload.bounded import BoundedChild
from remote_payload.schema.bench import AutoSteps, SglangFacts
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.command import python_of

DEADLINE_S = 60.0
CHOOSER = "auto_choose_speculative_params"
"""With an underscore before it from 0.5 on."""
DECIDING = ("srt/arg_groups/speculative_hook.py", "srt/server_args.py")
"""Files below the package that decide the shape of a draft."""
SIMULATED = "SGLANG_SIMULATE_ACC_LEN"
BENCH_MODULES = ("sglang.benchmark.serving", "sglang.bench_serving")

# Runs where the server is to run; finds the package without importing it.
_QUESTION = r"""
import importlib.util, json, os, sys
from importlib import metadata
token, answer, found = sys.argv[1], {"files": {}}, None
try:
    found = importlib.util.find_spec("sglang")
except (ImportError, ValueError):
    pass
if found is not None and found.submodule_search_locations:
    path = list(found.submodule_search_locations)[0]
    answer["path"] = path
    try:
        answer["version"] = metadata.version("sglang")
    except metadata.PackageNotFoundError:
        pass
    for name in ("version.py", "_version.py", "benchmark/serving.py", "bench_serving.py", "srt/server_args.py",
                 "srt/arg_groups/speculative_hook.py", "srt/managers/tokenizer_manager.py"):
        try:
            with open(os.path.join(path, name), encoding="utf-8", errors="replace") as file:
                answer["files"][name] = file.read() if "serving" not in name else ""
        except OSError:
            pass
print("\n" + token + json.dumps(answer))
"""


def installed_sglang(job: BenchJob) -> SglangFacts:
    """What the package says that the job's Python would run, behind its `exec_prefix`; unknown = None, never raises."""
    token = f"eagle3-{secrets.token_hex(8)} "
    try:
        child = BoundedChild([*job.exec_prefix, python_of(job), "-c", _QUESTION, token])
    except OSError:
        return SglangFacts(version=None)
    done = child.finish(time.monotonic() + DEADLINE_S)
    lines = done[1].splitlines() if done else []
    answer = next((line[len(token) :] for line in lines if line.startswith(token)), "{}")
    with contextlib.suppress(ValueError):
        found = json.loads(answer)
        facts = facts_from(found.get("version"), found.get("path"), found.get("files", {}))
        return dataclasses.replace(facts, simulates_acceptance=_simulates(job))
    return SglangFacts(version=None)


def _simulates(job: BenchJob) -> bool:
    """Whether the environment that the server will get makes it overwrite the accept length."""
    own = dict(pair.split("=", 1) for pair in job.server_environment)
    with contextlib.suppress(ValueError):
        return float(own.get(SIMULATED, os.environ.get(SIMULATED, "")) or 0) > 0
    return False


def facts_from(version: str | None, path: str | None, files: Mapping[str, str]) -> SglangFacts:
    """What these files of the package (name below it -> text) say."""
    deciding = [files[name] for name in DECIDING if name in files]
    source = "\n".join(deciding)
    modules = [name for name in BENCH_MODULES if f"{name.removeprefix('sglang.').replace('.', '/')}.py" in files]
    return SglangFacts(
        version=version or _declared_version(files),
        path=path,
        forces_draft_tokens=forces_draft_tokens(source),
        running_requests_cap=_cap(source),
        returns_histogram=_histogram(files.get("srt/managers/tokenizer_manager.py", "")),
        bench_module=modules[0] if modules else None,
        auto_steps=next((steps for text in deciding if (steps := auto_steps(text))), ()),
    )


def auto_steps(source: str) -> tuple[AutoSteps, ...]:
    """The table of `_auto_choose_speculative_params`, class by class in its order; empty where it cannot be read.

    Left out: branches on anything but the target's class, such as the algorithm.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last: nested too deep for its parser
        return ()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.endswith(CHOOSER):
            return tuple(_choices(node.body))
    return ()


def _choices(body: list[ast.stmt]) -> Iterator[AutoSteps]:
    for statement in body:
        if isinstance(statement, ast.Return):
            with contextlib.suppress(ValueError, TypeError):
                steps, topk, tokens = ast.literal_eval(statement.value or ast.Constant(None))
                if not all(type(number) is int for number in (steps, topk, tokens)):
                    continue
                yield AutoSteps(target_class=None, num_steps=steps, eagle_topk=topk, num_draft_tokens=tokens)
        elif isinstance(statement, ast.If):
            chosen = list(_choices(statement.body))
            for name in _classes(statement.test):
                for choice in chosen[:1]:
                    yield AutoSteps(
                        target_class=name,
                        num_steps=choice.num_steps,
                        eagle_topk=choice.eagle_topk,
                        num_draft_tokens=choice.num_draft_tokens,
                    )
            yield from _choices(statement.orelse)


def _classes(test: ast.expr) -> list[str]:
    """Classes that a test such as `arch in ["A", "B"]` or `arch == "A"` names."""
    if not (isinstance(test, ast.Compare) and "arch" in ast.unparse(test.left)):
        return []
    with contextlib.suppress(ValueError):
        value = ast.literal_eval(test.comparators[0])
        return [value] if isinstance(value, str) else [str(name) for name in value]
    return []


def forces_draft_tokens(source: str) -> bool | None:
    """Whether `DECIDING`, joined, sets num_draft_tokens to num_steps + 1 at topk 1; None = the place was not found."""
    if CHOOSER not in source:
        return None
    said = "num_draft_tokens is adjusted to speculative_num_steps + 1" in source
    return (
        said
        or re.search(r"speculative_num_draft_tokens\s*=\s*(?:\w+\.)*speculative_num_steps\s*\+\s*1", source) is not None
    )


def _cap(source: str) -> int | None:
    """As it says; before 0.5.6 it sets it without a word, and never elsewhere."""
    found = re.search(r"[Mm]ax running requests is reset to (\d+) for speculative decoding", source)
    silent = set(re.findall(r"self\.max_running_requests = (\d+)\b", source))
    return int(found[1]) if found else int(silent.pop()) if len(silent) == 1 else None


def _histogram(source: str) -> str | None:
    names = re.findall(r"""meta_info\[\s*["'](spec_\w*histogram)["']""", source) or re.findall(
        r"spec_\w*histogram", source
    )
    wanted = ("spec_correct_drafts_histogram", "spec_accept_histogram")
    return next((name for name in wanted if name in names), None)


def _declared_version(files: Mapping[str, str]) -> str | None:
    for name in ("version.py", "_version.py"):
        found = re.search(r"""^(?:__version__|version)\b.*?["']([^"']+)["']""", files.get(name, ""), re.MULTILINE)
        if found:
            return found[1]
    return None
