"""The command that starts a server: SGLang's flags from a job, for one side."""

import os
import sys
from collections.abc import Mapping
from typing import Any

from remote_payload.failure import job_failure
from remote_payload.schema.bench import Side
from remote_payload.schema.bench_job import BenchJob

HOST = "127.0.0.1"
EVERYWHERE = {"0.0.0.0", "::", "localhost"}  # noqa: S104 - not bound here
_SPECULATIVE = "--spec"
"""No other flag begins so, and argparse takes shortened ones."""


def python_of(job: BenchJob) -> str:
    """The interpreter that runs SGLang: on this host our own, elsewhere what its PATH calls python3."""
    return job.server_python or ("python3" if job.exec_prefix else sys.executable)


def server_argv(job: BenchJob, side: Side, port: int) -> tuple[str, ...]:
    """`python -m sglang.launch_server ...`, without the `exec_prefix`. Raises JobFailure(job)."""
    if any(word == "--port" or word.startswith("--port=") for word in job.server_args):
        raise job_failure("`server_args` must not hold --port", hint="give the job's own `port`")
    words = [python_of(job), "-m", "sglang.launch_server", "--model-path", path_of(job, job.model), "--port", str(port)]
    extra = job.server_args if side == "spec" else without_speculation(job.server_args)
    if not any(word == "--host" or word.startswith("--host=") for word in extra):
        words += ["--host", HOST]
    return (*words, *_sizes(job), *(speculation(job) if side == "spec" else ()), *extra)


def asked_of(job: BenchJob) -> tuple[str, ...]:
    """The words for all that the job asks of its server: what an attached one is held against."""
    return (*_sizes(job), *speculation(job), *job.server_args)


def path_of(job: BenchJob, path: str | None) -> str:
    """As SGLang is told it: it knows no `~`, which is this host's home, and behind an `exec_prefix` another one."""
    return str(path) if job.exec_prefix else os.path.expanduser(str(path))


def without_speculation(words: tuple[str, ...]) -> tuple[str, ...]:
    """Arguments without those of speculation and their values: for the plain side of a pair."""
    kept: list[str] = []
    dropping = False
    for word in words:
        if word.startswith("--"):
            dropping = word.startswith(_SPECULATIVE)
        if not dropping:
            kept.append(word)
    return tuple(kept)


def url_of(asked: Mapping[str, Any]) -> str:
    """Where a server with these options is to be reached from this host."""
    host = str(asked.get("host", HOST))
    return f"http://{HOST if host in EVERYWHERE else host}:{asked['port']}"


def _sizes(job: BenchJob) -> list[str]:
    words = []
    for option, value, unset in (
        ("--tp-size", job.tp, 1),
        ("--dp-size", job.dp, 1),
        ("--ep-size", job.ep, 1),
        ("--dtype", job.dtype, "auto"),
        ("--quantization", job.quantization, None),
        ("--context-length", job.context_length, None),
        ("--mem-fraction-static", job.mem_fraction, None),
    ):
        words += [] if value == unset else [option, str(value)]
    return words


def speculation(job: BenchJob) -> list[str]:
    """The flags of speculation alone. The algorithm stands for itself where it was chosen, as NGRAM takes no draft."""
    words = []
    if job.draft is not None or job.algorithm.upper() != "EAGLE3":
        words += ["--speculative-algorithm", job.algorithm]
    if job.draft is not None:
        words += ["--speculative-draft-model-path", path_of(job, job.draft)]
    for option, value in (
        ("--speculative-num-steps", job.num_steps),
        ("--speculative-eagle-topk", job.eagle_topk),
        ("--speculative-num-draft-tokens", job.num_draft_tokens),
        ("--speculative-draft-model-quantization", job.draft_quantization),
    ):
        words += [] if value is None else [option, str(value)]
    return words
