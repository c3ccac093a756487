"""SGLang's own tool: how it is called, what comes home, and what becomes of it when it, or the server, hangs."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from remote_payload import processes
from remote_payload.failure import JobFailure
from remote_payload.schema.bench import BenchResult
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.record import from_json
from remote_payload.schema.run import Event
from remote_payload.sglang_bench.job import run
from tests.payload.sglang_bench.conftest import STAND_IN
from tests.payload.sglang_bench.test_server import command
from tests.support.answering_server import AnsweringServer
from tests.support.patience import Within


class Bench:
    """A server to attach to, and a tool beside it."""

    def __init__(self, folder: Path, server: AnsweringServer) -> None:
        self.server, self.folder = server, folder / "run" / "result"
        self.folder.mkdir(parents=True)
        self.prompts = folder / "prompts.jsonl"
        self.prompts.write_text('{"text": "Once"}\n{"text": "upon"}\n')

    def run(self, tool: dict[str, Any] | None = None, **settings: Any) -> BenchResult:
        environment = (f"PYTHONPATH={STAND_IN}", f"STAND_IN_TOOL={json.dumps(tool or {})}")
        values = {"attach_url": self.server.url, "prompts": str(self.prompts), "server_python": sys.executable}
        job = BenchJob(**{**values, "server_environment": environment, "harness": "sglang", **settings})
        self.events: list[Event] = []
        run(job, self.folder, self.events.append)
        return self.result

    @property
    def result(self) -> BenchResult:
        return from_json(BenchResult, (self.folder / "bench.json").read_text())

    def said(self, number: int = 0) -> dict[str, Any]:
        """What the tool of a call saw."""
        value: dict[str, Any] = json.loads(self.result.harness[number].output_tail.splitlines()[0])
        return value


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    with AnsweringServer() as server:
        yield Bench(tmp_path, server)


def left() -> list[int]:
    return [pid for pid in processes.descendants(os.getpid()) if "STAND_IN_TOOL" in command(pid)]


def test_it_is_called_unchanged_and_its_line_comes_home(bench: Bench) -> None:
    result = bench.run(concurrency=(1, 2), max_new_tokens=16)
    assert [one.returncode for one in result.harness] == [0, 0]
    first = result.harness[0]
    assert first.argv[:3] == (sys.executable, "-m", "sglang.bench_serving")
    options = dict(zip(first.argv[3::2], first.argv[4::2], strict=False))
    assert options["--num-prompts"] == "5"
    assert options["--max-concurrency"] == "1"
    assert options["--sharegpt-output-len"] == "16"
    assert "--disable-ignore-eos" in first.argv
    assert bench.said()["argv"] == list(first.argv[3:])
    assert first.result_file == "harness-0.jsonl"
    line = json.loads((bench.folder / "harness-1.jsonl").read_text())
    assert (line["output_throughput"], line["request_rate"]) == (12.5, float("inf"))
    assert line["asked"][:3] == ["Once", "upon", "Once"]
    handed = json.loads((bench.folder / "harness-prompts.json").read_text())
    assert len(handed) == 10
    assert bench.server.flushes == 2
    assert (result.points, result.whole, result.planned) == ((), True, 2)
    assert not Path(bench.said()["folder"]).exists()  # its own folder is gone


def test_each_call_says_which_load_it_was(bench: Bench) -> None:
    bench.server.busy_flushes = 100
    result = bench.run(concurrency=(2,), request_rate=(50.0,), repeats=2, requests=4)
    assert [(one.concurrency, one.request_rate, one.repeat, one.requests, one.flushed) for one in result.harness] == [
        (2, None, 0, 4, False),
        (None, 50.0, 0, 4, False),
        (2, None, 1, 4, False),
        (None, 50.0, 1, 4, False),
    ]
    phases = [event.message for event in bench.events if event.name == "harness" and event.kind == "phase"]
    assert phases[2] == "call 3 of 4: plain, 2 users, repeat 2 of 2"


def test_its_own_bar_is_told_on_the_way_and_left_out_of_its_words(bench: Bench) -> None:
    result = bench.run({"bar": [0, 1, 5], "says": "done"}, repeats=2)
    told = [event for event in bench.events if event.kind == "progress"]
    assert [(event.done, event.total, event.unit) for event in told] == [
        (0, 5, "requests"),
        (1, 5, "requests"),
        (5, 5, "requests"),
    ] * 2
    assert told[0].message == "point 1/2, SGLang's own tool"
    assert told[4].message.startswith("point 2/2, SGLang's own tool, ")
    assert told[4].message.endswith(" s left")
    assert told[4].figures is not None
    assert told[4].figures["left_s"] == told[4].figures["point_left_s"] > 0
    assert "done" in result.harness[0].output_tail
    assert "1/5" not in result.harness[0].output_tail


def test_a_long_result_in_any_script_comes_home_whole(bench: Bench) -> None:
    text = '\U0001f600\u20ac"\\ \x01é'
    bench.run({"text": text, "times": 50_000})
    assert json.loads((bench.folder / "harness-0.jsonl").read_text(encoding="utf-8"))["text"] == text * 50_000


def test_many_prompts_are_handed_over(bench: Bench) -> None:
    bench.prompts.write_text("".join(json.dumps({"text": f"{number} {'x' * 4000}"}) + "\n" for number in range(300)))
    bench.run(max_prompts=200)
    assert len(json.loads((bench.folder / "harness-0.jsonl").read_text())["asked"]) == 200


def test_the_key_is_handed_over_and_written_nowhere(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_KEY", "k-very-secret")
    bench.server.key = "k-very-secret"
    bench.run(api_key_env="SERVER_KEY")
    assert bench.said()["key"] == "<redacted>"  # so it had it
    assert "OPENAI_API_KEY" not in os.environ
    assert b"k-very-secret" not in b"".join(path.read_bytes() for path in bench.folder.parent.rglob("*.*"))


@pytest.mark.parametrize(
    ("tool", "code", "words"),
    [
        ({"exit": 1, "says": "No module named tabulate", "leaves": None}, 1, "ended with exit code 1"),
        ({"leaves": None}, 0, "left no result file"),
    ],
)
def test_a_call_that_fails_is_told_with_its_words(bench: Bench, tool: dict[str, Any], code: int, words: str) -> None:
    result = bench.run(tool)
    assert (result.harness[0].returncode, result.harness[0].result_file) == (code, None)
    assert tool.get("says", "") in result.harness[0].output_tail
    assert words in result.warnings[0]


def test_a_tool_that_never_ends_is_ended_with_all_below_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remote_payload.sglang_bench.harness.GRACE_S", 0.3)
    result = bench.run({"hangs": True}, request_timeout_s=0.4)
    assert (result.harness[0].returncode, result.harness[0].result_file) == (-9, None)
    assert "harness" not in bench.result.warnings
    assert left() == []


def test_a_server_that_hangs_ends_the_call(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remote_payload.sglang_bench.harness.GRACE_S", 0.3)

    def unwell(*_: Any) -> bool:
        bench.server.starting = 10**6
        return True

    monkeypatch.setattr("remote_payload.sglang_bench.harness.flush", unwell)
    with Within(), pytest.raises(JobFailure, match=r"it hangs.*/health, which answers HTTP 503") as caught:
        bench.run({"hangs": True}, request_timeout_s=0.9)
    assert caught.value.failure.kind == "server"
    assert left() == []


def test_a_python_that_is_not_there_is_named(bench: Bench) -> None:
    with pytest.raises(JobFailure, match=r"SGLang's own tool cannot be run.*/nowhere/python"):
        bench.run(server_python="/nowhere/python")
