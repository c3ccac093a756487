"""One point's load: users, arrivals, samples of what went well and of what did not."""

import itertools
import resource
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from remote_payload.schema.bench import RequestSample
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.client import Client, Load, Measured, Target, sampling_of
from remote_payload.sglang_bench.prompt import Prompt
from tests.support.answering_server import RECORDED_META, AnsweringServer, Reply


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with AnsweringServer() as server:
        yield server


def prompts(count: int) -> list[Prompt]:
    return [Prompt(index=index, input_ids=(7, index)) for index in range(count)]


def run(
    server: AnsweringServer,
    asked: list[Prompt],
    load: Load,
    watch: Callable[[], None] = lambda: None,
    **target: Any,
) -> tuple[Measured, list[RequestSample]]:
    settings: dict[str, Any] = {"key": None, "sampling": {"temperature": 0.0}, "timeout_s": 20.0, **target}
    counted: list[RequestSample] = []
    client = Client(Target(url=server.url, **settings), 3, time.monotonic())
    measured = client.run(asked, load, counted.append, watch)
    assert client.tokens == sum(sum(sample.chunk_tokens) for sample in measured.samples)
    return measured, counted


def test_every_prompt_becomes_a_sample(server: AnsweringServer) -> None:
    server.replies = [Reply(chunks=[(0.0, 1), (0.0, 63)], meta=RECORDED_META)]
    measured, counted = run(server, prompts(6), Load(users=2), width=3)
    assert [sample.index for sample in measured.samples] == list(range(6))
    assert sorted(sample.index for sample in counted) == list(range(6))
    assert sorted(tuple(body["input_ids"]) for body in server.asked) == [(7, index) for index in range(6)]
    sample = measured.samples[0]
    assert (sample.point, sample.prompt, sample.prompt_tokens, sample.status, sample.error) == (3, 0, 2, 200, None)
    assert (sample.chunk_tokens, sample.completion_tokens, sample.finish) == ((1, 63), 64, "length")
    assert (sample.verify_steps, sample.correct_drafts, sample.proposed_drafts) == (29, 34, 87)
    assert sample.histogram == (11, 10, 0, 8)
    assert sample.broken_identities == ()
    assert sample.output_ids == tuple(range(100, 164))
    assert 0 <= sample.sent_s <= sample.chunk_s[0] <= sample.chunk_s[1] <= (sample.done_s or 0)
    assert measured.own.cpu_s > 0


def test_what_the_server_is_asked(server: AnsweringServer) -> None:
    job = BenchJob(model="m", max_new_tokens=9, ignore_eos=True, temperature=0.5, top_p=0.9, top_k=20)
    run(server, [Prompt(index=0, text="Once")], Load(users=1), sampling=sampling_of(job), key="secret")
    sampling = {"temperature": 0.5, "max_new_tokens": 9, "ignore_eos": True, "top_p": 0.9, "top_k": 20}
    assert server.asked == [{"text": "Once", "stream": True, "sampling_params": sampling}]
    assert server.headers[0]["Authorization"] == "Bearer secret"
    assert sampling_of(BenchJob(model="m")) == {"temperature": 0.0, "max_new_tokens": 256, "ignore_eos": False}


def test_users_are_served_side_by_side_and_each_waits_for_its_answer(server: AnsweringServer) -> None:
    server.replies = [Reply(chunks=[(0.15, 1)])]
    measured, _ = run(server, prompts(9), Load(users=3))
    ended = [sample.done_s or 0.0 for sample in measured.samples]
    for index, sample in enumerate(measured.samples):
        before = [end for end in ended[:index] if end <= sample.sent_s]
        assert index - len(before) < 3  # never more than three under way
    assert sum(sample.sent_s < min(ended) for sample in measured.samples) == 3  # and three at once from the start


def test_arrivals_follow_the_seed_and_wait_for_nobody(server: AnsweringServer) -> None:
    server.replies = [Reply(chunks=[(0.5, 1)])]
    gaps = []
    for _ in range(2):
        measured, _ = run(server, prompts(12), Load(rate=40.0, seed=5))
        sent = [sample.sent_s for sample in measured.samples]
        assert sent[-1] < sent[0] + 2.0  # twelve answers one after the other take six seconds
        gaps.append([after - before for before, after in itertools.pairwise(sent)])
        assert measured.late_s < 0.5
    same = [abs(one - two) for one, two in zip(*gaps, strict=True)]
    assert statistics.median(same) < 0.01
    assert len({round(gap, 3) for gap in gaps[0]}) > 4  # no metronome


def test_failures_are_samples(server: AnsweringServer) -> None:
    server.replies = [
        Reply(),
        Reply(status=503, body=b'{"error": {"message": "overloaded"}}'),
        Reply(chunks=[(0.0, 2)] * 3, cut_after=1),
        Reply(chunks=[(0.0, 1)], meta={"finish_reason": {"type": "abort", "message": "out of memory"}}),
        Reply(chunks=[(0.0, 0)]),
        Reply(),
    ]
    measured, counted = run(server, prompts(6), Load(users=1))
    assert len(counted) == 6
    errors = [sample.error for sample in measured.samples]
    assert errors[0] is None
    assert errors[1] == "HTTP 503: overloaded"
    assert errors[2] is not None
    assert errors[2].endswith("tokens so far: 2")
    assert errors[3] == "the server aborted the request: out of memory"
    assert errors[4] == "the answer holds no token"
    assert errors[5] is None  # one failure does not spoil the next request
    assert [sample.status for sample in measured.samples] == [200, 503, 200, 200, 200, 200]
    assert measured.samples[2].chunk_tokens == (2,)
    assert measured.samples[2].finish is None


def test_a_hanging_answer_is_left_at_its_deadline(server: AnsweringServer) -> None:
    server.replies = [Reply(chunks=[(0.0, 1)] * 3, hang_after=2), Reply()]
    measured, _ = run(server, prompts(2), Load(users=1), timeout_s=0.4)
    assert [sample.error for sample in measured.samples] == ["no end within 0.4 s; tokens so far: 2", None]


def test_nobody_there_fails_every_request_and_raises_nothing() -> None:
    with AnsweringServer() as server:
        pass
    measured, _ = run(server, prompts(3), Load(users=2))
    assert all("refused" in (sample.error or "") for sample in measured.samples)
    assert [sample.status for sample in measured.samples] == [None] * 3


def test_a_watch_that_raises_ends_the_point(server: AnsweringServer) -> None:
    server.replies = [Reply(chunks=[(0.05, 1)])]

    def died() -> None:
        if len(server.asked) >= 3:
            raise RuntimeError("died")

    client = Client(Target(url=server.url, key=None, sampling={}, timeout_s=5.0), 0, time.monotonic())
    with pytest.raises(RuntimeError, match="died"):
        client.run(prompts(200), Load(users=1), lambda _: None, died)
    time.sleep(0.3)
    assert len(server.asked) < 50
    assert len(client.measured.samples) >= 2


def test_ids_are_left_out_where_they_are_not_wanted(server: AnsweringServer) -> None:
    measured, _ = run(server, prompts(1), Load(users=1), keep_outputs=False)
    assert measured.samples[0].output_ids is None


def test_more_users_than_files_may_be_open(server: AnsweringServer) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    mine = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (mine + 40, limits[1]))
    try:
        measured, _ = run(server, prompts(60), Load(users=60))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert [sample.error for sample in measured.samples] == [None] * 60


def test_many_users_at_once(server: AnsweringServer) -> None:
    server.replies = [Reply(chunks=[(0.01, 1)] * 5)]
    before = threading.active_count()
    measured, _ = run(server, prompts(120), Load(users=60))
    assert [sample.error for sample in measured.samples] == [None] * 120
    assert all(sample.chunk_tokens == (1,) * 5 for sample in measured.samples)
    assert threading.active_count() <= before + 60  # the server's, of connections that are kept
