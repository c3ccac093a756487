"""Our client and SGLang's `bench_serving` as processes of their own, with the same prompts against the same server."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.sglang.conftest import ENVIRONMENT
from tests.support.laptop import CHECKOUT

OURS, THEIRS = "ours", "bench_serving"


@dataclass(frozen=True, kw_only=True)
class Target:
    """A server, and who asks it."""

    url: str
    folder: Path
    """Where prompts and its result files are written."""
    sglang_python: Path
    model: Path
    """Whose tokenizer its tool counts with."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """One load: each of the texts once, so many at a time."""

    texts: tuple[str, ...]
    tokens: int
    """Of each answer; the end of the text is ignored."""
    users: int


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What one client measured in one load, and what it cost."""

    seconds: float
    """From its first sending to its last token."""
    tokens: int
    cpu_s: float
    """User and system time of the process from the first request to the last answer."""
    whole_cpu_s: float
    """The same of the whole process: start, imports, warm-up and what it does with the answers."""
    cached_tokens: int
    """Of the prompts, as the server tells."""
    prompt_tokens: tuple[int, ...]

    @property
    def tok_s(self) -> float:
        """Output throughput."""
        return self.tokens / self.seconds

    @property
    def core_share(self) -> float:
        """CPU time over wall time: what the notice about the client goes by."""
        return self.cpu_s / self.seconds


def run(client: str, target: Target, work: Work) -> Ran:
    """One load by one client, the server's prefix cache flushed before it. Raises RuntimeError with its words."""
    prompts = target.folder / "prompts.jsonl"
    turns = [{"conversations": [{"content": text}, {"content": "an answer, not used"}]} for text in work.texts]
    prompts.write_text("".join(f"{json.dumps(one)}\n" for one in turns), encoding="utf-8")
    if client == OURS:
        argv = [sys.executable, "-m", "benchmarks.client_driver", "--url", target.url, "--prompts", str(prompts)]
        argv += ["--output-tokens", str(work.tokens), "--users", str(work.users)]
        return _process(argv, {**os.environ, "PYTHONPATH": str(CHECKOUT)})
    argv = [str(target.sglang_python), str(CHECKOUT / "benchmarks" / "bench_serving_driver.py")]
    argv += ["--backend", "sglang", "--base-url", target.url, "--model", str(target.model), "--seed", "1"]
    argv += ["--dataset-name", "custom", "--dataset-path", str(prompts), "--num-prompts", str(len(work.texts))]
    argv += ["--sharegpt-output-len", str(work.tokens), "--max-concurrency", str(work.users), "--disable-tqdm"]
    argv += ["--flush-cache", "--cache-report", "--output-file", str(target.folder / "bench_serving.jsonl")]
    return _process(argv, {**os.environ, **ENVIRONMENT})


def _process(argv: Sequence[str], environment: Mapping[str, str]) -> Ran:
    child = subprocess.Popen(argv, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert child.stdout is not None
    with child.stdout as pipe:
        words = pipe.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"`{' '.join(argv)}` ended with {child.returncode}:\n{words[-2000:]}")
    found = json.loads(words.strip().splitlines()[-1])
    return Ran(
        seconds=found["seconds"],
        tokens=found["tokens"],
        cpu_s=found["cpu_s"],
        whole_cpu_s=used.ru_utime + used.ru_stime,
        cached_tokens=found["cached_tokens"],
        prompt_tokens=tuple(found["prompt_tokens"]),
    )


@contextmanager
def stub_server(tokens_per_s: float, longest: int) -> Iterator[str]:
    """The URL of a stub server that streams at a fixed rate (see `stub_server.py`)."""
    argv = [sys.executable, "-m", "benchmarks.stub_server", "--tokens-per-s", str(tokens_per_s)]
    argv += ["--longest", str(longest)]
    child = subprocess.Popen(
        argv,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        yield f"http://127.0.0.1:{int(child.stdout.readline())}"
    finally:
        child.communicate(timeout=60)


def stub_lateness(url: str) -> dict[str, float]:
    """How late the stub was with its own moments since the last call: `median_s`, `max_s`, and its `cpu_s`."""
    with urllib.request.urlopen(f"{url}/lateness") as answer:
        found: dict[str, float] = json.load(answer)
    return found
