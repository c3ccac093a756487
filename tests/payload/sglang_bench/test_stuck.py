"""What hangs - a server that stands still, one that is never ready, nvidia-smi - ends named, in time, and whole."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remote_payload import processes
from remote_payload.failure import JobFailure
from remote_payload.schema.bench import BenchResult
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.record import from_json
from remote_payload.schema.run import Event
from remote_payload.sglang_bench import job as bench_job
from remote_payload.weights import folder_facts
from tests.payload.sglang_bench.conftest import Site
from tests.payload.sglang_bench.test_server import command
from tests.support.answering_server import AnsweringServer, Reply


@pytest.fixture
def prompts(tmp_path: Path) -> str:
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(f'{{"text": "Once {number}"}}\n' for number in range(12)))
    return str(path)


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remote_payload.sglang_bench.points.STALL_S", 1.2)
    monkeypatch.setattr("remote_payload.sglang_bench.stall.HEALTH_S", 0.4)


def servers() -> list[int]:
    """The stand-ins below us."""
    return [pid for pid in processes.descendants(os.getpid()) if "stand_in" in command(pid)]


def stop_at(wanted: Callable[[Event], bool]) -> Callable[[Event], None]:
    """Let the server stand still once such an event comes."""
    stopped: list[int] = []

    def report(event: Event) -> None:
        if wanted(event) and not stopped:
            stopped.extend(servers())
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)

    return report


@pytest.mark.slow
def test_a_server_that_stands_still_while_it_is_measured(site: Site, prompts: str) -> None:
    job = site.job({"token_s": 0.05, "child": True}, prompts=prompts, requests=12, repeats=2)
    points: list[str] = []

    def second_point(event: Event) -> bool:
        points.extend(event.message for _ in [0] if event.name == "measure")
        return len(points) == 2 and event.name == "requests" and (event.done or 0) >= 3

    began_s = time.monotonic()
    with pytest.raises(JobFailure) as caught:
        bench_job.run(job, site.result, stop_at(second_point))
    assert time.monotonic() - began_s < 90.0  # of it two for the stop; a request's own deadline is ten minutes
    failure = caught.value.failure
    assert failure.kind == "server"
    assert "it hangs: no sign of life for 1 s; waited for: /health_generate: timed out" in failure.message
    assert servers() == []
    result = from_json(BenchResult, (site.result / "bench.json").read_text())
    assert (result.whole, len(result.points), result.planned) == (False, 1, 2)
    assert (result.servers[0].stopped, result.servers[0].survivors) == ("kill", ())


SCHEDULER = "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB."


def test_a_scheduler_that_dies_in_the_warm_up_is_named_with_its_log(site: Site, prompts: str) -> None:
    """The server itself ends seconds later: what it says then is the story, not that nobody answered."""
    job = site.job({"dies_asked": [SCHEDULER, 1.5]}, prompts=prompts, requests=2)
    with pytest.raises(JobFailure) as caught:
        bench_job.run(job, site.result, site.events.append)
    failure = caught.value.failure
    assert "(out_of_memory)" in failure.message
    assert "it ended with exit code 1" in failure.message
    assert failure.details[0] == SCHEDULER
    assert failure.details.count(SCHEDULER) == 1
    assert failure.details[-1] == f"its whole log, on the server: {site.result.parent / 'server-0.log'}"
    assert servers() == []


def test_an_older_server_beside_ours_and_the_weights_stand_in_the_result(
    site: Site, prompts: str, tmp_path: Path
) -> None:
    site.start(site.job())
    draft = tmp_path / "draft"
    draft.mkdir()
    (draft / "model.safetensors").write_bytes(b"weights")
    bench_job.run(site.job(prompts=prompts, requests=2, draft=str(draft)), site.result, site.events.append)
    result = from_json(BenchResult, (site.result / "bench.json").read_text())
    assert [warning for warning in result.warnings if "another SGLang server is on this host" in warning]
    assert result.target is None  # a name on a hub
    assert result.draft == folder_facts(str(draft))
    assert result.draft.weights_sha256 is not None


@pytest.mark.parametrize("name", ["model", "draft"])
@pytest.mark.parametrize("path", ["~/nope", "/nowhere/nope", "~nosuchuser/nope"])
def test_a_folder_that_is_not_there_is_named_before_a_start(site: Site, prompts: str, name: str, path: str) -> None:
    changes: dict[str, Any] = {name: path}
    with pytest.raises(JobFailure) as caught:
        bench_job.run(site.job(prompts=prompts, **changes), site.result, site.events.append)
    failure = caught.value.failure
    assert (failure.kind, failure.details) == ("checkpoint", ())
    assert failure.message == f"`{name}` is not there on the server: {os.path.expanduser(path)}"
    assert f"`--{name}`" in (failure.hint or "")
    assert not list(site.result.parent.glob("server-*.log"))


def test_an_attached_server_that_hangs_is_named_and_left(site: Site, prompts: str) -> None:
    with AnsweringServer() as server:
        server.replies = [Reply()] * 3 + [Reply(chunks=[(0.0, 1)] * 3, hang_after=2)]
        job = BenchJob(attach_url=server.url, prompts=prompts)

        def unwell(event: Event) -> None:
            server.starting = 10**6 if event.name == "measure" else server.starting

        with pytest.raises(JobFailure, match=r"it hangs.*/health, which answers HTTP 503") as caught:
            bench_job.run(job, site.result, unwell)
    assert server.url in caught.value.failure.message


def test_quiet_is_no_hang_where_the_server_is_well(site: Site, prompts: str) -> None:
    """As in the prefill of a long prompt."""
    with AnsweringServer() as server:
        server.replies = [Reply(), Reply(), Reply(chunks=((2.5, 1), (0.0, 3))), Reply()]
        bench_job.run(BenchJob(attach_url=server.url, prompts=prompts, requests=2), site.result, site.events.append)
    result = from_json(BenchResult, (site.result / "bench.json").read_text())
    assert [(point.requests, point.failed) for point in result.points] == [(2, 0)]


def test_a_server_that_stands_still_before_it_is_ready(site: Site) -> None:
    job = site.job({"starting_s": 600.0, "child": True}, ready_timeout_s=2.0)
    with pytest.raises(JobFailure, match=r"not ready after 2 s, in phase `warm-up`") as caught:
        bench_job.run(job, site.result, stop_at(lambda event: event.name == "warm-up"))
    assert caught.value.failure.kind == "server"
    assert servers() == []
    assert not (site.result / "bench.json").exists()


def test_an_nvidia_smi_that_hangs(site: Site, prompts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started by a script, which would outlive a kill of the script alone."""
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nsleep 345.678\necho never\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    monkeypatch.setattr("remote_payload.sglang_bench.machine_samples.DEADLINE_S", 0.3)
    monkeypatch.setattr("remote_payload.gpus.facts.DEADLINE_S", 0.3)
    bench_job.run(site.job({"token_s": 0.05}, prompts=prompts, requests=5), site.result, site.events.append)
    result = from_json(BenchResult, (site.result / "bench.json").read_text())
    assert [warning for warning in result.warnings if "gave no answer within 0.3 s" in warning]
    assert result.servers[0].gpu_memory_left_bytes is None
    assert result.points[0].failed == 0
    assert [pid for pid in processes.all_pids() if b"345.678" in words(pid)] == []
    assert json.loads((site.result / "bench.json").read_text())["whole"] is True


def words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
