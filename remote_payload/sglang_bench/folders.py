"""Folders that a job names, looked for before a server is started: its own words for a missing one are a hub's."""

import contextlib
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from remote_payload.failure import checkpoint_failure
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.folder import FolderFacts
from remote_payload.sglang_bench.command import path_of
from remote_payload.sglang_bench.info import server_info
from remote_payload.weights import folder_facts

LOCAL = ("/", "~", "./", "../")
"""How a path begins that is no name on a hub."""
DRAFT = "speculative_draft_model_path"
"""As `/server_info` calls the drafter's folder."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def require_folders(job: BenchJob) -> None:
    """Raise JobFailure(checkpoint) for a `model` or `draft` that is a path and not there.

    Not behind an `exec_prefix`, where another root may be, nor for a server that is up already.
    """
    if job.exec_prefix or job.attach_url is not None:
        return
    for name, given in (("model", job.model), ("draft", job.draft)):
        if given is not None and given.startswith(LOCAL) and not os.path.exists(path_of(job, given)):
            raise checkpoint_failure(
                f"`{name}` is not there on the server: {path_of(job, given)}",
                hint=f"`--{name}` is a path on the host that runs the job, or a name on a hub",
            )


def own_folder(job: BenchJob, given: str | None) -> FolderFacts | None:
    """Of a folder that a server of ours is started with; behind an `exec_prefix` the same path may be another one."""
    if given is None or job.exec_prefix or job.attach_url is not None or not Path(path_of(job, given)).is_dir():
        return None
    return folder_facts(path_of(job, given))


def asked_folder(job: BenchJob, given: str | None) -> FolderFacts | None:
    """Of a folder that a server that was up is asked about; its path alone where it is none of this host."""
    if given is None or job.attach_url is None:
        return None
    path = path_of(job, given)
    return folder_facts(path) if _is_here(job) and Path(path).is_dir() else FolderFacts(path=path)


def named_folder(job: BenchJob, told: object) -> FolderFacts | None:
    """Of a folder that a server that was up names, where it is one of this host."""
    if not _is_here(job) or not isinstance(told, str) or not Path(told).is_dir():
        return None
    return folder_facts(told)


def told_folders(url: str) -> tuple[str, str]:
    """Target and drafter by the word of a server that is up, each where it is a model's folder here; empty = not."""
    info: dict[str, Any] = {}
    if urlsplit(url).hostname in LOOPBACK:
        with contextlib.suppress(OSError, ValueError):  # nobody answers, or it wants a key that only a run has
            info = server_info(url, None) or {}
    told = (info.get("model_path"), info.get(DRAFT))
    model, draft = (one if isinstance(one, str) and _is_model(one) else "" for one in told)
    return model, draft


def _is_model(folder: str) -> bool:
    try:
        return Path(folder).is_absolute() and Path(folder, "config.json").is_file()
    except ValueError:  # a NUL in the name
        return False


def _is_here(job: BenchJob) -> bool:
    """Whether the server that was up is one of this host, with this host's root."""
    return urlsplit(job.attach_url or "").hostname in LOOPBACK and not job.exec_prefix
