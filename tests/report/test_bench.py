"""The report on a served benchmark against golden files; `EAGLE3_WRITE_GOLDEN=1` writes them anew."""

import dataclasses
import json
from typing import Any

import pytest

from orchestrator.report.bench_content import report_bench
from orchestrator.report.content import RunReport
from orchestrator.report.json import run_json
from orchestrator.report.views import View, view_text
from remote_payload.schema.bench import BenchResult, HarnessRun, LogLine, RequestSample, ServerPhase, Side
from tests.report.test_text import check
from tests.support.made_bench import SHAPE, made_bench, made_paired, made_point, made_request, made_server
from tests.support.made_runs import made_run


def report(result: BenchResult, requests: tuple[RequestSample, ...]) -> RunReport:
    record = made_run("bench-20260102-0304-ab12cd")
    spec = type(record.spec)(**{**vars(record.spec), "job_kind": "bench"})
    return RunReport(record=dataclasses.replace(record, spec=spec), bench=report_bench(result, requests))


def story() -> RunReport:
    """Asked for 1 step and 16 draft tokens; the server made it 2."""
    line = LogLine(
        rule="draft_tokens_adjusted",
        line="speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1",
    )
    asked, runs = dict(zip(SHAPE, (1, 1, 16), strict=True)), dict(zip(SHAPE, (1, 1, 2), strict=True))
    phases = (ServerPhase(name="imports", seconds=11.0), ServerPhase(name="weights", seconds=0.4))
    spec = made_server(asked=asked, runs=runs, lines=(line,), ready_s=31.2, phases=phases)
    return report(*made_paired(servers=(spec, made_server("plain", ready_s=28.0))))


@pytest.mark.parametrize(("view", "name"), [("report", "bench.txt"), ("verbose", "bench_verbose.txt")])
def test_the_storys_second_half(view: View, name: str) -> None:
    check(name, view_text(story(), view))


def test_a_run_with_failed_requests_says_so_first() -> None:
    items = tuple(made_request(0, i, histogram=(10, 8, 6, 9)) for i in range(3))
    bad = made_request(0, 3, error="HTTP 503", status=503, chunk_s=(), chunk_tokens=(), completion_tokens=None)
    found = report(made_bench([made_server()], [made_point(0, (*items, bad))]), (*items, bad))
    text = view_text(found, "report")
    assert text.startswith("1 request failed")
    assert "1 FAILED" in text


def test_a_tree_shows_its_depth_and_its_nodes() -> None:
    runs = dict(zip(SHAPE, (3, 4, 16), strict=True))
    items = tuple(made_request(0, i, histogram=(10, 8, 6, 9)) for i in range(6))
    text = view_text(report(made_bench([made_server(asked=runs, runs=runs)], [made_point(0, items)]), items), "report")
    assert "at most 4 (16 nodes)" in text
    assert "of 16" not in text
    assert "accept length 2.42 of 4" in text


def called(
    *calls: HarnessRun, texts: dict[str, str], width: int = 110, folder: str | None = None
) -> tuple[str, RunReport]:
    """The report where SGLang's own tool measured alone."""
    result = made_bench([made_server(), made_server("plain")], [], harness=calls)
    told = dataclasses.replace(report(result, ()), bench=report_bench(result, (), harness=texts, folder=folder))
    return view_text(told, "report", width=width), told


def call(number: int, side: Side, users: int, repeat: int = 0, **more: Any) -> HarnessRun:
    values = {"returncode": 0, "result_file": f"harness-{number}.jsonl", "flushed": True, "requests": 8, **more}
    argv = ("python", "-m", "sglang.bench_serving", "--backend", "sglang")
    return HarnessRun(side=side, argv=argv, concurrency=users, repeat=repeat, **values)


def line(tok_s: float, **more: float) -> str:
    values = {"completed": 8, "output_throughput": tok_s, "median_ttft_ms": 12.0, "median_tpot_ms": 17.5, **more}
    return f'{{"request_rate": Infinity, {json.dumps(values)[1:]}\nno json\n'


def test_sglangs_own_tool_tells_load_by_load_what_a_drafter_changed() -> None:
    calls = [call(2 * r + n, side, 4, r) for r in range(3) for n, side in enumerate(("spec", "plain"))]
    texts = {
        f"harness-{2 * r + n}.jsonl": line(rate + r, **more)
        for r in range(3)
        for n, (rate, more) in enumerate(((56.0, {"accept_length": 1.9}), (89.0, {})))
    }
    text, told = called(*calls, texts=texts, width=80, folder="/home/me/runs/run-a/result")
    words = " ".join(text.split())
    assert words.startswith(
        "SGLang's own tool measured 57.0 tok/s at 4 users, its accept length 1.90, 90.0 tok/s without"
    )
    assert "a drafter (0.63x, 0.6" in words
    assert "4 users spec 57.00 [54.57, 59.54] (3) 1.90 24" in words
    assert "4 users plain 90.00 [87.55, 92.52] (3) - 24" in words
    assert "4 users plain 12.00 17.50" in words
    assert "load speed-up 4 users 0.63 [0.6" in words
    assert "Its accept length = the server's own average since the flush" in words
    assert "SGLang's own tool (sglang.bench_serving) on the host; prefix cache flushed before each call" in words
    assert "/home/me/runs/run-a/result: harness-0.jsonl, harness-1.jsonl" in words
    assert [one for one in text.splitlines() if len(one) > 80] == []
    value = json.loads(json.dumps(run_json(told), allow_nan=False))
    assert value["diagnosis"]["verdict"] == "measured"
    assert value["harness_pairs"][0]["speedup"]["value"] == pytest.approx(57 / 90)
    assert value["harness_pairs"][0]["output_throughputs"] == {"spec": [56, 57, 58], "plain": [89, 90, 91]}
    assert "the server's own average" in value["harness_definitions"]


def test_two_loads_called_once_have_no_interval() -> None:
    calls = [call(0, "plain", 1), call(1, "plain", 16)]
    text, _ = called(*calls, texts={"harness-0.jsonl": line(40.0), "harness-1.jsonl": line(300.0)})
    assert text.startswith("SGLang's own tool measured 40.0 tok/s at 1 user (plain); 300.0 tok/s at 16 users (plain)")
    assert "1 user    plain  40.00 (1)" in text
    assert "speed-up" not in text


@pytest.mark.parametrize(
    ("more", "text", "why"),
    [
        ({"returncode": 1, "result_file": None}, None, "exit code 1"),
        ({}, line(57.0, completed=7), "7 of 8 requests completed"),
        ({}, "no json", "no throughput in its file"),
        ({"result_file": None}, None, "no file"),
    ],
)
def test_a_call_that_failed_makes_no_measurement(more: dict[str, Any], text: str | None, why: str) -> None:
    calls = [call(0, "spec", 4), call(1, "plain", 4, output_tail="started\nTimeoutError: oh\n\n", **more)]
    texts = {"harness-0.jsonl": line(57.0)} | ({} if text is None else {"harness-1.jsonl": text})
    shown, told = called(*calls, texts=texts)
    headline = shown.splitlines()[0]
    assert headline == f"1 of 2 calls of SGLang's own tool failed (at 4 users, plain: {why}): no measurement"
    assert f"call 1 (4 users, plain) FAILED: {why}; its last words: TimeoutError: oh" in shown
    assert "4 users  spec  57.00 (1)" in shown
    assert told.bench is not None
    assert told.bench.diagnosis.verdict == "invalid"


def test_an_older_record_of_its_calls_is_shown_as_far_as_it_goes() -> None:
    run = HarnessRun(side="spec", argv=("python",), returncode=0, result_file="sglang_bench.jsonl")
    text, _ = called(run, texts={"sglang_bench.jsonl": line(57.1)})
    assert text.startswith("SGLang's own tool measured 57.1 tok/s at a load that is not told")
    assert "unknown spec 57.10 (1) unknown 8" in " ".join(text.split())
    assert "prefix cache unknown before each call" in " ".join(text.split())


def test_how_many_requests_were_sent_stands_beside_the_prompts() -> None:
    items = tuple(made_request(0, i, histogram=(10, 8, 6, 9)) for i in range(6))
    points = [made_point(0, items)]
    text = view_text(report(made_bench([made_server()], points), items), "report")
    assert "8 prompts (token_ids) of /srv/merged.jsonl, 6 requests a point" in " ".join(text.split())
    workload = dataclasses.replace(made_bench([], []).workload, prompts=1)
    text = view_text(report(made_bench([made_server()], points, workload=workload), items), "report")
    assert "1 prompt (token_ids)" in text
    all_once = tuple(made_request(0, i, histogram=(10, 8, 6, 9)) for i in range(8))
    text = view_text(report(made_bench([made_server()], [made_point(0, all_once)]), all_once), "report")
    assert "requests a point" not in text


def test_every_table_fits_a_terminal_of_80_columns() -> None:
    sides = {"spec": (50, 140), "plain": (40, 100)}
    points, items = [], []
    for number, (users, side, repeat) in enumerate((u, s, r) for u in (1, 16, 256) for s in sides for r in range(3)):
        spans = sides[side]
        some = [
            made_request(
                number,
                i,
                histogram=(10, 8, 6, 9) if side == "spec" else None,
                sent_s=0.001 * repeat * i,
                chunk_s=(1.2345 + i * spans[0] / 700, 29.5 + i * spans[1] / 70 + repeat),
                chunk_tokens=(1, 1999),
                completion_tokens=2000,
            )
            for i in range(110)
        ]
        points.append(made_point(number, tuple(some), side=side, concurrency=users, repeat=repeat))
        items += some
    servers = [made_server(), made_server("plain")]
    for view in ("report", "verbose"):
        text = view_text(report(made_bench(servers, points), tuple(items)), view, width=80)
        assert "256 users" in text
        assert [line for line in text.splitlines() if len(line) > 80] == []


def test_equal_repeats_have_no_interval_and_it_is_said_why() -> None:
    points, requests = [], []
    for repeat in range(3):
        items = [made_request(repeat, i, sent_s=float(i), seconds=1.0) for i in range(6)]
        points.append(made_point(repeat, items, repeat=repeat))
        requests += items
    told = view_text(report(made_bench([made_server()], points), tuple(requests)), "report", width=100)
    assert "(no interval where repeats do not differ at all: their spread is unknown, not 0)" in told
    assert "no interval where repeats" not in view_text(story(), "report", width=100)


def test_json_holds_every_figure() -> None:
    value = json.loads(json.dumps(run_json(story()), allow_nan=False))
    assert value["diagnosis"]["verdict"] == "slower"
    assert value["loads"][0]["acceptance"]["accept_length_pooled"]["value"] == pytest.approx(1.9, abs=0.05)
    assert value["draft"]["ceiling"] == 2
    assert value["pairs"][0]["step_cost"] == pytest.approx(value["pairs"][0]["break_even_accept_length"])
    assert len(value["requests"]) == 48
    assert value["requests"][0]["histogram"]
