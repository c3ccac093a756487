"""What the checks say of servers that did something else than asked, and of measurements that are none."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import pytest

from orchestrator.compare.served import served_figures
from orchestrator.diagnosis.finding import CheckResult
from orchestrator.diagnosis.served import ServedDiagnosis, diagnose_served
from orchestrator.diagnosis.served_headline import top_line
from remote_payload.schema.bench import (
    ArgumentFact,
    AutoSteps,
    BenchResult,
    LogLine,
    PointFacts,
    RequestSample,
    ServerFacts,
    SglangFacts,
    Snapshot,
)
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.bench_machine import MachineSample
from remote_payload.schema.workload import WorkloadFacts
from tests.support.made_bench import SHAPE, made_bench, made_paired, made_point, made_request, made_server


def judged(result: BenchResult, requests: tuple[RequestSample, ...], machine: Any = ()) -> ServedDiagnosis:
    return diagnose_served(result, requests, served_figures(result, requests), machine)


def one_load(server: ServerFacts, *, sglang: SglangFacts | None = None, concurrency: int = 1, **more: Any) -> Any:
    """Eight sound requests on this server."""
    items = tuple(made_request(0, i, histogram=(10, 8, 6, 9), **more) for i in range(8))
    return judged(made_bench([server], [made_point(0, items, concurrency=concurrency)], sglang), items)


def one_load_of(items: tuple[RequestSample, ...]) -> ServedDiagnosis:
    return judged(made_bench([made_server()], [made_point(0, items)]), items)


def found(diagnosis: ServedDiagnosis, words: str) -> CheckResult:
    matching = [item for item in diagnosis.findings if words in item.summary]
    assert len(matching) == 1, [item.summary for item in diagnosis.findings]
    return matching[0]


def test_a_server_that_does_as_asked_has_no_findings() -> None:
    diagnosis = one_load(made_server())
    assert diagnosis.findings == ()
    assert diagnosis.verdict == "measured"
    assert "accept length 2.42 of 4" in diagnosis.headline
    assert {item.title for item in diagnosis.results} >= {"effective arguments", "loaded drafter", "drafter at work"}


def test_the_storys_override_is_named() -> None:
    line = LogLine(
        rule="draft_tokens_adjusted",
        line="speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1",
    )
    asked, runs = dict(zip(SHAPE, (1, 1, 16), strict=True)), dict(zip(SHAPE, (1, 1, 2), strict=True))
    diagnosis = one_load(made_server(asked=asked, runs=runs, lines=(line,)))
    item = found(diagnosis, "asked for 16 draft tokens, the server runs with 2")
    assert item.severity == "serious"
    assert "--num-steps 15" in item.remedy[0]
    assert item.summary in diagnosis.headline
    assert any(line.line == one.value for one in item.evidence)
    assert "of 2" in diagnosis.headline
    assert "of 16" not in diagnosis.headline.replace("of 16 draft", "")


@pytest.mark.parametrize("wanted", [2, 3, 4, 8, 16, 64, 200])
def test_every_shape_that_is_advised_holds_its_nodes(wanted: int) -> None:
    asked, runs = dict(zip(SHAPE, (1, 1, wanted), strict=True)), dict(zip(SHAPE, (1, 1, 2 + wanted), strict=True))
    item = found(one_load(made_server(asked=asked, runs=runs)), f"asked for {wanted} draft tokens")
    shapes = [re.search(r"--num-steps (\d+) --eagle-topk (\d+) --num-draft-tokens (\d+)", line) for line in item.remedy]
    assert len(shapes) == (1 if wanted == 2 else 2)
    for shape in shapes:
        assert shape is not None
        steps, topk, tokens = map(int, shape.groups())
        BenchJob(model="/srv/target", draft="/srv/draft", num_steps=steps, eagle_topk=topk, num_draft_tokens=tokens)
        assert tokens == wanted
        assert tokens - 1 <= topk + (steps - 1) * topk * topk


def test_the_advice_for_the_storys_sixteen_nodes() -> None:
    asked, runs = dict(zip(SHAPE, (1, 1, 16), strict=True)), dict(zip(SHAPE, (1, 1, 2), strict=True))
    item = found(one_load(made_server(asked=asked, runs=runs)), "asked for 16")
    assert item.remedy == (
        "for a chain that deep: --num-steps 15 --eagle-topk 1 --num-draft-tokens 16",
        "for a tree of 16 nodes: --num-steps 5 --eagle-topk 4 --num-draft-tokens 16",
    )


def test_a_rule_that_does_not_explain_it_is_not_told() -> None:
    """3 steps at topk 1 make 4 tokens; 8 come from elsewhere."""
    asked, runs = dict(zip(SHAPE, (3, 1, 16), strict=True)), dict(zip(SHAPE, (3, 1, 8), strict=True))
    item = found(one_load(made_server(asked=asked, runs=runs)), "asked for 16")
    assert item.summary == "asked for 16 draft tokens, the server runs with 8"
    assert "the installed SGLang" not in [one.name for one in item.evidence]


def attached(**more: Any) -> ServerFacts:
    return made_server(attached=True, stopped="left", **more)


def test_an_attached_server_is_held_against_the_job() -> None:
    asked, runs = dict(zip(SHAPE, (3, 1, 16), strict=True)), dict(zip(SHAPE, (3, 1, 4), strict=True))
    item = found(one_load(attached(asked=asked, runs=runs)), "asked for 16 draft tokens, the server runs with 4")
    assert all("nothing is started here" in line for line in item.remedy)


@pytest.mark.parametrize(
    ("argv", "outcome"), [((), "cannot_tell"), (("python", "-m", "sglang.launch_server"), "finding")]
)
def test_who_chose_the_steps_of_an_attached_server(argv: tuple[str, ...], outcome: str) -> None:
    runs = dict(zip(SHAPE, (3, 1, 4), strict=True))
    diagnosis = one_load(attached(asked=dict.fromkeys(SHAPE), runs=runs, argv=argv))
    (item,) = [one for one in diagnosis.results if "3 steps" in one.summary]
    assert item.outcome == outcome
    assert ("SGLang chose" in item.summary) == (outcome == "finding")
    assert not any("--num-steps" in line and "nothing is started here" not in line for line in item.remedy)


def with_facts(*facts: ArgumentFact) -> ServerFacts:
    server = made_server()
    return ServerFacts(**{**vars(server), "arguments": (*server.arguments, *facts)})


def arguments_line(server: ServerFacts) -> CheckResult:
    (item,) = [one for one in one_load(server).results if one.title == "effective arguments"]
    return item


def test_what_the_server_does_not_tell_is_not_called_the_same() -> None:
    item = arguments_line(with_facts(ArgumentFact(name="page_size", requested="1", effective=None)))
    assert item.summary == (
        "the server runs with the 6 arguments that it was asked for and tells; not told: 1 (page_size)"
    )
    server = made_server()
    untold = tuple(ArgumentFact(**{**vars(fact), "effective": None}) for fact in server.arguments)
    none = arguments_line(ServerFacts(**{**vars(server), "arguments": untold}))
    assert none.outcome == "cannot_tell"
    assert none.summary == "the server tells none of the 6 arguments that it was asked for"


def test_an_abbreviated_flag_is_compared_under_its_full_name() -> None:
    facts = (
        ArgumentFact(name="max_running", requested="64", effective=None),
        ArgumentFact(name="max_running_requests", requested=None, effective="48"),
        ArgumentFact(name="chunked_prefill", requested="512", effective=None),
        ArgumentFact(name="chunked_prefill_size", requested=None, effective="8192"),
    )
    summaries = [item.summary for item in one_load(with_facts(*facts)).findings]
    assert summaries == ["asked for chunked_prefill_size 512, the server runs with 8192"]


def test_a_token_map_that_is_not_told_is_not_called_ignored() -> None:
    fact = ArgumentFact(name="speculative_token_map", requested='"/srv/map.pt"', effective=None)
    assert one_load(with_facts(fact)).findings == ()


@pytest.mark.parametrize(
    ("name", "wanted", "told"),
    [
        ("speculative_algorithm", "NEXTN", "EAGLE"),
        ("lora_paths", "a=b", [{"lora_name": "a", "lora_path": "b"}]),
        ("revision", "1e5", "1e5"),
    ],
)
def test_words_that_the_server_keeps_in_another_form(name: str, wanted: object, told: object) -> None:
    assert one_load(made_server(asked={name: wanted}, runs={name: told})).findings == ()


@pytest.mark.parametrize(
    ("value", "line", "simulated"),
    [
        ("3", None, True),
        ("2.5", None, True),
        ("-1", None, False),
        ("0", None, False),
        ("often", None, False),
        (None, "SGLANG_SIMULATE_ACC_LEN is not set", False),
        (None, "SGLANG_SIMULATE_ACC_LEN=-1", False),
        (None, "SGLANG_SIMULATE_ACC_LEN=3.5", True),
        (None, "'SGLANG_SIMULATE_ACC_LEN': 3", True),
    ],
)
def test_acceptance_is_simulated_from_a_length_above_0_alone(
    value: str | None, line: str | None, simulated: bool
) -> None:
    runs = {} if value is None else {"SGLANG_SIMULATE_ACC_LEN": value}
    lines = () if line is None else (LogLine(rule="simulated_acceptance", line=line),)
    assert (one_load(made_server(runs=runs, lines=lines)).verdict == "simulated") == simulated


def test_steps_that_sglang_chose() -> None:
    table = (AutoSteps(target_class="LlamaForCausalLM", num_steps=5, eagle_topk=4, num_draft_tokens=8),)
    asked, runs = dict.fromkeys(SHAPE), dict(zip(SHAPE, (5, 4, 8), strict=True))
    diagnosis = one_load(made_server(asked=asked, runs=runs), sglang=SglangFacts(version="0.5.23", auto_steps=table))
    item = found(diagnosis, "SGLang chose 5 steps, topk 4, 8 draft tokens by itself for LlamaForCausalLM")
    assert item.severity == "note"


@pytest.mark.parametrize(("users", "severity"), [(8, "note"), (64, "serious")])
def test_the_cap_on_running_requests(users: int, severity: str) -> None:
    items = tuple(made_request(0, i, histogram=(10, 8, 6, 9)) for i in range(users))
    server = made_server(runs={"max_running_requests": 48})
    diagnosis = judged(made_bench([server], [made_point(0, items, concurrency=users)]), items)
    assert found(diagnosis, "max_running_requests to 48").severity == severity


def test_a_cap_that_was_asked_for_is_none_of_ours() -> None:
    server = made_server(asked={"max_running_requests": 48}, runs={"max_running_requests": 48})
    assert one_load(server).findings == ()


@pytest.mark.parametrize(
    ("asked", "runs", "words", "severity"),
    [
        ({"speculative_token_map": "/srv/map.pt"}, {"speculative_token_map": None}, "token map", "minor"),
        ({}, {"quantization": "fp8", "speculative_draft_model_quantization": "fp8"}, "inherited", "minor"),
        ({}, {"speculative_adaptive": True}, "speculative_adaptive is on", "serious"),
        ({}, {"SGLANG_SIMULATE_ACC_LEN": "3"}, "simulated", "fatal"),
        ({}, {"speculative_draft_model_path": "/srv/target"}, "target itself", "fatal"),
        ({}, {"speculative_accept_threshold_single": 0.8}, "the target would not have said", "serious"),
        ({"speculative_num_steps": 5}, {"speculative_num_steps": 3}, "asked for num_steps 5", "serious"),
        ({"page_size": 1}, {"page_size": 64}, "asked for page_size 1", "minor"),
    ],
)
def test_each_difference_is_named(
    asked: Mapping[str, object], runs: Mapping[str, object], words: str, severity: str
) -> None:
    assert found(one_load(made_server(asked=asked, runs=runs)), words).severity == severity


@pytest.mark.parametrize(
    ("asked", "runs"),
    [
        ({"context_length": "1024"}, {"context_length": 1024}),
        ({"dtype": "auto"}, {"dtype": "bfloat16"}),
        ({"model_path": "~/target"}, {"model_path": "/home/me/target"}),
        ({"cuda_graph_bs": 8}, {"cuda_graph_bs": [8]}),
    ],
)
def test_another_spelling_is_no_difference(asked: Mapping[str, object], runs: Mapping[str, object]) -> None:
    assert one_load(made_server(asked=asked, runs=runs)).findings == ()


def test_simulated_acceptance_leaves_no_verdict_on_the_drafter() -> None:
    diagnosis = one_load(made_server(runs={"SGLANG_SIMULATE_ACC_LEN": "3"}))
    assert diagnosis.verdict == "simulated"


@pytest.mark.parametrize(
    ("name", "words"),
    [("LlamaForCausalLM", "target itself"), ("Qwen2ForCausalLM", "the server loaded a Qwen2ForCausalLM")],
)
def test_another_class_than_an_eagle3_drafters(name: str, words: str) -> None:
    assert found(one_load(made_server(draft_class=name)), words).severity == "fatal"


@pytest.mark.parametrize(
    ("asked", "loaded", "severity"),
    [
        ("LlamaForCausalLMEagle3", "LlamaForCausalLMEagle", "serious"),
        ("LlamaForCausalLMEagle3", "Qwen2ForCausalLM", "fatal"),
    ],
)
def test_another_class_than_the_config_names(asked: str, loaded: str, severity: str) -> None:
    server = made_server(asked={"draft_class": asked}, runs={"draft_class": loaded}, draft_class=loaded)
    assert found(one_load(server), f"names a {asked}, the server loaded a {loaded}").severity == severity


@pytest.mark.parametrize(
    ("rule", "gpus", "severity"),
    [
        ("spec_v1", ("H200",), "minor"),
        ("spec_v2_synchronous", ("H200",), "note"),
        ("overlap_off", (), "note"),
        ("cuda_graph_off", ("H200",), "serious"),
    ],
)
def test_the_path_that_speculation_takes(rule: str, gpus: tuple[str, ...], severity: str) -> None:
    items = tuple(made_request(0, i, histogram=(10, 8, 6, 9)) for i in range(8))
    server = made_server(lines=(LogLine(rule=rule, line="as the log has it"),))
    diagnosis = judged(made_bench([server], [made_point(0, items)], gpus=gpus), items)
    assert [item.severity for item in diagnosis.findings if item.title == "speculation path"] == [severity]


def test_an_accept_length_of_one_is_a_drafter_that_does_not_work() -> None:
    items = tuple(made_request(0, i, tokens=40, histogram=(39,)) for i in range(8))
    diagnosis = judged(made_bench([made_server()], [made_point(0, items)]), items)
    assert diagnosis.verdict == "not_working"
    assert found(diagnosis, "not working").severity == "fatal"


def test_no_verify_steps_is_not_an_accept_length_of_one() -> None:
    items = tuple(made_request(0, i) for i in range(8))
    diagnosis = judged(made_bench([made_server()], [made_point(0, items)]), items)
    assert diagnosis.verdict == "measured"
    assert any(item.outcome == "cannot_tell" and item.title == "drafter at work" for item in diagnosis.results)


def test_failed_requests_make_it_invalid_whatever_else_was_measured() -> None:
    result, requests = made_paired()
    broken = (*requests, made_request(0, 9, error="timed out", chunk_s=(), chunk_tokens=(), completion_tokens=None))
    diagnosis = judged(result, broken)
    assert diagnosis.verdict == "invalid"
    assert diagnosis.headline.startswith("1 request failed (at 1 user (spec)): no measurement")


def test_a_measurement_with_faults_of_its_own() -> None:
    items = tuple(made_request(0, i, histogram=(10, 8, 6, 9), cached_tokens=3) for i in range(8))
    items = (*items[:-1], made_request(0, 7, histogram=(10, 8), broken_identities=("sum(histogram) = 18, found 19",)))
    point = made_point(0, items, client_cpu_s=5.0, client_late_s=0.2)
    diagnosis = judged(made_bench([made_server()], [point]), items)
    assert found(diagnosis, "client itself").severity == "serious"
    assert "0.20 s late" in found(diagnosis, "client itself").summary
    assert "8.8 %" in found(diagnosis, "prefix cache").summary
    assert "1 of 8" in found(diagnosis, "contradict").summary


def test_an_accept_length_of_some_answers_is_no_figure_of_all() -> None:
    items = tuple(
        made_request(
            0, i, **({"histogram": (10, 8, 6, 9)} if i < 5 else {"verify_steps": None, "correct_drafts": None})
        )
        for i in range(8)
    )
    told = found(judged(made_bench([made_server()], [made_point(0, items)]), items), "answers tell")
    assert told.summary == "5 of 8 answers tell of verify steps at 1 user (spec): the accept length is theirs alone"


def test_a_client_that_got_no_core() -> None:
    items = tuple(made_request(0, i, histogram=(10, 8, 6, 9)) for i in range(8))
    point = made_point(0, items, client_cpu_s=0.1, client_waited_s=0.82)
    summary = found(judged(made_bench([made_server()], [point]), items), "client itself").summary
    assert "used 10 % of a core, waited for one 82 % of the time" in summary


@pytest.mark.parametrize(
    ("changes", "words", "severity"),
    [({"form": "random"}, "random tokens", "serious"), ({"ignore_eos": True}, "end of text is ignored", "note")],
)
def test_text_that_says_little(changes: Mapping[str, Any], words: str, severity: str) -> None:
    items = tuple(made_request(0, i, histogram=(10, 8, 6, 9)) for i in range(8))
    plain = made_bench([made_server()], [made_point(0, items)])
    result = made_bench(plain.servers, plain.points, workload=WorkloadFacts(**{**vars(plain.workload), **changes}))
    assert found(judged(result, items), words).severity == severity


@pytest.mark.parametrize(("counted", "told"), [(512.0, False), (520.0, False), (900.0, True)])
def test_a_server_that_somebody_else_uses(counted: float, told: bool) -> None:
    items = tuple(made_request(0, i, histogram=(10, 8, 6, 9)) for i in range(8))
    before = Snapshot(time_s=0.0, generation_tokens=100.0)
    point = made_point(0, items, before=before, after=Snapshot(time_s=9.0, generation_tokens=100.0 + counted))
    titles = [item.title for item in judged(made_bench([made_server()], [point]), items).findings]
    assert titles == (["other traffic"] if told else [])


def test_a_gpu_that_had_to_slow_down_is_no_measurement_here_either() -> None:
    result, requests = made_paired()
    at_s = result.points[0].began_unix_s + 0.1
    hot = MachineSample(
        time_unix_s=at_s,
        gpu=0,
        sm_clock_mhz=1200.0,
        power_w=690.0,
        temperature_c=88.0,
        throttle="0x44",
        utilization=0.99,
    )
    diagnosis = judged(result, requests, [hot])
    assert diagnosis.verdict == "invalid"
    assert diagnosis.headline.startswith("GPU 0 was slowed down while it was measured: heat: no measurement")
    told = next(item for item in diagnosis.findings if "slowed down" in item.summary)
    assert {item.name: item.value for item in told.evidence} == {
        "SM clock, least and most": "1200 .. 1200 MHz",
        "temperature, least and most": "88 .. 88 C",
        "power, least and most": "690 .. 690 W",
    }
    capped = dataclasses.replace(hot, throttle="0x04")
    assert judged(result, requests, [capped]).verdict == "slower"


def test_drawn_outputs_are_not_compared() -> None:
    result, requests = made_paired()
    drawn = made_bench(
        result.servers, result.points, workload=WorkloadFacts(**{**vars(result.workload), "temperature": 0.7})
    )
    (both,) = served_figures(drawn, requests).pairs
    assert both.pairing.identical.value is None


def test_clocks_that_moved() -> None:
    items = tuple(made_request(0, i, histogram=(10, 8, 6, 9)) for i in range(8))
    samples = [
        MachineSample(time_unix_s=float(i), gpu=0, sm_clock_mhz=clock, utilization=0.9, throttle="sw_power_cap")
        for i, clock in enumerate((1980.0, 1590.0, 1900.0))
    ]
    result = made_bench([made_server()], [made_point(0, items)], gpus=("H200",))
    assert "20 %" in found(judged(result, items, samples), "clock moved").summary
    idle = [MachineSample(time_unix_s=0.0, gpu=0, sm_clock_mhz=345.0, utilization=0.0), samples[0]]
    assert judged(result, items, idle).findings == ()


def test_a_server_that_ended_badly() -> None:
    diagnosis = one_load(made_server(stopped="died", survivors=(41, 42), gpu_memory_left_bytes=3 << 30))
    assert found(diagnosis, "ended by itself").severity == "fatal"
    assert "41, 42" in found(diagnosis, "could not be ended").summary
    assert "3.0 GiB" in found(diagnosis, "not free").summary


def test_slower_faster_and_not_to_be_told() -> None:
    slower = judged(*made_paired(spec_tok_s=56.8, plain_tok_s=90.0))
    assert slower.verdict == "slower"
    assert "56.8 against 90.0 tok/s (0.63x)" in slower.headline
    assert judged(*made_paired(spec_tok_s=150.0)).verdict == "faster"
    assert judged(*made_paired(spec_tok_s=90.0)).verdict == "no_difference"


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("tok_s", [70.0, 90.5, 150.0])
def test_too_few_repeats_give_figures_and_no_verdict(repeats: int, tok_s: float) -> None:
    diagnosis = judged(*made_paired(spec_tok_s=tok_s, repeats=repeats))
    assert diagnosis.verdict == "cannot_tell"
    assert f"{tok_s:.1f} against 90.0 tok/s ({tok_s / 90:.2f}x)" in diagnosis.headline
    assert "3 are needed (--repeats 3)" in diagnosis.headline
    assert "pays above" not in diagnosis.headline
    assert "(no interval, so no break-even)" in diagnosis.headline


def test_repeats_that_are_all_alike_are_said_to_tell_no_spread() -> None:
    points, requests = [], []
    for repeat in range(3):
        for side, seconds in (("spec", 1.0), ("plain", 0.75)):
            items = [made_request(len(points), i, sent_s=float(i), seconds=seconds) for i in range(6)]
            points.append(made_point(len(points), items, side, repeat=repeat))  # type: ignore[arg-type]
            requests += items
    diagnosis = judged(made_bench([made_server(), made_server("plain")], points), requests)
    assert diagnosis.verdict == "cannot_tell"
    assert "in 3 repeats of each side that do not differ at all: their spread is unknown, not 0" in diagnosis.headline
    assert "are needed" not in diagnosis.headline


def test_a_break_even_above_the_ceiling_cannot_pay() -> None:
    shape = dict(zip(SHAPE, (1, 1, 2), strict=True))
    servers = (made_server(asked=shape, runs=shape), made_server("plain"))
    line = judged(*made_paired(servers=servers)).headline
    assert "so it cannot pay: no accept length is above 2" in line
    assert "pays above" not in line
    assert "pays above that accept length" in judged(*made_paired(spec_tok_s=80.0)).headline


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (2.1, 4.0, "so it cannot pay: no accept length is above 2"),
        (1.2, 8.5, "so whether it can pay at all is open: no accept length is above 2"),
        (1.0, 1.9, "so it pays above an accept length of 1.00 to 1.90, more --repeats tell it closer"),
        (1.5, 1.6, "so it pays above that accept length"),
    ],
)
def test_what_a_step_costs_is_said_no_surer_than_it_is_known(low: float, high: float, words: str) -> None:
    shape = dict(zip(SHAPE, (1, 1, 2), strict=True))
    result, requests = made_paired(servers=(made_server(asked=shape, runs=shape), made_server("plain")))
    figures = served_figures(result, requests)
    (one,) = figures.pairs
    pairing = dataclasses.replace(one.pairing, step_cost=(low * high) ** 0.5, step_cost_low=low, step_cost_high=high)
    known = dataclasses.replace(figures, pairs=(dataclasses.replace(one, pairing=pairing),))
    assert words in top_line(result, known)[1]


def test_sides_that_did_other_work_are_not_compared() -> None:
    result, requests = made_paired()
    cut = tuple(
        RequestSample(**{**vars(item), "output_ids": (item.output_ids or ())[:4], "completion_tokens": 4})
        if item.verify_steps
        else item
        for item in requests
    )
    diagnosis = judged(result, cut)
    assert diagnosis.verdict == "not_comparable"
    assert "the outputs are 4.0 tokens long with speculation" in diagnosis.headline
    assert "x)" not in diagnosis.headline
    assert found(diagnosis, "did not do the same work").severity == "serious"


def test_other_outputs_are_a_serious_finding() -> None:
    result, requests = made_paired()
    other = tuple(
        RequestSample(**{**vars(item), "output_ids": tuple(1 for _ in item.output_ids or ())})
        if item.verify_steps
        else item
        for item in requests
    )
    diagnosis = judged(result, other)
    assert found(diagnosis, "0 of 8 greedy outputs are those of plain decoding").severity == "serious"
    assert "a speculative step costs" not in diagnosis.headline


def test_loads_that_are_decided_lead_and_no_load_is_left_out() -> None:
    result, requests = made_paired(spec_tok_s=90.0)
    faster, more = made_paired(spec_tok_s=150.0)
    points = [
        *result.points,
        *(PointFacts(**{**vars(one), "point": one.point + 6, "concurrency": 2}) for one in faster.points),
    ]
    shifted = [RequestSample(**{**vars(item), "point": item.point + 6}) for item in more]
    diagnosis = judged(made_bench(result.servers, points), (*requests, *shifted))
    assert diagnosis.verdict == "faster"
    assert diagnosis.headline.startswith("faster than plain decoding at 2 users: 150.0 against 90.0 tok/s (1.67x)")
    assert "other loads: 1.00x at 1 user (no telling)" in diagnosis.headline


def test_one_verify_step_condemns_no_drafter() -> None:
    items = (made_request(0, 0, tokens=10, histogram=(1,)),)
    diagnosis = judged(made_bench([made_server()], [made_point(0, items)]), items)
    assert diagnosis.verdict == "measured"
    (told,) = [item for item in diagnosis.results if item.title == "drafter at work"]
    assert (told.outcome, told.needs) == ("cannot_tell", "30 verify steps or more: more requests, or longer answers")


def test_answers_that_tell_of_no_verify_steps_leave_acceptance_unknown() -> None:
    diagnosis = one_load_of(tuple(made_request(0, i) for i in range(8)))
    assert "acceptance unknown: the answers do not tell of verify steps" in diagnosis.headline
    (told,) = [item for item in diagnosis.results if item.title == "answers' own numbers"]
    assert told.outcome == "cannot_tell"


def test_tokens_a_verify_step_are_not_called_accept_length() -> None:
    items = tuple(made_request(0, i, histogram=(10, 8, 6, 9)) for i in range(8))
    old = tuple(RequestSample(**{**vars(item), "correct_drafts": None, "histogram": None}) for item in items)
    line = one_load_of(old).headline
    assert "1.94 tokens per verify step (accept length not told)" in line
    assert " of 4" not in line


def test_answers_of_one_token_are_told() -> None:
    diagnosis = one_load_of(tuple(made_request(0, i, tokens=2, finish="stop") for i in range(6)))
    assert found(diagnosis, "the answers are 2.0 tokens long").severity == "serious"


def test_fewer_requests_than_users_are_told_and_none_waited() -> None:
    items = tuple(made_request(0, i, histogram=(10, 8, 6, 9)) for i in range(2))
    server = made_server(runs={"max_running_requests": 48})
    diagnosis = judged(made_bench([server], [made_point(0, items, concurrency=64)]), items)
    assert found(diagnosis, "64 users were asked for, but a point has only 2 requests").severity == "serious"
    assert "at 2 of 64 users (spec)" in diagnosis.headline
    assert "so some waited" not in " ".join(item.summary for item in diagnosis.findings)


def test_a_warm_cache_is_one_finding_that_says_who_filled_it() -> None:
    points, requests = [], []
    for number, users in enumerate((1, 2, 4, 8)):
        items = [made_request(number, i, histogram=(10, 8, 6, 9), cached_tokens=1 + number) for i in range(8)]
        points.append(made_point(number, items, concurrency=users, repeated_prompts=4))
        requests += items
    item = found(judged(made_bench([made_server()], points), tuple(requests)), "prefix cache")
    assert item.summary == (
        "3.3 to 13.3 % of the prompt tokens came from the prefix cache in 4 loads: 16 of 32 requests asked a prompt of "
        "the same point again"
    )
    assert item.remedy[0].endswith("--server-arg --disable-radix-cache")


@pytest.mark.parametrize(("flushed", "severity"), [(True, "note"), (False, "minor")])
def test_a_warm_up_with_measured_prompts_is_told(flushed: bool, severity: str) -> None:
    items = tuple(made_request(0, i, histogram=(10, 8, 6, 9)) for i in range(8))
    point = made_point(0, items, warmup_repeats_prompts=True, flushed=flushed)
    diagnosis = judged(made_bench([made_server()], [point]), items)
    assert found(diagnosis, "the warm-up asked prompts that are measured").severity == severity


def test_a_baseline_that_is_too_slow_is_not_believed() -> None:
    diagnosis = judged(*made_paired(spec_tok_s=250.0))
    assert diagnosis.verdict == "suspicious_baseline"
    assert found(diagnosis, "plain decoding looks too slow").severity == "serious"


def test_a_server_that_tells_nothing() -> None:
    diagnosis = one_load(made_server(arguments=(), draft_class=None))
    assert diagnosis.findings == ()
    assert sum(item.outcome == "cannot_tell" for item in diagnosis.results) == 2


def test_nothing_measured_is_said() -> None:
    assert judged(made_bench([made_server()], []), ()).verdict == "nothing_measured"
