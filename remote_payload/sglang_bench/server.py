"""The life of one SGLang server from the job's side: start it (or find it), ask it, stop it.

running = start(job, "spec", 0, result_folder, report)   # returns when it is really ready
snapshot(running.url, running.key, began_s)
running.check()                                          # raises when it died meanwhile
facts = running.stop()
"""

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from remote_payload.failure import JobFailure, job_failure, server_failure
from remote_payload.schema.bench import ArgumentFact, ServerFacts, Side
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.run import Event
from remote_payload.sglang_bench import leftovers, ports
from remote_payload.sglang_bench.arguments import argument_facts, launched_with, requested_of
from remote_payload.sglang_bench.attached import environment_of_listener
from remote_payload.sglang_bench.command import HOST, asked_of, path_of, server_argv, url_of
from remote_payload.sglang_bench.environment import api_key, secret_values, server_environment
from remote_payload.sglang_bench.gpu_memory import GpuMemory
from remote_payload.sglang_bench.launch import Order, Process
from remote_payload.sglang_bench.ready import look, port_taken, wait_until_ready
from remote_payload.sglang_bench.redact import redact_argv, redact_json, redact_text
from remote_payload.sglang_bench.telling import Telling, event

Report = Callable[[Event], None]
LONGEST_INFO = 1 << 20
"""Characters of `/server_info` that are kept."""
GRACE_S = 20.0
"""Between TERM and KILL; an idle server takes 3 to 10 s, one with a stuck request never ends by itself."""


class Running:
    """A server that was ready when this was made; ours to stop unless it was attached to."""

    def __init__(
        self,
        facts: ServerFacts,
        key: str | None,
        process: Process | None = None,
        memory: GpuMemory | None = None,
        hidden: tuple[str, ...] = (),
    ) -> None:
        self.url = facts.url
        """Without a slash at its end."""
        self.key = key
        """API key to send as `Authorization: Bearer`; never written anywhere."""
        self.hidden = hidden
        """Values that must be written nowhere, the key among them."""
        self._facts, self._process, self._memory = facts, process, memory

    @property
    def facts(self) -> ServerFacts:
        """What is known so far."""
        if self._process is None:
            return self._facts
        return dataclasses.replace(self._facts, lines=tuple(self._process.log.decided.values()))

    @property
    def log_path(self) -> Path | None:
        """Of a server of ours, on this host."""
        return None if self._process is None else self._process.log.path

    @property
    def has_died(self) -> bool:
        """Whether the server of ours has ended without being asked to; asking costs nothing."""
        return self._process is not None and self._process.has_ended and self._facts.stopped is None

    def check(self) -> None:
        """Raise JobFailure(server), with its log's decisive lines, when the server of ours has ended."""
        if self.has_died and self._process is not None:
            raise self._process.failure()

    def hangs(self, what: str) -> JobFailure:
        """The failure of a server that lives and does nothing; `what` = how that was seen."""
        if self._process is not None:
            return self._process.failure(what)
        return server_failure(
            f"the server at {self.url} failed: {what}", hint="look at its log; nothing here started it, nothing ends it"
        )

    def stop(self) -> ServerFacts:
        """TERM, bounded wait, KILL of the whole tree, GPU memory free; an attached server is left alone.

        May be called twice; the second call only returns the facts. Never raises because of the server.
        """
        if self._facts.stopped is None:
            self._facts = self._stopped()
        return self._facts

    def _stopped(self) -> ServerFacts:
        if self._process is None:
            return dataclasses.replace(self._facts, stopped="left")
        facts, died = self.facts, self._process.has_ended
        ended = self._process.end(GRACE_S)
        left = None if self._memory is None else self._memory.left_bytes()
        return dataclasses.replace(
            facts,
            stopped="died" if died else ended.how,
            stop_s=ended.seconds,
            survivors=ended.survivors,
            gpu_memory_left_bytes=left,
        )


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
    # A container's published port is held by its proxy, which answers only where a server stands behind it.
    doubtful = bool(job.exec_prefix and job.port) and not look(f"http://{HOST}:{job.port}", None, None).answered
    if job.port is not None and not doubtful and not ports.is_free(job.port):
        raise port_taken(job.port)
    argv = server_argv(job, side, job.port or ports.free_port())
    asked = requested_of(argv)
    url, key = url_of(asked), api_key(job)
    memory = GpuMemory()
    memory.begin()
    environment, hidden = server_environment(job, folder.parent), secret_values(job, folder.parent)
    telling = Telling(report, f"server {number} ({side})")
    began_s = time.monotonic()
    process = Process(
        job.exec_prefix,
        Order(argv=argv, environment=environment),
        folder.parent / f"server-{number}.log",
        hidden=hidden,
        on_line=telling.read,
    )
    try:
        info = wait_until_ready(process, url, key, asked["model_path"], job.ready_timeout_s, telling.phase)
    except JobFailure as failed:
        process.end(0.0)
        raise _with_others(failed, other) from None
    ready_s = time.monotonic() - began_s
    telling.finish(ready_s)
    memory.claim(process.tree(), behind_prefix=bool(job.exec_prefix))
    classes = process.log.classes
    facts = ServerFacts(
        side=side,
        start=number,
        attached=False,
        url=url,
        argv=redact_argv((*job.exec_prefix, *argv), hidden),
        pid=process.pid,
        ready_s=ready_s,
        phases=telling.clock.phases(),
        arguments=(
            *argument_facts(asked, info, process.log.arguments, {**os.environ, **environment}, hidden),
            *_draft_class(job, side, classes[1] if len(classes) > 1 else None),
        ),
        lines=tuple(process.log.decided.values()),
        server_info=_as_text(info, hidden),
        model_class=classes[0] if classes else None,
        draft_class=classes[1] if len(classes) > 1 else None,
    )
    return Running(facts, key, process, memory, hidden)


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
        server_info=_as_text(info, hidden),
    )
    return Running(facts, key, hidden=hidden)


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


def _as_text(info: Mapping[str, Any], hidden: tuple[str, ...]) -> str:
    """The info without secrets, without what every rank's state repeats of it, and without what is too long."""
    told = dict(info)
    states = info.get("internal_states")
    if isinstance(states, list):
        told["internal_states"] = [_own(state, info) if isinstance(state, dict) else state for state in states]
    room, kept = LONGEST_INFO, {}
    for key, value in sorted(told.items(), key=lambda item: len(str(item[1]))):
        text = json.dumps(redact_json(value, key, hidden))
        room -= len(text)
        kept[key] = json.loads(text) if room > 0 else "<left out>"
    return json.dumps(redact_json(kept, values=hidden), sort_keys=True)


def _own(state: Mapping[str, Any], info: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key not in info or info[key] != value}
