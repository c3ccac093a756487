"""A server that we did not start: found at its address, and what this host tells about it."""

import contextlib
import os
import time
from pathlib import Path
from urllib.parse import urlsplit

from remote_payload import processes
from remote_payload.failure import server_failure
from remote_payload.schema.bench import ServerFacts
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench import ports
from remote_payload.sglang_bench.arguments import argument_facts, launched_with, requested_of
from remote_payload.sglang_bench.command import asked_of, path_of
from remote_payload.sglang_bench.environment import api_key
from remote_payload.sglang_bench.info import as_text
from remote_payload.sglang_bench.ready import look
from remote_payload.sglang_bench.redact import redact_argv, redact_text
from remote_payload.sglang_bench.server import Report, Running
from remote_payload.sglang_bench.telling import event

LOCAL = {"127.0.0.1", "localhost", "::1", "0.0.0.0"}  # noqa: S104 - an address in a URL, nothing is bound


def attach(job: BenchJob, report: Report) -> Running:
    """Find the server at `job.attach_url`; nothing is started. Raises JobFailure(server) when it does not answer."""
    url = str(job.attach_url).rstrip("/")
    key = api_key(job)
    hidden = () if key is None else (key,)
    model = None if job.model is None else path_of(job, job.model)
    until_s = time.monotonic() + min(job.ready_timeout_s, 60.0)
    while (probe := look(url, key, model)).info is None:
        if time.monotonic() >= until_s or "API key" in probe.waiting_for or "another model" in probe.waiting_for:
            raise server_failure(
                redact_text(f"no ready server to attach to; waited for: {probe.waiting_for}", hidden),
                hint="start it, check `attach_url` (an address as this host sees it), `model` and `api_key_env`",
            )
        time.sleep(1.0)
    info = probe.info
    argv = launched_with(info)
    asked = {**requested_of(argv), **requested_of(asked_of(job))}  # an old server does not tell its own
    environment = environment_of_listener(url)
    report(event("phase", "attached", url))
    facts = ServerFacts(
        side="spec" if info.get("speculative_algorithm") else "plain",
        start=0,
        attached=True,
        url=url,
        argv=redact_argv(argv, hidden),
        arguments=argument_facts(asked, info, None, environment or {}, hidden),
        server_info=as_text(info, hidden),
    )
    return Running(facts, key, hidden=hidden)


def environment_of_listener(url: str) -> dict[str, str] | None:
    """The environment of the process that listens at a local URL; None where it is not for us to see."""
    parts = urlsplit(url)
    if parts.hostname not in LOCAL or parts.port is None:
        return None
    for pid in ports.listeners(parts.port, processes.all_pids()) or ():
        with contextlib.suppress(OSError):
            pairs = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            return dict(os.fsdecode(pair).split("=", 1) for pair in pairs if b"=" in pair)
    return None
