"""Answers as no sane server gives them: each is a failed sample at most, none costs another one, none hides time."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remote_payload.schema.bench import BenchResult, RequestSample
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.record import from_json
from remote_payload.sglang_bench.client import Load
from remote_payload.sglang_bench.job import run as run_job
from tests.payload.sglang_bench.test_client import prompts, run
from tests.support.answering_server import RECORDED_META, AnsweringServer, Reply

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
IDS = list(range(100, 164))
FIRST = {"output_ids": IDS[:1], "meta_info": {"completion_tokens": 1, "finish_reason": None}}
DONE = b"data: [DONE]\n\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(value: object) -> bytes:
    return chunk(b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n")


def last(meta: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return {"output_ids": IDS, "meta_info": {**RECORDED_META, "prompt_tokens": 2, **(meta or {})}, **changes}


def stream(*events: object, end: bytes = chunk(DONE) + END) -> Reply:
    return Reply(raw=[(0.0, HEAD + b"".join(map(event, events)) + end)])


DEEP = b'{"output_ids":' + b"[" * 200_000 + b"]" * 200_000 + b',"meta_info":{"completion_tokens":64}}'
ERROR = {"error": {"message": "it fell"}, "meta_info": {"completion_tokens": 3}}
FAILURES = {
    "ids are a number": (stream(FIRST, last(output_ids=7)), "the answer's `output_ids` are no token ids"),
    "ids hold NaN": (stream(FIRST, last(output_ids=[1, float("nan")] * 32)), "are no token ids"),
    "ids are words": (stream(FIRST, last(output_ids=["a"] * 64)), "are no token ids"),
    "ids are nested": (stream(FIRST, last(output_ids=[[1, 2]] * 64)), "are no token ids"),
    "ids are huge": (stream(FIRST, last(output_ids=[10**30] * 64)), "are no token ids"),
    "deep": (stream(FIRST, DEEP), "the answer's last piece cannot be read"),
    "no unicode": (stream(FIRST, b'{"text":"\xff","meta_info":{"completion_tokens":64}}'), "last piece cannot be read"),
    "cut": (stream(FIRST, b'{"meta_info":{"completion_tokens":64,'), "last piece cannot be read"),
    "an endless count": (stream(FIRST, b'{"meta_info":{"completion_tokens":' + b"9" * 5000 + b"}}"), "ended before"),
    "no reason to end": (stream(FIRST), "the stream ended before the answer did; tokens so far: 1"),
    "an error that counts": (stream(FIRST, ERROR), "the server broke the request off: it fell"),
    "an error at the end": (stream(FIRST, {**last(), "error": "it fell"}), "the server broke the request off: it fell"),
    "no content": (Reply(raw=[(0.0, b"HTTP/1.1 204 No Content\r\n\r\n"), (1.0, b"")]), "HTTP 204: no words"),
    "a chunk of less than nothing": (Reply(raw=[(0.0, HEAD + b"-5\r\nabc\r\n" + END)]), "no length of a chunk"),
}


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with AnsweringServer() as server:
        yield server


@pytest.mark.parametrize("case", FAILURES)
def test_a_failed_sample_and_no_other_is_lost(case: str, tmp_path: Path) -> None:
    reply, words = FAILURES[case]
    good = Reply(chunks=[(0.0, 1), (0.0, 63)], meta=RECORDED_META)
    (tmp_path / "prompts.jsonl").write_text("".join(f'{{"input_ids": [5, {number}]}}\n' for number in range(6)))
    folder = tmp_path / "run" / "result"
    folder.mkdir(parents=True)
    with AnsweringServer() as server:
        server.replies = [good, good, good, reply, good]  # two warm-ups are first
        run_job(BenchJob(attach_url=server.url, prompts=str(tmp_path / "prompts.jsonl")), folder, lambda _: None)
    (point,) = from_json(BenchResult, (folder / "bench.json").read_text()).points
    assert (point.requests, point.failed) == (6, 1)
    with gzip.open(folder / "requests.jsonl.gz", "rt") as file:
        errors = [from_json(RequestSample, line).error for line in file]
    assert words in (errors.pop(1) or "")
    assert errors == [None] * 5


@pytest.mark.parametrize(
    ("reply", "broken"),
    [
        (stream(FIRST, last({"spec_verify_ct": 10**400})), ()),
        (stream(FIRST, last({"cached_tokens": 10**25})), ()),
        (stream(FIRST, last(), end=chunk(DONE) + event({"meta_info": {"completion_tokens": 999}}) + END), ()),
        (stream(FIRST, last(), last(), last()), ()),
        (stream(FIRST, last(output_ids=[*IDS, 7])), ("output ids = 65, completion tokens = 64",)),
        (stream(FIRST, last({"prompt_tokens": 3})), ("prompt tokens = 3, prompt ids sent = 2",)),
    ],
)
def test_odd_numbers_of_a_good_answer(server: AnsweringServer, reply: Reply, broken: tuple[str, ...]) -> None:
    server.replies = [reply]
    measured, _ = run(server, prompts(2), Load(users=1))
    assert [sample.error for sample in measured.samples] == [None, None]
    assert {sample.broken_identities for sample in measured.samples} == {broken}
    assert {sum(sample.chunk_tokens) for sample in measured.samples} == {64}


def incremental(*numbers: int) -> list[dict[str, Any]]:
    """The pieces of those numbers, out of 64 with a token each."""
    made = [{"output_ids": [100 + n], "meta_info": {"completion_tokens": n + 1}} for n in range(63)]
    made.append(last(output_ids=[163]))
    return [made[number] for number in numbers]


@pytest.mark.parametrize(
    ("numbers", "held"), [((*range(20), *range(25, 64)), 59), ((*range(64), 63), 65), (tuple(range(64)), 64)]
)
def test_pieces_that_were_lost_or_doubled(server: AnsweringServer, numbers: tuple[int, ...], held: int) -> None:
    server.replies = [stream(*incremental(*numbers))]
    measured, _ = run(server, prompts(1), Load(users=1))
    told = () if held == 64 else (f"output ids = {held}, completion tokens = 64",)
    assert measured.samples[0].broken_identities == told


def test_the_clock_of_a_request_goes_on_while_it_is_asked_again(server: AnsweringServer) -> None:
    """The server is quiet, then drops the kept connection without a word, and answers on the next one."""
    server.replies = [Reply(), Reply(raw=[(0.3, b"")]), Reply()]
    measured, _ = run(server, prompts(2), Load(users=1))
    second = measured.samples[1]
    assert second.error is None
    assert second.chunk_s[0] - second.sent_s >= 0.3
    assert measured.late_s < 0.2  # it was the server's time, not the client's


def test_a_request_that_was_dropped_late_failed(server: AnsweringServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remote_payload.sglang_bench.connection.IDLE_DROP_S", 0.1)
    server.replies = [Reply(), Reply(raw=[(0.3, b"")]), Reply()]
    measured, _ = run(server, prompts(3), Load(users=1))
    assert [sample.error for sample in measured.samples] == [None, "the stream broke off; tokens so far: 0", None]
    assert len(server.asked) == 3


def test_an_answer_whose_http_body_ends_late_is_whole_and_the_client_in_time(server: AnsweringServer) -> None:
    whole = HEAD + event(FIRST) + event(last()) + chunk(DONE)
    server.replies = [Reply(raw=[(0.0, whole), (0.3, END)])]
    measured, _ = run(server, prompts(2), Load(users=1))
    assert [sample.error for sample in measured.samples] == [None, None]
    assert measured.samples[1].sent_s - (measured.samples[0].done_s or 0.0) >= 0.25
    assert measured.late_s < 0.2


@pytest.mark.parametrize("after", [[(9.0, END)], [(0.05, chunk(b": still here\n\n"))] * 200])
def test_an_answer_whose_http_body_never_ends_is_whole(
    server: AnsweringServer, monkeypatch: pytest.MonkeyPatch, after: list[tuple[float, bytes]]
) -> None:
    monkeypatch.setattr("remote_payload.sglang_bench.loop.END_S", 0.2)
    server.replies = [Reply(raw=[(0.0, HEAD + event(FIRST) + event(last()) + chunk(DONE)), *after])]
    measured, _ = run(server, prompts(3), Load(users=1), timeout_s=3.0)
    assert [sample.error for sample in measured.samples] == [None] * 3
    assert (measured.samples[2].done_s or 9.0) < 2.0


@pytest.mark.parametrize("start", [b"HTTP/1.1 500 X\r\nContent-Length: 5000\r\n\r\n", b"HTTP/1.1 200 OK\r\n"])
def test_what_drips_is_left_at_the_deadline(server: AnsweringServer, start: bytes) -> None:
    server.replies = [Reply(raw=[(0.0, start), *[(0.1, b"X-A: b\r\n")] * 100])]
    measured, _ = run(server, prompts(1), Load(users=1), timeout_s=0.5)
    assert measured.samples[0].error == "no end within 0.5 s; tokens so far: 0"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=400, body=b'{"error": {"message": "not the key k-very-secret, is it"}}'),
        stream({"error": "k-very-secret is wrong"}),
        stream(FIRST, last({"finish_reason": {"type": "abort", "message": "k-very-secret"}})),
        stream(FIRST, last({"finish_reason": {"type": "k-very-secret"}})),
        Reply(raw=[(0.0, b"HTTP/1.1 500 X\r\n\r\n" + b"x" * 1993 + b"k-very-secret")]),
    ],
)
def test_a_key_that_the_server_repeats_is_in_no_sample(server: AnsweringServer, reply: Reply) -> None:
    server.replies = [reply]
    measured, _ = run(server, prompts(1), Load(users=1), key="k-very-secret", hidden=("k-very-secret",))
    (sample,) = measured.samples
    assert "k-very" not in repr(sample)
    assert "<redacted>" in repr(sample) or "x" * 1000 in repr(sample)
