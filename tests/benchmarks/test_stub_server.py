"""The stub server that clients are measured against keeps its plan, and says what a real server would."""

import time
from collections.abc import Iterator

import pytest

from benchmarks.load_clients import stub_lateness, stub_server
from remote_payload.sglang_bench.client import Client, Load, Target
from remote_payload.sglang_bench.prompt import Prompt

TOKENS_PER_S, TOKENS = 100.0, 20


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with stub_server(TOKENS_PER_S, TOKENS) as url:
        yield url


def test_every_stream_comes_at_its_rate_and_is_whole(url: str) -> None:
    stub_lateness(url)
    sampling = {"max_new_tokens": TOKENS}
    client = Client(Target(url=url, key=None, sampling=sampling, timeout_s=20.0), 0, time.monotonic())
    prompts = [Prompt(index=index, text="Once") for index in range(8)]
    samples = client.run(prompts, Load(users=4), lambda _: None, lambda: None).samples
    assert [(sample.error, sample.broken_identities, sample.finish) for sample in samples] == [(None, (), "length")] * 8
    assert all(sum(sample.chunk_tokens) == sample.completion_tokens == TOKENS for sample in samples)
    assert all(len(set(sample.output_ids or ())) == TOKENS for sample in samples)
    # Nothing comes before its moment: two answers one after the other have 2 * TOKENS moments, the first at once.
    seconds = max(sample.chunk_s[-1] for sample in samples) - min(sample.sent_s for sample in samples)
    late_s = stub_lateness(url)["max_s"]  # a late first moment and a punctual last one are nearer to each other
    assert seconds + late_s >= (2 * TOKENS - 1) / TOKENS_PER_S


def test_it_tells_how_late_it_was_itself(url: str) -> None:
    stub_lateness(url)
    time.sleep(0.1)
    found = stub_lateness(url)
    assert 0 <= found["median_s"] <= found["max_s"]
    assert found["cpu_s"] > 0
