"""Folders that a job names, looked for before a server is started: its own words for a missing one are a hub's."""

import os

from remote_payload.failure import checkpoint_failure
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.command import path_of

LOCAL = ("/", "~", "./", "../")
"""How a path begins that is no name on a hub."""


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
