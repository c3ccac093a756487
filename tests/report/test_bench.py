"""The report on a served benchmark against golden files; `EAGLE3_WRITE_GOLDEN=1` writes them anew."""

import dataclasses
import json

import pytest

from orchestrator.report.bench_content import report_bench
from orchestrator.report.content import RunReport
from orchestrator.report.json import run_json
from orchestrator.report.views import View, view_text
from remote_payload.schema.bench import BenchResult, HarnessRun, LogLine, RequestSample, ServerPhase
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


def test_sglangs_own_tool_alone() -> None:
    run = HarnessRun(side="spec", argv=("python",), returncode=0, result_file="sglang_bench.jsonl")
    line = '{"request_rate": Infinity, "completed": 8, "output_throughput": 57.1, "accept_length": 1.9}'
    result = made_bench([made_server()], [], harness=(run, HarnessRun(**{**vars(run), "result_file": None})))
    told = report_bench(result, (), harness={"sglang_bench.jsonl": f"{line}\nno json\n"})
    text = view_text(dataclasses.replace(report(result, ()), bench=told), "report")
    assert "sglang_bench.jsonl  spec  57.10  1.90           unknown  unknown  8" in text
    assert "none                spec  -      -              -        -        -" in text
    assert "Its accept length = the server's own average since the flush" in " ".join(text.split())
    assert (
        "the server's own average"
        in run_json(dataclasses.replace(report(result, ()), bench=told))["harness_definitions"]
    )


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


def test_json_holds_every_figure() -> None:
    value = json.loads(json.dumps(run_json(story()), allow_nan=False))
    assert value["diagnosis"]["verdict"] == "slower"
    assert value["loads"][0]["acceptance"]["accept_length_pooled"]["value"] == pytest.approx(1.9, abs=0.05)
    assert value["draft"]["ceiling"] == 2
    assert value["pairs"][0]["step_cost"] == pytest.approx(value["pairs"][0]["break_even_accept_length"])
    assert len(value["requests"]) == 48
    assert value["requests"][0]["histogram"]
