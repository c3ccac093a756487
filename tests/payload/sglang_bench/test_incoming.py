"""HTTP's framing: however the bytes are cut into pieces, the body is the same."""

import random

import pytest

from remote_payload.sglang_bench.incoming import Incoming, NotHttpError

BODY = b"data: {1}\n\ndata: {22}\n\ndata: [DONE]\n\n"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nServer: uvicorn\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"b\r\ndata: {1}\n\n\r\n1;x=y\r\nd\r\n0018\r\nata: {22}\n\ndata: [DONE]\n\r\n1\r\n\n\r\n0\r\n\r\n"
)
SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)


def body_of(pieces: list[bytes]) -> tuple[bytes, Incoming]:
    incoming = Incoming()
    return b"".join(incoming.feed(piece) for piece in pieces), incoming


@pytest.mark.parametrize("answer", [CHUNKED, SIZED])
def test_however_it_is_cut(answer: bytes) -> None:
    draw = random.Random(1)
    cuts = [[at] for at in range(1, len(answer))] + [sorted(draw.sample(range(1, len(answer)), 9)) for _ in range(200)]
    for marks in [*cuts, list(range(1, len(answer)))]:
        pieces = [answer[a:b] for a, b in zip([0, *marks], [*marks, len(answer)], strict=True)]
        body, incoming = body_of(pieces)
        assert (body, incoming.status, incoming.is_over, incoming.is_kept) == (BODY, 200, True, True)
        _, almost = body_of([answer[:-1]])
        assert not almost.is_over


def test_a_body_that_ends_with_its_connection() -> None:
    body, incoming = body_of([b"HTTP/1.0 200 OK\r\n\r\n" + BODY])
    assert (body, incoming.is_over, incoming.is_kept) == (BODY, False, False)
    incoming.end()
    assert incoming.is_over


def test_a_chunked_body_does_not_end_with_its_connection() -> None:
    _, incoming = body_of([CHUNKED[:-5]])
    incoming.end()
    assert not incoming.is_over


@pytest.mark.parametrize(("words", "kept"), [(b"close", False), (b"keep-alive", True)])
def test_whether_the_connection_is_kept(words: bytes, kept: bool) -> None:
    _, incoming = body_of([b"HTTP/1.1 503 Busy\r\nConnection: %s\r\nContent-Length: 0\r\n\r\n" % words])
    assert (incoming.status, incoming.is_over, incoming.is_kept) == (503, True, kept)


def test_an_interim_answer_is_passed_over() -> None:
    body, incoming = body_of([b"HTTP/1.1 100 Continue\r\n\r\n" + SIZED])
    assert (body, incoming.status, incoming.is_over) == (BODY, 200, True)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 fine\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nlong\r\n",
    ],
)
def test_what_is_no_answer(answer: bytes) -> None:
    with pytest.raises(NotHttpError):
        body_of([answer])
