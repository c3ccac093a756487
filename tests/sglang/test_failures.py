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
from tests.sglang.conftest import ARGUMENTS, Models
from tests.support.served_models import write_hookless_target, write_wide_draft

Asked = Callable[..., BenchJob]


def failure(job: BenchJob, folder: Path, report: Callable[[Event], None] = lambda _: None, kind: str = "server") -> str:
    """What the job says when it fails, details included."""
    with pytest.raises(JobFailure) as raised:
        bench_job.run(job, folder, report)
    found = raised.value.failure
    assert found.kind == kind, found
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
    """A folder is looked for before a start; a name of the hub is the server's to find."""
    said = failure(asked(**{**chain, "draft": str(tmp_path / "nothing")}), tmp_path, kind="checkpoint")
    assert f"`draft` is not there on the server: {tmp_path / 'nothing'}" in said
    assert list(schedulers()) == []


@pytest.mark.slow
def test_topk_without_steps(asked: Asked, models: Models, tmp_path: Path) -> None:
    """The server says no more than `AssertionError`."""
    said = failure(asked(draft=str(models.std), eagle_topk=1), tmp_path)
    assert "(speculation_settings)" in said
    assert "give all three of `num_steps`, `eagle_topk` and `num_draft_tokens`" in said


@pytest.mark.slow
def test_a_drafter_of_another_width(asked: Asked, chain: dict[str, Any], tmp_path: Path) -> None:
    """It loads without a word and dies of the first request, the server's own."""
    wide = write_wide_draft(tmp_path / "wide")
    said = failure(asked(**{**chain, "draft": str(wide)}), tmp_path)
    assert "(aux_states)" in said
    assert "mat1 and mat2 shapes cannot be multiplied" in said
    assert "trained for this target (`hidden_size`)" in said
    assert list(schedulers()) == []


@pytest.mark.slow
def test_a_target_that_hands_no_states_over(
    asked: Asked, models: Models, chain: dict[str, Any], tmp_path: Path
) -> None:
    target = write_hookless_target(tmp_path / "gpt2", models.target)
    words = (*ARGUMENTS, "--load-format", "dummy", "--speculative-draft-load-format", "auto")
    said = failure(asked(**chain, model=str(target), server_args=words), tmp_path)
    assert "(no_hook)" in said
    assert "GPT2LMHeadModel" in said
    assert list(schedulers()) == []


def test_a_port_that_is_taken(asked: Asked, chain: dict[str, Any], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = failure(asked(**chain, port=port), tmp_path)
    assert str(port) in said
    assert list(schedulers()) == []


def during(act: Callable[[int], None]) -> Callable[[Event], None]:
    """Do something to the schedulers in the middle of the measuring, once."""
    over: list[int] = []

    def report(event: Event) -> None:
        if event.kind == "progress" and (event.done or 0) >= 3 and event.name == "requests" and not over:
            over.extend(schedulers())
            for pid in over:
                act(pid)

    return report


def test_a_scheduler_that_stands_still(
    asked: Asked, chain: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All others live, and the port is open; a request would wait for its own deadline, and every one after it."""
    monkeypatch.setattr("remote_payload.sglang_bench.points.STALL_S", 6.0)
    monkeypatch.setattr("remote_payload.sglang_bench.stall.HEALTH_S", 3.0)
    monkeypatch.setattr("remote_payload.sglang_bench.server.GRACE_S", 3.0)
    job = dataclasses.replace(asked(**chain), requests=400, max_new_tokens=400)
    said = failure(job, tmp_path, during(lambda pid: os.kill(pid, signal.SIGSTOP)))
    assert "it hangs: no sign of life for 6 s; waited for: /health_generate" in said
    assert list(schedulers()) == []


def test_a_scheduler_that_is_killed(asked: Asked, chain: dict[str, Any], tmp_path: Path) -> None:
    """In the middle of the measuring; what was answered before stays, and the server is gone whole."""
    killed: list[int] = []

    def kill(pid: int) -> None:
        killed.append(pid)
        os.kill(pid, signal.SIGKILL)

    job = dataclasses.replace(asked(**chain), requests=400, max_new_tokens=400)
    said = failure(job, tmp_path, during(kill))
    assert len(killed) == 1
    assert "died" in said or "ended" in said or "killed" in said, said
    assert list(schedulers()) == []
    assert (tmp_path / "requests.jsonl.gz").stat().st_size > 0
