"""A key that the server repeats, wherever it does, comes home in no file, no event and no failure."""

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remote_payload.failure import JobFailure
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.run import Event
from remote_payload.sglang_bench.environment import secret_values
from remote_payload.sglang_bench.job import run
from tests.payload.sglang_bench.conftest import STAND_IN, Site
from tests.support.answering_server import AnsweringServer, Reply

KEY = "k-very-secret"
LAUNCHED = f"python -m sglang.launch_server --api-key {KEY} --custom {KEY}"


class Asked:
    """A job on a server that knows the key, and all that it leaves and tells."""

    def __init__(self, folder: Path, server: AnsweringServer) -> None:
        self.server, self.folder = server, folder / "run"
        (self.folder / "result").mkdir(parents=True)
        self.prompts = folder / "prompts.jsonl"
        self.prompts.write_text('{"text": "Once"}\n{"text": "upon"}\n')
        self.events: list[Event] = []
        self.failure: JobFailure | None = None

    def run(self, **settings: Any) -> str:
        """Everything that is left, as text."""
        values = {"attach_url": self.server.url, "prompts": str(self.prompts), "api_key_env": "SERVER_KEY"}
        try:
            run(BenchJob(**{**values, **settings}), self.folder / "result", self.events.append)
        except JobFailure as failed:
            self.failure = failed
        left = [repr(self.events), repr(self.failure and self.failure.failure)]
        for path in self.folder.rglob("*.*"):
            data = path.read_bytes()
            left.append((gzip.decompress(data) if path.suffix == ".gz" else data).decode())
        return "\n".join(left)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    monkeypatch.setenv("SERVER_KEY", KEY)
    with AnsweringServer() as server:
        server.key = KEY
        yield Asked(tmp_path, server)


@pytest.mark.parametrize(
    "info",
    [
        {"foo": {"bar": KEY}, "headers": [KEY], "speculative_note": KEY, KEY: 1},
        {"launch_command": LAUNCHED},
        {"launch_command": LAUNCHED.split()},
        {"model_loader_extra_config": json.dumps({"api_key": KEY}), "s3": f"https://u:{KEY}@h/"},
        {"version": KEY},
        {"internal_states": [{"a": {"b": [KEY]}}]},
    ],
)
def test_what_a_server_says_about_itself(asked: Asked, info: dict[str, Any]) -> None:
    asked.server.info |= info
    left = asked.run()
    assert asked.failure is None
    assert KEY not in left
    assert "<redacted>" in left


def test_another_model_named_by_the_key(asked: Asked) -> None:
    asked.server.info["model_path"] = f"/m/{KEY}"
    assert KEY not in asked.run(model="/m/x")
    assert "serves another model: /m/<redacted>" in str(asked.failure)


def test_warm_ups_that_are_refused(asked: Asked) -> None:
    asked.server.replies = [Reply(status=401, body=json.dumps({"error": f"invalid {KEY}"}).encode())]
    assert KEY not in asked.run()
    assert "HTTP 401: invalid <redacted>" in str(asked.failure)


def test_a_chat_endpoint_that_fails(asked: Asked) -> None:
    asked.prompts.write_text('{"messages": [{"role": "user", "content": "Why?"}]}\n')
    asked.server.chat = [(500, {"e": f"no {KEY}"})]
    assert KEY not in asked.run()
    assert "the chat endpoint answers HTTP 500" in str(asked.failure)


@pytest.mark.parametrize("key", [f"{KEY}\nX: y", f"{KEY}é€", f"{KEY} "])
def test_a_key_that_no_header_holds(asked: Asked, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("SERVER_KEY", key)
    assert KEY not in asked.run()
    assert "the API key in `SERVER_KEY` cannot be sent" in str(asked.failure)


def test_an_empty_key_is_none(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_KEY", "")
    asked.server.key = None
    asked.run()
    assert asked.failure is None
    assert "Authorization" not in asked.server.headers[0]


@pytest.mark.parametrize("says", [f'server_info={{"a": "{KEY}"}}', f"--api-key {KEY}"])
def test_what_sglangs_own_tool_leaves(asked: Asked, says: str) -> None:
    line = {"server_info": {"api_key": KEY, "launch_command": LAUNCHED}, "deep": KEY, "request_rate": float("inf")}
    tool = {"says": says, "leaves": line}
    environment = (f"PYTHONPATH={STAND_IN}", f"STAND_IN_TOOL={json.dumps(tool)}")
    left = asked.run(harness="sglang", server_python=sys.executable, server_environment=environment)
    assert asked.failure is None
    assert KEY not in left
    home = json.loads((asked.folder / "result" / "harness-0.jsonl").read_text())
    assert home["server_info"]["api_key"] == "<redacted>"
    assert home["request_rate"] == float("inf")


@pytest.mark.parametrize("more", [("9" * 400,), ("[" * 5000 + "]" * 5000,), ('{"a": ',)])
def test_a_line_of_the_tool_that_is_odd_loses_its_key_too(asked: Asked, more: tuple[str, ...]) -> None:
    tool = {"text": f"{KEY} {more[0]}"}
    environment = (f"PYTHONPATH={STAND_IN}", f"STAND_IN_TOOL={json.dumps(tool)}")
    assert KEY not in asked.run(harness="sglang", server_python=sys.executable, server_environment=environment)


def test_secrets_in_the_arguments_and_variables_of_a_server_of_ours(site: Site) -> None:
    log = site.result / "noise.log"
    log.write_text(f"token is {KEY}\nINFO:     {KEY}-2\nconnects to db-{KEY}\n")
    job = site.job(
        {"log": str(log)},
        server_args=(
            "--model-loader-extra-config",
            json.dumps({"api_key": f"{KEY}-3"}),
            "--s3-url",
            f"https://u:{KEY}-4@h/",
        ),
        more_environment=(f"MY_SERVICE_TOKEN={KEY}", f"OPENAI_KEY={KEY}-2", f"DB_URL=postgres://u:db-{KEY}@h/x"),
    )
    running = site.start(job)
    running.stop()
    assert KEY not in repr(running.facts)
    assert KEY not in site.log
    assert KEY not in repr(site.events)


def test_a_key_of_digits_is_the_same_key(site: Site) -> None:
    """It is read off a command line, where `1e5` is a number only to whoever takes it for one."""
    job = site.job({"key": "1e5"}, server_args=("--api-key", "1e5"))
    assert site.start(job).key == "1e5"
    assert "1e5" in secret_values(job, site.result.parent)
