"""What `run bench` makes of its flags, up to the job."""

import json
from typing import Any

import pytest

from orchestrator import jobfile
from orchestrator.cli import run_bench
from orchestrator.cli.every import take_every
from orchestrator.cli.waiting import take_wish
from orchestrator.config import Config
from remote_payload.schema.bench_job import BenchJob
from tests.cli.conftest import Eagle

ASKED = ("run", "bench", "--host", "me@gpu1.example", "--model", "/m", "--draft", "/d")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[BenchJob]:
    """The jobs that the command would launch, read as the pipeline reads them."""
    found: list[BenchJob] = []
    own = ("host_name", "job_file", "run_id", "detach", "find_python", "accept_new", "as_json", "notify")

    def launch(kind: str, flags: dict[str, Any]) -> None:
        take_wish(flags)
        take_every(flags)
        job = jobfile.plan(kind, Config(), None, {key: flags[key] for key in flags if key not in own}).job
        assert isinstance(job, BenchJob)
        found.append(job)

    monkeypatch.setattr(run_bench, "launch", launch)
    return found


def test_the_flags_become_the_job(eagle: Eagle, asked: list[BenchJob]) -> None:
    more = (
        "--num-steps",
        "1",
        "--eagle-topk",
        "1",
        "--num-draft-tokens",
        "16",
        "--concurrency",
        "1,4",
        "--with-baseline",
    )
    words = ("--server-arg", "--enable-metrics", "--server-arg", "--trust-remote-code", "--server-env", "A=b")
    assert eagle(*ASKED, *more, *words, "--repeats", "3").code == 0
    (job,) = asked
    assert (job.num_steps, job.eagle_topk, job.num_draft_tokens) == (1, 1, 16)
    assert job.concurrency == (1, 4)
    assert job.with_baseline
    assert job.server_args == ("--enable-metrics", "--trust-remote-code")
    assert job.server_environment == ("A=b",)
    assert job.request_rate == ()
    assert job.prompts == "bundled"


def test_a_rate_replaces_the_job_files_users(eagle: Eagle, asked: list[BenchJob]) -> None:
    assert eagle(*ASKED, "--request-rate", "0.5,2").code == 0
    assert eagle(*ASKED, "--request-rate", "2", "--concurrency", "8").code == 0
    assert [(job.concurrency, job.request_rate) for job in asked] == [((), (0.5, 2.0)), ((8,), (2.0,))]


def test_a_list_that_is_none_is_refused(eagle: Eagle) -> None:
    answer = eagle(*ASKED, "--concurrency", "1;4")
    assert answer.code == 2
    assert "whole numbers like 1,4,16" in answer.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--attach-url", "http://127.0.0.1:1", "--with-baseline"), "`--with-baseline` needs a server of our own"),
        (("--prompts", "random"), "random tokens say nothing about acceptance"),
        (("--server-env", "A"), "NAME=VALUE"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_is_launched(
    eagle: Eagle, words: tuple[str, ...], message: str
) -> None:
    answer = eagle(*ASKED, *words)
    assert answer.code == 2
    assert message in answer.err


def test_settings_are_traced_to_their_flags() -> None:
    planned = jobfile.plan("bench", Config(), None, {"model": "/m", "server_args": ["--x"], "concurrency": [4]})
    sources = {setting.key: setting.source for setting in planned.settings}
    values = {setting.key: json.loads(setting.value) for setting in planned.settings}
    assert (sources["server_args"], sources["concurrency"], sources["repeats"]) == (
        "--server-arg",
        "--concurrency",
        "jobs/bench.toml",
    )
    assert values["concurrency"] == [4]
