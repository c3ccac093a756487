"""One SGLang server of ours: launched, and waited for until it is really ready."""

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remote_payload.failure import JobFailure, job_failure
from remote_payload.schema.bench import ArgumentFact, ServerFacts, Side
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench import leftovers, ports
from remote_payload.sglang_bench.arguments import argument_facts, requested_of
from remote_payload.sglang_bench.command import HOST, path_of, server_argv, url_of
from remote_payload.sglang_bench.environment import api_key, secret_values, server_environment
from remote_payload.sglang_bench.gpu_memory import GpuMemory
from remote_payload.sglang_bench.info import as_text
from remote_payload.sglang_bench.launch import Order, Process
from remote_payload.sglang_bench.ready import look, port_taken, wait_until_ready
from remote_payload.sglang_bench.redact import redact_argv
from remote_payload.sglang_bench.server import Report, Running
from remote_payload.sglang_bench.telling import Telling, event


def start(job: BenchJob, side: Side, number: int, folder: Path, report: Report) -> Running:
    """Launch the server of one side and return when it is really ready.

    `folder` is the result folder; the log goes beside it as `server-N.log`. `report` gets an Event for each phase of
    the start and a warning for each older server that is still there. Raises JobFailure(server), with nothing of the
    server left, when it does not become ready.
    """
    if job.model is None:
        raise job_failure("`model` must name the target that is to be served")
    other = leftovers.warning_of(leftovers.find_leftovers())
    if other is not None:
        report(event("warning", "other_server", other))
    _require_free_port(job)
    memory = GpuMemory()
    memory.begin()
    asked, key = _asked(job, side, number, folder), api_key(job)
    telling = Telling(report, f"server {number} ({side})")
    began_s = time.monotonic()
    process = Process(
        job.exec_prefix,
        Order(argv=asked.argv, environment=asked.environment),
        folder.parent / f"server-{number}.log",
        hidden=asked.hidden,
        on_line=telling.read,
    )
    try:
        model = asked.requested["model_path"]
        info = wait_until_ready(process, asked.url, key, model, job.ready_timeout_s, telling.phase)
    except JobFailure as failed:
        process.end(0.0)
        raise _with_others(failed, other) from None
    ready_s = time.monotonic() - began_s
    telling.finish(ready_s)
    memory.claim(process.tree(), behind_prefix=bool(job.exec_prefix))
    facts = dataclasses.replace(_facts_of(asked, process, info), ready_s=ready_s, phases=telling.clock.phases())
    return Running(facts, key, process, memory, asked.hidden)


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What one server of ours is started with."""

    job: BenchJob
    side: Side
    number: int
    argv: tuple[str, ...]
    environment: dict[str, str]
    hidden: tuple[str, ...]
    """Values that must be written nowhere."""

    @property
    def requested(self) -> dict[str, Any]:
        return requested_of(self.argv)

    @property
    def url(self) -> str:
        return url_of(self.requested)


def _asked(job: BenchJob, side: Side, number: int, folder: Path) -> _Asked:
    return _Asked(
        job=job,
        side=side,
        number=number,
        argv=server_argv(job, side, job.port or ports.free_port()),
        environment=server_environment(job, folder.parent),
        hidden=secret_values(job, folder.parent),
    )


def _require_free_port(job: BenchJob) -> None:
    """A container's published port is held by its proxy, which answers only where a server stands behind it."""
    if job.port is None or (job.exec_prefix and not look(f"http://{HOST}:{job.port}", None, None).answered):
        return
    if not ports.is_free(job.port):
        raise port_taken(job.port)


def _facts_of(asked: _Asked, process: Process, info: Mapping[str, Any]) -> ServerFacts:
    """What a server that is ready told of itself, over HTTP and in its log."""
    job, hidden = asked.job, asked.hidden
    model_class, draft_class = (*process.log.classes, None, None)[:2]
    around = {**os.environ, **asked.environment}
    return ServerFacts(
        side=asked.side,
        start=asked.number,
        attached=False,
        url=asked.url,
        argv=redact_argv((*job.exec_prefix, *asked.argv), hidden),
        pid=process.pid,
        arguments=(
            *argument_facts(asked.requested, info, process.log.arguments, around, hidden),
            *_draft_class(job, asked.side, draft_class),
        ),
        lines=tuple(process.log.decided.values()),
        server_info=as_text(info, hidden),
        model_class=model_class,
        draft_class=draft_class,
    )


def _draft_class(job: BenchJob, side: Side, loaded: str | None) -> tuple[ArgumentFact, ...]:
    """The class that the draft's config.json asks for against the one that was loaded."""
    if side == "plain" or job.draft is None:
        return ()
    asked = None
    with contextlib.suppress(
        OSError, ValueError, KeyError, IndexError, TypeError, RecursionError
    ):  # not to be seen from here
        if not job.exec_prefix:  # behind it the same path may be another folder
            config: Mapping[str, Any] = json.loads(Path(path_of(job, job.draft), "config.json").read_text("utf-8"))
            asked = json.dumps(config["architectures"][0])
    effective = None if loaded is None else json.dumps(loaded)
    return (ArgumentFact(name="draft_class", requested=asked, effective=effective, source="log"),)


def _with_others(failed: JobFailure, other: str | None) -> JobFailure:
    """Where the server failed beside another one, that belongs to the story."""
    if other is None:
        return failed
    failure = failed.failure
    return JobFailure(dataclasses.replace(failure, details=(*failure.details, other)))
