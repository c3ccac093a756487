"""Our client as a process of its own: one load of the prompts, and what it measured and cost, as a line of JSON.

    python -m benchmarks.client_driver --url U --prompts FILE --output-tokens 64 --users 4

A short first request and a flush of the cache come before, as SGLang's own tool does with `--flush-cache`. `FILE` is
that tool's `custom` data set; its order is the one that the tool shuffles it into with its seed 1.
"""

import argparse
import json
import random
import time
from pathlib import Path

from remote_payload.sglang_bench.client import Client, Load, Target
from remote_payload.sglang_bench.info import flush
from remote_payload.sglang_bench.prompt import Prompt

WARMUP_TOKENS = 32


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser()
    for name in ("url", "prompts"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("output-tokens", "users"):
        parser.add_argument(f"--{name}", type=int, required=True)
    arguments = parser.parse_args()
    lines = Path(arguments.prompts).read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["conversations"][0]["content"] for line in lines]
    random.seed(1)
    random.shuffle(texts)
    prompts = [Prompt(index=index, text=text) for index, text in enumerate(texts)]
    _run(arguments, prompts[:1], min(WARMUP_TOKENS, arguments.output_tokens))
    flush(arguments.url, None)
    print(json.dumps(_run(arguments, prompts, arguments.output_tokens)))


def _run(arguments: argparse.Namespace, prompts: list[Prompt], tokens: int) -> dict[str, object]:
    sampling = {"temperature": 0.0, "max_new_tokens": tokens, "ignore_eos": True}
    client = Client(
        Target(url=arguments.url, key=None, sampling=sampling, timeout_s=600.0), point=0, began_s=time.monotonic()
    )
    measured = client.run(prompts, Load(users=arguments.users), lambda _: None, lambda: None)
    failed = [sample.error for sample in measured.samples if sample.error is not None]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(prompts)} requests failed: {failed[0]}")
    return {
        "seconds": max(sample.chunk_s[-1] for sample in measured.samples)
        - min(sample.sent_s for sample in measured.samples),
        "tokens": sum(sum(sample.chunk_tokens) for sample in measured.samples),
        "chunks": sum(len(sample.chunk_s) for sample in measured.samples),
        "cpu_s": measured.cpu_s,
        "late_s": measured.late_s,
        "cached_tokens": sum(sample.cached_tokens or 0 for sample in measured.samples),
        "prompt_tokens": [sample.prompt_tokens for sample in measured.samples],
    }


if __name__ == "__main__":
    main()
