"""Calls of SGLang's own tool by a served benchmark of ours, as measurements: a call is a repeat, a lost one is told."""

import json
from pathlib import Path

from orchestrator.importers.kinds import measured
from orchestrator.importers.own_calls import call_measurements
from orchestrator.importers.source import Source
from orchestrator.measurements import measurements_of
from orchestrator.records.measurement import Fact
from orchestrator.store import Store
from remote_payload.schema.bench import HarnessRun
from tests.support.made_bench import made_bench, made_server
from tests.support.made_sets import put_bench

LINE = json.loads((Path(__file__).parent / "data" / "sglang_serving_0.5.23.jsonl").read_text().splitlines()[0])


def call(name: str, *, returncode: int = 0, requests: int = 3) -> HarnessRun:
    return HarnessRun(side="spec", argv=("python",), returncode=returncode, result_file=name, concurrency=2,
                      repeat=0, requests=requests, flushed=True)  # fmt: skip


def test_calls_of_a_load_are_its_repeats() -> None:
    result = made_bench([made_server()], [], harness=(call("a"), call("b"), call("c", returncode=1)))
    texts = {"a": json.dumps(LINE), "b": json.dumps({**LINE, "output_throughput": 100.0})}
    (one,) = call_measurements("run-a", result, texts, {"host": "gpu1"})
    assert one.case == (Fact(name="side", value="spec"), Fact(name="concurrency", value="2"))
    speed = next(item for item in one.series if item.metric == "output_throughput_tok_s")
    assert speed.y == (LINE["output_throughput"], 100.0)
    assert speed.keys == ("run-a/1", "run-a/2")
    assert one.warnings[-1] == "1 of 3 calls of SGLang's tool left no result and are in no figure"
    told = {fact.name: fact.value for fact in (*one.hard, *one.soft)}
    assert told["cache_policy"] == "flushed before each point"
    assert told["host"] == "gpu1"
    theirs = measured(Source("x.jsonl", texts["a"].encode())).measurements[0]
    assert told["harness"] == next(fact.value for fact in theirs.hard if fact.name == "harness")  # they are a pair


def test_a_stored_run_of_that_tool_can_be_compared(tmp_path: Path) -> None:
    store = Store(tmp_path)
    result = made_bench([made_server()], [], harness=(call("harness-0.jsonl"),))
    record = put_bench(store, "bench-a1", (result, ()), more={"harness-0.jsonl": json.dumps(LINE).encode()})
    (one,) = measurements_of(store, record).measurements
    assert "output_throughput_tok_s" in {item.metric for item in one.series}
    assert Fact(name="harness", value="sglang bench_serving") in one.hard


def test_a_call_that_lost_requests_is_invalid_and_one_without_a_result_is_none() -> None:
    result = made_bench([made_server()], [], harness=(call("a", requests=4),))
    (one,) = call_measurements("run-a", result, {"a": json.dumps(LINE)}, {})
    assert one.invalid == ("1 of 4 requests were not answered (a)",)
    assert call_measurements("run-a", result, {}, {}) == ()
