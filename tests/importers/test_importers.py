"""Files of other tools as measurements: units, definitions, repeats, what they do not tell, and broken ones."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from orchestrator.compare import definitions as ours
from orchestrator.compare.metrics import metric_of
from orchestrator.errors import InvalidRunError, UsageError
from orchestrator.importers import definitions as words
from orchestrator.importers.kinds import KINDS, measured
from orchestrator.importers.source import Source
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series
from tests.support.lasting import lasting

DATA = Path(__file__).parent / "data"
FILES = {path.name: path.read_bytes() for path in DATA.iterdir() if path.is_file() and path.suffix != ".md"}
LINE = json.loads(FILES["sglang_serving_0.5.23.jsonl"].splitlines()[0])
VLLM = json.loads(FILES["vllm_serve_0.33.0.json"])
LATER = ("tag", "server_info", "total_throughput", "max_output_tokens_per_s", "p90_e2e_latency_ms", "p95_ttft_ms")
"""Keys that 0.4.9 does not write."""


def read(name: str) -> MeasurementSet:
    return measured(Source(name, FILES[name]))


def of(*values: dict[str, Any]) -> MeasurementSet:
    return measured(Source("file.jsonl", "\n".join(json.dumps(value) for value in values).encode()))


def case(found: MeasurementSet, **facts: str) -> Measurement:
    wanted = {Fact(name=name, value=value) for name, value in facts.items()}
    return next(one for one in found.measurements if wanted <= set(one.case))


def series(one: Measurement, metric: str) -> Series:
    return next(item for item in one.series if item.metric == metric)


def test_lines_of_one_configuration_are_repeats() -> None:
    found = read("sglang_serving_0.5.23.jsonl")
    assert len(found.measurements) == 2
    two = case(found, concurrency="2", side="spec")
    throughput = series(two, "output_throughput_tok_s")
    assert throughput.level == "run"
    assert throughput.y == pytest.approx((120.448138, 129.102318))
    assert series(two, "ttft_s").y == pytest.approx((0.09308030, 0.08706488))
    assert series(two, "ttft_s").definition == ours.TTFT.format(summary="median")
    hard = {fact.name: fact.value for fact in two.hard}
    assert hard["target"] == "/models/target"
    assert hard["num_steps"] == "3"
    assert hard["gpu"] is None
    assert any("GPU" in text for text in found.unknown)


def test_a_running_average_of_the_server_is_one_number() -> None:
    accept = series(case(read("sglang_serving_0.5.23.jsonl"), concurrency="2"), "accept_length_pooled")
    assert (accept.level, len(accept.y)) == ("summary", 1)
    assert accept.definition == words.SERVER_AVERAGE != ours.ACCEPT_LENGTH_POOLED


def test_an_old_line_has_fewer_keys() -> None:
    one = of({key: value for key, value in LINE.items() if key not in LATER}).measurements[0]
    assert "e2e_s_p90" not in {item.metric for item in one.series}
    assert {fact.value for fact in one.hard if fact.name == "target"} == {None}


def test_a_result_is_known_again_however_it_is_written() -> None:
    pretty = measured(Source("one.json", json.dumps(dict(reversed(LINE.items())), indent=1).encode()))
    grown = of(LINE, lasting(LINE, 2.0)).measurements[0].results
    assert [result.sha256 for result in pretty.measurements[0].results] == [grown[0].sha256]
    assert grown[0].sha256 != grown[1].sha256
    for file in ("specforge_bench.jsonl", "vllm_serve_0.33.0.json", "aiperf_0.13.0.json", "sglang_batch_0.5.23.jsonl"):
        for one in read(file).measurements:
            repeats = next(item for item in one.series if item.level == "run")
            assert [result.key for result in one.results] == list(repeats.keys), file


def test_a_copied_line_is_no_repeat() -> None:
    found = of(LINE, LINE)
    assert series(found.measurements[0], "output_throughput_tok_s").y == (LINE["output_throughput"],)
    assert any("stand there twice" in text for text in found.unknown)


@pytest.mark.parametrize(
    ("version", "metrics", "throughput", "ttft", "accept"),
    [
        ("0.5.12", 18, 73.33955515, 0.2003925200, 1.4658385),
        ("0.5.18", 24, 89.15145517, 0.1890568650, 1.4372760),
    ],
)
def test_two_versions_between(version: str, metrics: int, throughput: float, ttft: float, accept: float) -> None:
    (one,) = read(f"sglang_serving_{version}.jsonl").measurements
    assert len(one.series) == metrics  # the newer one tells more percentiles
    assert series(one, "output_throughput_tok_s").y == pytest.approx((throughput,))
    assert series(one, "ttft_s").y == pytest.approx((ttft,))
    assert series(one, "accept_length_pooled").y == pytest.approx((accept,))
    assert {fact.name: fact.value for fact in one.hard}["num_draft_tokens"] == "4"
    assert one.invalid == ()


def test_what_every_line_has_against_it_is_said_once_with_its_count() -> None:
    lines = [{**lasting(LINE, 1.0 + n), "total_output_tokens_retokenized": 100 + n} for n in range(5)]
    (warning,) = (text for text in of(*lines).measurements[0].warnings if "retokenised" in text)
    assert warning == (
        "its texts retokenised have 100 tokens, its throughput counts 144; requests whose answer was an error would be "
        "among them (file.jsonl, line 1), and 4 more like it"
    )
    assert sum("retokenised" in text for text in of(*lines[:3]).measurements[0].warnings) == 3
    lost = [{**line, "errors": ["refused"] * (n % 2 + 1) + [""]} for n, line in enumerate(lines)]
    told = [text for one in of(*lost).measurements for text in one.invalid]
    assert len(told) <= 4


def test_other_settings_of_the_server_are_other_cases() -> None:
    other = {**LINE, "server_info": {**LINE["server_info"], "speculative_num_steps": 5}}
    assert {one.case[-1] for one in of(LINE, other).measurements} == {
        Fact(name="num_steps", value="3"),
        Fact(name="num_steps", value="5"),
    }


def with_server(**arguments: object) -> dict[str, Any]:
    return {**lasting(LINE, 2.0), "server_info": {**LINE["server_info"], **arguments}}


def test_other_servers_are_no_repeats_and_another_start_is_one() -> None:
    for change in ({"version": "0.5.18"}, {"attention_backend": "fa3"}, {"model_path": "/models/other"}):
        found = of(LINE, with_server(**change))
        assert [len(one.series[0].y) for one in found.measurements] == [1, 1], change
    start = with_server(random_seed=7, port=1, max_total_num_tokens=9, launch_command="--port 1 --api-key sk-123")
    again = of(LINE, start)
    assert [len(one.series[0].y) for one in again.measurements] == [2]
    assert "sk-123" not in str(again)
    untold = {key: value for key, value in LINE.items() if key != "server_info"}
    told = of(untold, {**lasting(untold, 2.0), "total_input_tokens": 40}).measurements[0].warnings
    assert any("on one server and model: the file tells neither" in text for text in told)
    assert any("input tokens are not alike in its repeats: 32, 40" in text for text in told)


def test_repeats_on_one_start_are_told_from_repeats_on_several() -> None:
    def starts(*servers: dict[str, Any]) -> list[str]:
        (one,) = of(
            *(lasting(with_server(**{"startup_time": None, **server}), n) for n, server in enumerate(servers, 1))
        ).measurements
        return [name.rpartition("/")[2] for name in one.series[0].clusters]

    def took(seconds: float) -> dict[str, Any]:
        return {"startup_time": {"load_weight": seconds}}

    assert starts(took(0.1), took(0.1), took(0.2)) == ["start 0", "start 0", "start 1"]
    assert starts({"random_seed": 1}, {"random_seed": 2}) == ["start 0", "start 1"]
    assert starts({"random_seed": 1}, {"random_seed": 1}) == []  # may be the user's own, in every start
    assert starts({"random_seed": None}, took(0.1)) == []


def test_a_repeat_without_a_number_is_named() -> None:
    one = of(LINE, {**with_server(), "median_ttft_ms": float("nan"), "p99_tpot_ms": None}).measurements[0]
    assert len(series(one, "ttft_s").y) == 1
    assert "no figure of `median_ttft_ms`: not a number (file.jsonl, line 2)" in one.warnings
    assert "only 1 of 2 repeats tell ttft_s, tpot_s_p99" in one.warnings


def test_failed_requests_make_it_invalid() -> None:
    found = of({**LINE, "errors": ["", "refused", ""]})
    assert found.measurements[0].invalid == ("1 of 3 requests were not answered (file.jsonl)",)
    two = {**LINE, "completed": 2, "request_throughput": 2 / LINE["duration"]}
    assert of(two).measurements[0].invalid == found.measurements[0].invalid


@pytest.mark.parametrize("length", [0.4, 4.01, 40])
def test_an_accept_length_that_cannot_be_makes_it_invalid_by_name(length: float) -> None:
    (found,) = of({**with_server(speculative_num_draft_tokens=4), "accept_length": length}).measurements
    assert found.invalid == (
        f"`accept_length_pooled` cannot be {length:g}: expected an accept length, 1 to 4, its own num_draft_tokens (4)",
    )
    untold = {name: value for name, value in LINE.items() if name != "server_info"} | {"accept_length": length}
    (found,) = of(untold).measurements
    assert (found.invalid == ()) == (length == 4.01)
    (found,) = of({**with_server(speculative_num_draft_tokens=4), "accept_length": 4.0}).measurements
    assert found.invalid == ()


@pytest.mark.parametrize(("length", "fits"), [(0.4, False), (4.5, True), (40, False)])
def test_tokens_over_steps_that_cannot_be_are_no_accept_length(length: float, fits: bool) -> None:
    """Its tokens hold one of the prefill for each request, so it may be a little above the width."""
    text = FILES["specforge_bench.jsonl"].replace(b'"accept_length": 2.4', b'"accept_length": %g' % length)
    told = [reason for one in measured(Source("file.jsonl", text)).measurements for reason in one.invalid]
    assert (told == []) == fits
    assert all("expected an accept length, 1 to 5" in reason for reason in told)


def test_an_answer_that_was_an_error_is_a_lost_request() -> None:
    """The tool counts it as completed, with all the tokens that were asked for."""
    one = read("sglang_serving_lost.jsonl").measurements[0]
    assert json.loads(FILES["sglang_serving_lost.jsonl"])["completed"] == 3
    assert one.invalid == ("1 of 3 requests were not answered (sglang_serving_lost.jsonl)",)
    assert Fact(name="failed_requests", value="1") in one.hard


def test_how_many_were_sent_is_in_the_default_name_or_is_unknown() -> None:
    line = {key: value for key, value in LINE.items() if not isinstance(value, list)}
    named = measured(Source("sglang_1130_4_custom.jsonl", json.dumps(line).encode()))
    assert named.measurements[0].invalid == ("1 of 4 requests were not answered (sglang_1130_4_custom.jsonl)",)
    other = of(line)
    assert Fact(name="failed_requests", value=None) in other.measurements[0].hard
    assert any("lost ones cannot be seen" in text for text in other.unknown)
    fewer = of(line, {**line, "completed": 2})
    assert [one.case[-1].value for one in fewer.measurements] == ["3", "2"]  # no repeats: some may be lost
    assert fewer.measurements[0].case[-1].name == "answered_requests"


def test_no_secret_of_the_server_comes_along() -> None:
    value = {**LINE, "server_info": {**LINE["server_info"], "api_key": "sk-123"}}
    source = Source("file.jsonl", json.dumps(value).encode())
    assert "sk-123" not in str(measured(source))
    assert source.holds_secret
    assert not Source("file.jsonl", json.dumps(LINE).encode()).holds_secret


def test_a_servers_log_by_running_requests() -> None:
    found = read("sglang_server_0.5.23.log")
    one = case(found, running_requests="1")
    accept = series(one, "accept_length_pooled")
    assert accept.n is not None
    assert 1 < accept.y[0] < 4
    assert series(one, "accept_rate").definition == words.LOG_RATE
    assert {fact.name: fact.value for fact in one.hard}["draft"] == "/models/draft"


OLD = "server_args=ServerArgs(model_path='/m', speculative_algorithm='EAGLE3', speculative_num_draft_tokens=4)\n"


@pytest.mark.parametrize(("rate", "definition"), [("0.50", words.LOG_RATE_OLD), ("0.33", words.LOG_RATE)])
def test_the_meaning_of_a_rate_is_seen_from_its_lines(rate: str, definition: str) -> None:
    line = f"Decode batch. #running-req: 1, #token: 9, accept len: 2.00, accept rate: {rate}"
    found = measured(Source("old.log", (OLD + line).encode()))
    assert series(found.measurements[0], "accept_rate").definition == definition
    without = measured(Source("old.log", line.encode())).measurements[0]
    assert "accept_rate" not in {item.metric for item in without.series}
    assert without.warnings


def test_specforge_pools_in_one_tool_and_not_in_the_other() -> None:
    bench = read("specforge_bench.jsonl")
    pooled = series(case(bench, dataset="gsm8k", side="spec"), "accept_length_per_verify")
    assert pooled.y == (2.5, 2.4)
    assert pooled.definition == ours.ACCEPT_LENGTH_PER_VERIFY
    command = read("specforge_command.json").measurements[0]
    assert series(command, "accept_length_mean").definition == words.MACRO
    assert series(command, "accept_length_mean").y == pytest.approx((2.0005270,))
    assert series(command, "accept_length_per_verify").y == pytest.approx((192 / 101,))


def test_a_real_result_of_bench_eagle3() -> None:
    found = measured(Source("results_20261130_120945.jsonl", FILES["specforge_bench_0.2.0.jsonl"]))
    assert found.run_id.startswith("specforge-bench-20261130-")
    plain, one, two = found.measurements
    assert series(plain, "output_throughput_tok_s").y == pytest.approx((27.97643986,))
    assert [item.metric for item in plain.series] == ["output_throughput_tok_s"]
    assert series(one, "output_throughput_tok_s").y == pytest.approx((25.33795570,))
    for spec in (one, two):
        assert series(spec, "accept_length_per_verify").y == pytest.approx((288 / 161,))  # 6 answers of 48 tokens
    hard = {fact.name: fact.value for fact in two.hard}
    assert (hard["draft"], hard["num_draft_tokens"], hard["prompts"]) == ("/models/draft", "4", "3")
    assert hard["max_new_tokens"] is None  # the file does not tell it, and it is another for each data set


def test_specforges_one_is_no_accept_length() -> None:
    for side, dataset in (("plain", "gsm8k"), ("spec", "mtbench")):
        one = case(read("specforge_bench.jsonl"), dataset=dataset, side=side)
        assert [item.metric for item in one.series] == ["output_throughput_tok_s"]
        assert bool(one.warnings) == (side == "spec")


def test_vllms_joint_rates_become_conditional_ones() -> None:
    found = read("vllm_serve_0.33.0.json")
    one = found.measurements[0]
    assert found.run_id.startswith("vllm-serve-20261130-")
    assert [series(one, f"step{depth}_acceptance").y[0] for depth in (1, 2, 3)] == pytest.approx(
        [24 / 92, 8 / 24, 1 / 8]
    )
    assert series(one, "accept_rate").y == (33 / 276,)
    assert series(one, "accept_length_pooled").y == (1 + 33 / 92,)
    assert series(one, "accept_length_pooled").definition == words.SERVER_COUNTERS
    lost = of({**VLLM, "completed": 3, "failed": 1, "request_throughput": 3 / VLLM["duration"]})
    assert lost.measurements[0].invalid == ("1 of 4 requests were not answered (file.jsonl)",)
    assert series(one, "accept_rate").definition == ours.ACCEPT_RATE.format(drafts=3)


@pytest.mark.parametrize("name", sorted(FILES))
def test_every_metric_is_in_the_catalogue_with_its_unit(name: str) -> None:
    for one in read(name).measurements:
        for item in one.series:
            known = metric_of(item.metric)
            assert known is not None
            assert known.unit == item.unit


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_same_bytes_are_the_same_run(name: str) -> None:
    assert read(name) == read(name)
    assert read(name).run_id != measured(Source(name, FILES[name] + b"\n")).run_id


BROKEN = {
    "empty": (b"", "empty"),
    "blank": (b" \n", "empty"),
    "binary": (b"\x80\x81\xff", "other bytes"),
    "null bytes": (b"{}\0", "other bytes"),
    "cut": (FILES["vllm_serve_0.33.0.json"][:300], "expected JSON"),
    "cut later": (FILES["sglang_serving_0.5.23.jsonl"][:-100], "line 3: expected JSON"),
    "deep": (b"[" * 100_000, "nested too deep"),
    "no object": (b"[1]", "expected an object"),
    "nothing in it": (b"[]", "found none"),
    "unknown": (b'{"a": 1}', "no result file"),
    "a key twice": (b'{"a": 1, "a": 2}', "a key twice"),
    "word for a number": (
        json.dumps({**LINE, "output_throughput": "12"}).encode(),
        "`output_throughput`: expected a num",
    ),
    "below zero": (json.dumps({**LINE, "median_ttft_ms": -1}).encode(), "`median_ttft_ms`"),
    "too large": (json.dumps({**LINE, "output_throughput": 10**400}).encode(), "`output_throughput`"),
    "list for an object": (json.dumps({**LINE, "server_info": []}).encode(), "`server_info`: expected an object"),
    "two tools": (
        json.dumps(LINE).encode() + b"\n" + FILES["vllm_serve_0.33.0.json"],
        "line 2: expected a result of sglang",
    ),
    "no figure": (json.dumps(dict.fromkeys(LINE)).encode(), "expected figures"),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_a_broken_file_is_told_with_its_place(name: str) -> None:
    data, told = BROKEN[name]
    with pytest.raises(InvalidRunError) as raised:
        measured(Source("file.jsonl", data))
    assert raised.value.message.startswith("file.jsonl")
    assert told in raised.value.message


def test_a_kind_that_it_is_not() -> None:
    for kind in KINDS:
        if kind != "vllm-serve":
            with pytest.raises(InvalidRunError, match="expected"):
                measured(Source("file.json", FILES["vllm_serve_0.33.0.json"]), kind)
    with pytest.raises(UsageError, match="sglang-log"):
        measured(Source("file.json", FILES["vllm_serve_0.33.0.json"]), "nothing")


@pytest.mark.slow
def test_a_large_file_costs_its_longest_line_and_a_line_too_large_is_refused() -> None:
    line = {key: value for key, value in LINE.items() if not isinstance(value, list)}
    lines = (json.dumps({**lasting(line, n), "itls": [[0.01] * 100] * 100}) for n in range(1, 61))
    source = Source("large.jsonl", "\n".join(lines).encode())
    tracemalloc.start()
    try:
        found = measured(source)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [len(one.series[0].y) for one in found.measurements] == [60]
    assert peak < len(source.data)  # all its objects together take five times as much
    huge = b'{"a": "' + b"x" * (33 << 20) + b'"}\n'
    for data, told in ((huge, "file.jsonl, line 1"), (b"{}\n" + huge, "file.jsonl, line 2"),
                       (b"{\n" + b'"a": 1,\n' * (4 << 20), "as one document")):  # fmt: skip
        with pytest.raises(InvalidRunError, match=r"expected at most 32 MB at once, found: 3[34] MB") as raised:
            measured(Source("file.jsonl", data), "vllm-serve" if b"{}" not in data else None)
        assert told in raised.value.message


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_no_number_is_no_figure(value: float | None) -> None:
    metrics = {item.metric for item in of({**LINE, "median_tpot_ms": value}).measurements[0].series}
    assert "tpot_s" not in metrics
    assert "tpot_s_p99" in metrics


def test_a_log_names_the_lines_that_tell_no_number_and_a_rate_of_zero_is_one() -> None:
    lines = [
        f"[2026-11-30 05:55:12] Decode batch. #running-req: 1, accept len: {length}, accept rate: {rate}, "
        "gen throughput (token/s): 9.0"
        for length, rate in (("1.00", "0.00"), ("1.30", "0.10"), ("nan", "nan"))
    ]
    found = measured(Source("dead.log", (OLD + "\n".join(lines)).encode()))
    one = found.measurements[0]
    assert found.run_id.startswith("sglang-log-20261130-")
    assert series(one, "accept_rate").y == pytest.approx((0.05,))
    assert (series(one, "accept_length_pooled").n, series(one, "output_throughput_tok_s").n) == (2, 3)
    assert one.warnings[0] == "1 of 3 lines tell no number for their accept length, or 0: left out"
    quoted = b'{"generated_texts": ["Decode batch. #running-req: 1"], ' + json.dumps(LINE).encode()[1:]
    assert measured(Source("answers.jsonl", quoted)).tool == "sglang bench_serving"
