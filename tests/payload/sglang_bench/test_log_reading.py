"""Phases, rules, signatures, secrets: what is read out of a server's lines."""

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from remote_payload.sglang_bench.failures import find
from remote_payload.sglang_bench.log import ServerLog
from remote_payload.sglang_bench.phases import Bar, PhaseClock, bar_of
from remote_payload.sglang_bench.redact import (
    REDACTED,
    is_secret,
    redact_argv,
    redact_json,
    redact_text,
    secrets_of_variable,
)
from remote_payload.sglang_bench.rules import loaded_class, rule_of, without_time
from tests.payload.sglang_bench.conftest import RECORDED
from tests.support.patience import PATIENCE_S, Within

OLD_START = (
    "[2025-09-01 12:00:00] server_args=ServerArgs(model_path='/m')",
    "[2025-09-01 12:00:09 TP0] Load weight begin. avail mem=78.58 GB",
    "[2025-09-01 12:00:20 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=62.0 GB",
    "[2025-09-01 12:00:21 TP0] KV Cache is allocated. #tokens: 20480, K size: 1.25 GB, V size: 1.25 GB",
    "[2025-09-01 12:00:22 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=58.7 GB",
    "Capturing batches (bs=8 avail_mem=58.5 GB):  25%|##5       | 1/4 [00:01<00:03,  1.00s/it]",
    "[2025-09-01 12:00:30 TP0] Capture cuda graph end. Time elapsed: 8.01 s. mem usage=0.3 GB. avail mem=58.4 GB.",
    "[2025-09-01 12:00:31 TP0] Load weight begin. avail mem=58.4 GB",
    "[2025-09-01 12:00:32 TP0] Load weight end. type=LlamaForCausalLMEagle3, dtype=torch.bfloat16, avail mem=57.0 GB",
    "[2025-09-01 12:00:33 TP0] max_total_num_tokens=20480, chunked_prefill_size=8192, max_running_requests=48",
    "[2025-09-01 12:00:34] INFO:     Application startup complete.",
)


def timed(lines: tuple[str, ...]) -> tuple[dict[str, float], list[str]]:
    """One second a line."""
    told: list[str] = []
    clock = PhaseClock(0.0, lambda name, whose: told.append(f"{name} {whose}".rstrip()))
    for second, line in enumerate(lines, 1):
        clock.read(line, float(second))
    clock.finish(len(lines) + 1.0)
    clock.read("Load weight begin", 99.0)  # whatever comes later is no start any more
    return {phase.name: phase.seconds for phase in clock.phases()}, told


def test_phases_of_an_old_start_on_a_gpu() -> None:
    seconds, told = timed(OLD_START)
    assert seconds == {"imports": 2.0, "weights": 2.0, "cache": 4.0, "graphs": 2.0, "warm-up": 2.0}
    assert told == [
        "imports",
        "weights target",
        "cache target",
        "graphs",
        "cache target",
        "weights drafter",
        "cache drafter",
        "warm-up",
    ]


def test_whose_weights_are_loaded_where_ranks_are_not_in_step() -> None:
    words = ("TP0] Load weight begin", "TP0] Load weight end", "TP1] Load weight begin", "TP1] Load weight end")
    begin = [f"[2025-09-01 12:00:00 {word}" for word in words]
    draft = "[2025-09-01 12:00:09 TP0] Capture draft decode CUDA graph begin."
    _, told = timed((*begin, *begin, draft))
    target, drafter = ["weights target", "cache target"], ["weights drafter", "cache drafter"]
    assert told == ["imports", *target * 2, *drafter * 2, "graphs drafter"]


def test_phases_of_the_recorded_start() -> None:
    seconds, _ = timed(tuple((RECORDED / "start.log").read_text().splitlines()))
    assert set(seconds) == {"imports", "weights", "cache", "warm-up"}


@pytest.mark.parametrize(
    ("line", "bar"),
    [
        (OLD_START[5], Bar("Capturing batches (bs=8 avail_mem=58.5 GB)", 1, 4)),
        (
            "Multi-thread loading shards: 100% Completed | 1/1 [00:00<00:00, 9.52it/s]",
            Bar("Multi-thread loading shards", 1, 1),
        ),
        ("Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:01<00:01,  1.9it/s]",
         Bar("Loading safetensors checkpoint shards", 2, 4)),
        ("[2025-09-01 12:00:33 TP0] max_total_num_tokens=20480", None),
    ],
)  # fmt: skip
def test_progress_bars(line: str, bar: Bar | None) -> None:
    assert bar_of(line) == bar


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1",
         "draft_tokens_adjusted"),
        ("Max running requests is reset to 48 for speculative decoding. You can override this by explicitly setting",
         "running_requests_reset"),
        ("Speculative token map specified, but EAGLE3 models already have this. Ignoring the specified token map.",
         "token_map_ignored"),
        ("DeepSeek MTP does not require setting speculative_draft_model_path.", "draft_path_ignored"),
        ("Overlap scheduler is disabled because of using eagle3 or standalone speculative decoding.", "overlap_off"),
        ("Spec v2 is enabled by default for eagle/eagle3/standalone speculative decoding.", "spec_v2"),
        ("Beta spec is enabled for eagle speculative decoding and overlap schedule is turned on.", "spec_v2"),
        ("Spec v1 is used for eagle/eagle3/standalone speculative decoding because topk > 1.", "spec_v1"),
        ("speculative_adaptive disabled: topk is not 1. Falling back to static speculative params.", "adaptive_off"),
        ("Attention backend not specified. Use fa3 backend by default.", "attention_backend_chosen"),
        ("Overriding Eagle3DeepseekV2ForCausalLM quant config for modelopt_fp4 target; draft weights are bf16.",
         "draft_quantization_overridden"),
        ("speculative_eagle_topk is changed to 1 when page_size > 1", "topk_changed"),
        ("Using default HuggingFace chat template with detected content format: string", None),
    ],
)  # fmt: skip
def test_lines_that_decide(line: str, rule: str | None) -> None:
    assert rule_of(f"[2025-09-01 12:00:00 TP0] {line}") == rule


def test_the_class_and_rank_that_a_line_names() -> None:
    assert loaded_class(OLD_START[8]) == (" TP0", "LlamaForCausalLMEagle3")
    assert loaded_class("[2026-11-30 01:58:24] Load weight end. elapsed=0.1 s, type=X, avail mem=1 GB") == ("", "X")
    assert loaded_class("Load weight begin.") is None
    assert without_time("[2025-09-01 12:00:00 DP0 TP0] hello [x] y") == "hello [x] y"


def test_the_recorded_start_bears_no_signature() -> None:
    assert find(tuple((RECORDED / "start.log").read_text().splitlines())) is None


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("server_args={'api_key': 'sk-1', 'x': 1}", "sk-1"),
        ("ServerArgs(api_key='sk-1', admin_api_key=\"sk-2\")", "sk-2"),
        ("python -m sglang.launch_server --api-key sk-1 --port 1", "sk-1"),
        ("GET / Authorization: Bearer sk-1", "sk-1"),
        ("HF_TOKEN=hf_abc", "hf_abc"),
        ("ssl_keyfile_password: hunter2", "hunter2"),
        ('--model-loader-extra-config {"api_key":"sk-1"}', "sk-1"),
        ("https://user:sk-1@host/x and more", "sk-1"),
        ("GET /x?api_key=sk-1 HTTP/1.1", "sk-1"),
        ("Authorization: Basic sk-1", "sk-1"),
        ('X-API-KEY": ["sk-1"]', "sk-1"),
        ("api_key=SecretStr('sk-1')", "sk-1"),
        ("AWS_SESSION_TOKEN=sk-1 x", "sk-1"),
        ("https://sk-1-sk-1-sk-1-sk-1@host/x", "sk-1"),
        ("http://h/x?token=sk-1&a=b", "sk-1"),
        ("api key: sk-1", "sk-1"),
        (r"{\"api_key\": \"sk-1\"}", "sk-1"),
        ("api_key            =   sk-1", "sk-1"),
        ("api_key: 'sk-1,more)'", "more"),
        ("['--api-key', 'sk-1', '--tp']", "sk-1"),
        ("GITHUB_PAT=sk-1", "sk-1"),
    ],
)
def test_secrets_go(text: str, secret: str) -> None:
    assert secret not in redact_text(text)
    assert REDACTED in redact_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "server_args={'api_key': None, 'max_total_tokens': 8192, 'speculative_token_map': '/t', 'bos_token': 'x'}",
        "Decode batch, #running-req: 1, #token: 69, token usage: 0.01, accept len: 1.50",
        "max_total_num_tokens=8192, chunked_prefill_size=4096",
        "The secret sauce, password policy",
        "the api key is not set",
        "max_tokens=5 SGLANG_MAX_TOKEN=7",
        "https://me@host/x",
        "tokenizer_path='/m', api_key=None, eos_token: '</s>'",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact_text(text) == text


def test_a_known_key_is_found_as_json_writes_it() -> None:
    key = 'ab"ss\\w&rd1'
    assert "ss" not in redact_text(f"{key} and {json.dumps(key)}", (key,))


def test_secrets_in_words_and_values() -> None:
    assert redact_argv(("x", "--api-key", "sk-1", "--port", "1")) == ("x", "--api-key", REDACTED, "--port", "1")
    assert redact_argv(("--api-key=sk-1", "A_SECRET=b")) == (f"--api-key={REDACTED}", f"A_SECRET={REDACTED}")
    nested = {"a": [{"admin_api_key": "sk-1", "eos_token": "</s>"}], "api_key": None}
    assert redact_json(nested) == {"a": [{"admin_api_key": REDACTED, "eos_token": "</s>"}], "api_key": None}
    assert redact_text("path/sk-123/x", ("sk-123",)) == f"path/{REDACTED}/x"
    assert is_secret("--hf-token")
    assert not is_secret("max_total_tokens")


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("MY_SERVICE_TOKEN", "sk-1", ("sk-1",)),
        ("OPENAI_KEY", "sk-1", ("sk-1",)),
        ("DB_URL", "postgres://user:sk-1@host/x", ("sk-1",)),
        ("HF_TOKEN", "", ("",)),
        ("TOKENIZERS_PARALLELISM", "false", ()),
        ("SGLANG_MONKEY", "x", ()),
        ("USE_KEY", "True", ()),
    ],
)
def test_what_a_variable_hides(name: str, value: str, hidden: tuple[str, ...]) -> None:
    assert secrets_of_variable(name, value) == hidden


def test_secrets_in_commands_of_any_shape() -> None:
    words = (
        "--model-loader-extra-config",
        '{"api_key":"sk-1"}',
        "--s3-url",
        "https://u:sk-1@h/",
        "MY_KEY=sk-1",
        "sk-1",
    )
    assert "sk-1" not in str(redact_argv(words, ("sk-1",)))
    assert redact_argv(words)[3:5] == (f"https://u:{REDACTED}@h/", f"MY_KEY={REDACTED}")
    assert "sk-1" not in str(
        redact_json({"launch_command": ["x", "--api-key", "sk-1"], "sk-1234": 1}, values=("sk-1234",))
    )


def test_a_value_nested_deeper_than_any_is_left_out() -> None:
    nested: object = "sk-1"
    for _ in range(5000):
        nested = [nested]
    assert "sk-1" not in json.dumps(redact_json(nested))


@pytest.mark.parametrize(
    "word",
    [
        "x",
        "x-y_",
        "api_key",
        "api_key ",
        "api_key='",
        "secret: ",
        "bearer ",
        "://a:",
        "://a:b ",
        "secret" + " " * 9,
        "-",
        "--api-key'",
        "_KEY",
        "\\",
        "authorization:",
        "\u65e5",
    ],
)
def test_a_line_costs_its_length(word: str) -> None:
    """A regular expression that looked back from every letter took 25 s for 16,000 of them."""
    seconds = []
    for length in (4_000, 64_000):
        line = word * (length // len(word))
        began_s = time.process_time()
        redact_text(line, ("k-very-secret",))
        seconds.append(time.process_time() - began_s)
    assert seconds[1] < 0.5


class Heard:
    """A log that is fed by a pipe."""

    def __init__(self, folder: Path, on_line: Callable[[str, float], None] = lambda _line, _now_s: None) -> None:
        reading, self.writing = os.pipe()
        self.path = folder / "server-0.log"
        self.log = ServerLog(os.fdopen(reading, "rb"), self.path, "token-", ("k-very-secret",), on_line)

    def end(self) -> list[str]:
        os.close(self.writing)
        self.log.join(PATIENCE_S)
        return self.path.read_text().splitlines()


@pytest.mark.parametrize(
    "line",
    [
        "INFO:     api_key=k-very-secret",
        'INFO:     127.0.0.1 - "GET /x?key=k-very-secret"',
        "[2026-01-01 00:00:00] Prefill batch, k-very-secret",
        "key k-very-secret",
        "x" * (65536 - 8) + "k-very-secret tail",
        "x" * (65536 - 8) + "k-very-secret" + "y" * 200_000 + "k-very-secret",
    ],
)
def test_no_line_of_a_log_holds_the_key(tmp_path: Path, line: str) -> None:
    heard = Heard(tmp_path)
    for data in (line[:65540], line[65540:] + "\nnext\n"):
        os.write(heard.writing, data.encode())
        time.sleep(0.02)
    lines = heard.end()
    assert "k-very" not in "".join(lines)
    assert lines[-1] == "next"
    assert len(lines) == 2
    assert "k-very" not in "".join(heard.log.tail)


def test_a_server_does_not_wait_for_whoever_looks_into_its_output(tmp_path: Path) -> None:
    """A pipe holds 64 KiB; here 4 MiB are written while nobody has looked into the first line yet."""
    looking = threading.Event()

    def wait(line: str, now_s: float) -> None:
        looking.wait(PATIENCE_S)

    heard = Heard(tmp_path, wait)
    with Within():
        for _ in range(64):
            os.write(heard.writing, (b"x" * 1023 + b"\n") * 64)
    looking.set()
    assert len(heard.end()) == 64 * 64
