"""Starts that cannot work, and a server that dies under load: named, and nothing of it left."""

import dataclasses
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from remote_payload.failure import JobFailure
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.run import Event
from remote_payload.sglang_bench import job as bench_job

Asked = Callable[..., BenchJob]


def failure(job: BenchJob, folder: Path, report: Callable[[Event], None] = lambda _: None) -> str:
    """What the job says when it fails, details included."""
    with pytest.raises(JobFailure) as raised:
        bench_job.run(job, folder, report)
    found = raised.value.failure
    assert found.kind == "server", found
    return "\n".join((found.message, found.hint or "", *found.details))


def schedulers() -> Iterator[int]:
    """Pids of SGLang's scheduler processes below this one, wherever in the tree."""
    parents, names = {}, {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                text = (path / "stat").read_text()
                command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            parents[int(path.name)], names[int(path.name)] = int(text[text.rindex(")") + 2 :].split()[1]), command
    for pid, command in names.items():
        up = pid
        while up in parents and up != os.getpid():
            up = parents[up]
        if up == os.getpid() and command.startswith("sglang::scheduler"):
            yield pid


def test_a_wrong_draft_path(asked: Asked, chain: dict[str, Any], tmp_path: Path) -> None:
    said = failure(asked(**{**chain, "draft": str(tmp_path / "nothing")}), tmp_path)
    assert str(tmp_path / "nothing") in said
    assert list(schedulers()) == []


def test_a_port_that_is_taken(asked: Asked, chain: dict[str, Any], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = failure(asked(**chain, port=port), tmp_path)
    assert str(port) in said
    assert list(schedulers()) == []


def test_a_scheduler_that_is_killed(asked: Asked, chain: dict[str, Any], tmp_path: Path) -> None:
    """In the middle of the measuring; what was answered before stays, and the server is gone whole."""
    killed: list[int] = []

    def report(event: Event) -> None:
        if event.kind == "progress" and (event.done or 0) >= 3 and event.name == "requests" and not killed:
            for pid in schedulers():
                killed.append(pid)
                os.kill(pid, signal.SIGKILL)

    job = dataclasses.replace(asked(**chain), requests=400, max_new_tokens=400)
    said = failure(job, tmp_path, report)
    assert len(killed) == 1
    assert "died" in said or "ended" in said or "killed" in said, said
    assert list(schedulers()) == []
    assert (tmp_path / "requests.jsonl.gz").stat().st_size > 0
