"""A server that is up already: measured, left running, and SGLang's own tool beside our client."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.report.bench_text import bench_blocks
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.server import Running
from tests.sglang.conftest import Bench

Asked = Callable[..., BenchJob]


def test_attached_to_a_server_that_is_up(serving: Running, asked: Asked, bench: Bench, truth: dict[str, Any]) -> None:
    found = bench(asked(attach_url=serving.url, model=None, concurrency=(1, 4)))
    (server,) = found.report.result.servers
    assert (server.attached, server.stopped) == (True, "left")
    assert found.report.figures.draft.ceiling == 4
    assert [load.concurrency for load in found.report.figures.loads] == [1, 4]
    one = [item for item in found.report.requests if item.point == 0]
    told = {item.prompt: list(item.histogram or ()) for item in one}
    assert [told[prompt] for prompt in sorted(told)] == truth["histograms"]["std_right"]
    assert not serving.has_died


def test_what_it_was_asked_for_is_read_from_its_command(serving: Running, asked: Asked, bench: Bench) -> None:
    found = bench(asked(attach_url=serving.url, model=None, requests=1, max_prompts=1))
    facts = {fact.name: fact for fact in found.report.result.servers[0].arguments}
    assert json.loads(facts["speculative_num_draft_tokens"].effective or "null") == 4
    assert json.loads(facts["speculative_num_draft_tokens"].requested or "null") == 4


def test_text_and_its_tokens_are_answered_alike(serving: Running, asked: Asked, bench: Bench, tmp_path: Any) -> None:
    path = tmp_path / "text.jsonl"
    path.write_text(json.dumps({"text": "def open(self):\n"}) + "\n", encoding="utf-8")
    found = bench(asked(attach_url=serving.url, model=None, prompts=str(path), requests=2))
    first, second = found.report.requests
    assert first.output_ids == second.output_ids
    assert first.prompt_tokens
    assert sum(first.chunk_tokens) == first.completion_tokens == 64


def test_the_speed_is_what_the_clock_says(serving: Running, asked: Asked, bench: Bench) -> None:
    found = bench(asked(attach_url=serving.url, model=None, requests=6, repeats=3))
    (load,) = found.report.figures.loads
    assert load.speed.throughput.low is not None
    for point in found.report.result.points:
        mine = [item for item in found.report.requests if item.point == point.point]
        spans = sum(item.chunk_s[-1] - item.sent_s for item in mine)
        assert spans == pytest.approx((point.last_token_s or 0) - point.first_sent_s, rel=0.2)  # one user: no gaps


def test_sglangs_own_tool_beside_our_client(serving: Running, asked: Asked, bench: Bench, tmp_path: Path) -> None:
    """The same texts on the same server, asked by either: each by its own definition, and they must be near."""
    path = tmp_path / "text.jsonl"
    texts = [
        f"def {name}(self, value):\n" for name in ("open", "close", "read", "write", "seek", "flush", "name", "tell")
    ]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    job = asked(attach_url=serving.url, model=None, prompts=str(path), requests=16)
    ours = bench(job).report.figures.loads[0]
    theirs = bench(dataclasses.replace(job, harness="sglang"))
    (call,) = theirs.report.result.harness
    assert (call.returncode, call.result_file) == (0, "harness-0.jsonl"), call.output_tail
    assert call.argv[1:3] == ("-m", "sglang.benchmark.serving")
    line = json.loads((theirs.folder / "harness-0.jsonl").read_text())
    assert (line["backend"], line["completed"], line["total_output_tokens"]) == ("sglang", 16, 16 * 64)
    (told,) = theirs.report.harness
    assert told.completed == 16
    assert told.output_throughput == pytest.approx(16 * 64 / line["duration"])
    assert ours.acceptance is not None
    assert told.accept_length == pytest.approx(ours.acceptance.accept_length.value, rel=0.1)
    assert 0.5 < (told.output_throughput or 0) / (ours.speed.throughput.value or 0) < 1.3
    text = "\n".join("\n".join(block) for block in bench_blocks(theirs.report, 110, verbose=False))
    assert "SGLang's own tool, by its own definitions" in text
    assert f"{told.accept_length:.2f}" in text
    rate = f"{told.output_throughput:.1f} tok/s at 1 user, its accept length {told.accept_length:.2f}"
    assert theirs.report.diagnosis.headline.startswith(f"SGLang's own tool measured {rate}")
    bars = [event for event in theirs.events if event.kind == "progress"]
    assert bars, "its progress bar is not read any more"
    assert {(event.name, event.total) for event in bars} == {("requests", 16.0)}
    assert bars[-1].done == 16
