import json
from typing import Any

import pytest

from remote_payload.schema.bench import ArgumentFact
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.arguments import argument_facts, launched_with, logged_arguments, requested_of
from remote_payload.sglang_bench.command import server_argv, url_of
from tests.payload.sglang_bench.conftest import RECORDED

OLD_LINE = (
    "[2025-09-01 12:00:00] server_args=ServerArgs(model_path='/models/it, \\'s', dtype='auto', tp_size=2, "
    "speculative_num_steps=1, speculative_num_draft_tokens=2, lora_paths=None, cuda_graph_bs=[1, 2], api_key='sk-1', "
    "custom_sigquit_handler=<function f at 0x7f>, disable_radix_cache=False)"
)


def info() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / "server_info.json").read_text())
    return found


def facts(
    argv: tuple[str, ...], said: dict[str, Any], line: str | None = None, **environment: str
) -> dict[str, ArgumentFact]:
    return {fact.name: fact for fact in argument_facts(requested_of(argv), said, line, environment)}


def test_the_override_of_the_story_is_told() -> None:
    job = BenchJob(model="/models/target", draft="/models/draft", num_steps=1, eagle_topk=1, num_draft_tokens=16)
    told = facts(server_argv(job, "spec", 1), info())
    tokens = told["speculative_num_draft_tokens"]
    assert (tokens.requested, tokens.effective, tokens.source) == ("16", "2", "server_info")
    differing = {name for name, fact in told.items() if fact.requested is not None and fact.requested != fact.effective}
    assert differing == {"speculative_num_draft_tokens"}


def test_what_was_left_to_the_server_is_told_too() -> None:
    told = facts(("--model-path", "/models/target"), info())
    assert (told["speculative_num_steps"].requested, told["speculative_num_steps"].effective) == (None, "1")
    assert told["disable_overlap_schedule"].effective == "true"
    assert told["effective_max_running_requests_per_dp"].effective == "8"
    assert told["speculative_adaptive"].effective == "false"
    assert "port" not in told


def test_what_info_leaves_out_is_read_off_the_log() -> None:
    told = facts(("--speculative-num-draft-tokens", "16"), {"model_path": "/m"}, OLD_LINE)
    tokens = told["speculative_num_draft_tokens"]
    assert (tokens.requested, tokens.effective, tokens.source) == ("16", "2", "log")


def test_an_unknown_argument_is_told_without_an_effect() -> None:
    told = facts(("--no-such-thing", "7"), {})
    assert (told["no_such_thing"].requested, told["no_such_thing"].effective) == ("7", None)


def test_old_and_new_lines_of_the_log() -> None:
    old = logged_arguments(OLD_LINE)
    assert (old["tp_size"], old["speculative_num_steps"], old["lora_paths"]) == (2, 1, None)
    assert (old["cuda_graph_bs"], old["disable_radix_cache"]) == ([1, 2], False)
    line = next(line for line in (RECORDED / "start.log").read_text().splitlines() if "server_args=" in line)
    assert logged_arguments(line)["speculative_num_draft_tokens"] == 2
    assert logged_arguments("nothing of the kind") == {}


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("--tp", "2"), {"tp_size": 2}),
        (("--tensor-parallel-size=4",), {"tp_size": 4}),
        (("--speculative-draft-model", "/d"), {"speculative_draft_model_path": "/d"}),
        (("--speculative-algo", "eagle3"), {"speculative_algorithm": "EAGLE3"}),
        (("--enable-metrics", "--mem-fraction-static", "0.8"), {"enable_metrics": True, "mem_fraction_static": 0.8}),
        (("--cuda-graph-bs", "1", "2"), {"cuda_graph_bs": [1, 2]}),
        (("python", "-m", "sglang.launch_server"), {}),
        (("--random-seed", "-1"), {"random_seed": -1}),
    ],
)
def test_options_by_the_servers_names(argv: tuple[str, ...], expected: dict[str, Any]) -> None:
    assert requested_of(argv) == expected


def test_variables_that_fake_results_are_told() -> None:
    told = facts((), {}, SGLANG_SIMULATE_ACC_LEN="3.5", HOME="/root")
    assert told["SGLANG_SIMULATE_ACC_LEN"].effective == '"3.5"'
    assert told["SGLANG_SIMULATE_ACC_LEN"].source == "environment"
    assert "HOME" not in told


def test_an_api_key_is_never_told() -> None:
    told = facts(("--api-key", "sk-1"), {"api_key": "sk-1"}, OLD_LINE)
    assert told["api_key"].requested == told["api_key"].effective == '"<redacted>"'


def test_what_the_server_says_it_was_launched_with() -> None:
    assert requested_of(launched_with(info()))["speculative_num_draft_tokens"] == 16
    assert launched_with({}) == ()
    assert launched_with({"launch_command": "python -m 'unclosed"}) == ()
    command = ["python", "-m", "sglang.launch_server", "--speculative-num-steps", 3, None]
    assert requested_of(launched_with({"launch_command": command}))["speculative_num_steps"] == 3


@pytest.mark.parametrize(
    ("words", "url"),
    [((), "http://127.0.0.1:7"), (("--host", "0.0.0.0"), "http://127.0.0.1:7"), (("--host", "n1"), "http://n1:7")],
)
def test_where_the_server_is_to_be_reached(words: tuple[str, ...], url: str) -> None:
    assert url_of(requested_of(server_argv(BenchJob(model="/m", server_args=words), "plain", 7))) == url


def test_a_jobs_settings_become_flags() -> None:
    job = BenchJob(
        model="/m",
        draft="/d",
        num_steps=3,
        draft_quantization="unquant",
        tp=8,
        dtype="bfloat16",
        mem_fraction=0.8,
        server_args=("--host", "0.0.0.0", "--speculative-token-map", "/t", "--trust-remote-code"),
    )
    assert server_argv(job, "spec", 30000)[1:] == (
        *("-m", "sglang.launch_server", "--model-path", "/m", "--port", "30000"),
        *("--tp-size", "8", "--dtype", "bfloat16", "--mem-fraction-static", "0.8"),
        *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/d", "--speculative-num-steps", "3"),
        *("--speculative-draft-model-quantization", "unquant"),
        *("--host", "0.0.0.0", "--speculative-token-map", "/t", "--trust-remote-code"),
    )
    plain = server_argv(job, "plain", 30000)
    assert not [word for word in plain if "speculative" in word or word in ("/t", "/d")]
    assert plain[-1] == "--trust-remote-code"


@pytest.mark.parametrize(
    ("word", "told", "requested"),
    [
        ("1e5", "1e5", '"1e5"'),  # a revision's name
        ("0071", "0071", '"0071"'),
        ("123", "123", '"123"'),
        ("1e-5", 1e-05, "1e-05"),
        ("0.80", 0.8, "0.8"),
        ("16", 4, "16"),
        ("16", None, "16"),
    ],
)
def test_what_was_asked_is_a_number_where_the_server_has_one(word: str, told: object, requested: str) -> None:
    (fact,) = (
        fact
        for fact in argument_facts(requested_of(("--revision", word)), {"revision": told}, None, {})
        if fact.name == "revision"
    )
    assert fact.requested == requested
