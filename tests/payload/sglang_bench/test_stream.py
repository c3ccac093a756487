"""The clock of the client: what a server planted in its streams is found again, and what broke is told."""

import contextlib
import datetime
import json
import socket
import statistics
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from remote_payload.sglang_bench.answer import Asked, read_answer
from remote_payload.sglang_bench.loop import Loop
from remote_payload.sglang_bench.place import Place
from remote_payload.sglang_bench.stream import StreamBroken, Streamed
from tests.support.answering_server import RECORDED_META, AnsweringServer, Reply
from tests.support.patience import Within

RECORDED = Path(__file__).parent / "recorded"


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with AnsweringServer() as server:
        yield server


class Line:
    """One connection to one place, and the loop that listens to it."""

    def __init__(self, url: str, key: str | None = None) -> None:
        self.loop = Loop()
        self.connection = self.loop.connection(Place(url, key))

    def ask(self, streamed: Streamed, timeout_s: float = 20.0, body: bytes = b'{"input_ids": [1, 2]}') -> None:
        """Until the request is over. Raises StreamBroken."""
        ended: list[StreamBroken | None] = []
        self.loop.start(self.connection, body, timeout_s, streamed, ended.append)
        while not ended:
            self.loop.turn(1.0)
        (broken,) = ended
        if broken is not None:
            raise broken


def ask(server: AnsweringServer, timeout_s: float = 20.0, line: Line | None = None) -> Streamed:
    streamed, own = Streamed(), line or Line(server.url)
    with contextlib.closing(own.loop) if line is None else contextlib.nullcontext():
        own.ask(streamed, timeout_s)
    return streamed


def broken(server: AnsweringServer, timeout_s: float = 20.0) -> tuple[StreamBroken, Streamed]:
    streamed, line = Streamed(), Line(server.url)
    with contextlib.closing(line.loop), pytest.raises(StreamBroken) as caught:
        line.ask(streamed, timeout_s)
    return caught.value, streamed


def test_planted_delays_are_recovered_to_the_millisecond(server: AnsweringServer) -> None:
    planted = [(0.080, 1)] + [(0.004 + 0.003 * (index % 7), 1 + index % 4) for index in range(60)]
    server.replies = [Reply(chunks=planted)]
    streamed = ask(server)
    (sent,) = server.sent
    late = [stamp - at for stamp, at in zip(streamed.chunk_s, sent, strict=True)]
    assert min(late) >= 0  # a piece is not stamped before it is sent
    assert sorted(late)[len(late) // 4] < 0.001  # a busy machine holds up most of them, a late stamp all
    assert streamed.chunk_tokens == [new for _, new in planted]
    assert streamed.sent_s is not None
    assert sent[0] - streamed.sent_s >= 0.080  # the clock starts with the sending, the first delay lies in it
    assert streamed.done_s == streamed.chunk_s[-1]  # and stops with the last token


def test_the_gaps_of_a_stream_are_the_planted_ones(server: AnsweringServer) -> None:
    server.replies = [Reply(chunks=[(0.02, 2)] * 40)]
    streamed = ask(server)
    (sent,) = server.sent
    errors = sorted(
        abs((streamed.chunk_s[index] - streamed.chunk_s[index - 1]) - (sent[index] - sent[index - 1]))
        for index in range(1, 40)
    )
    assert errors[len(errors) // 4] < 0.001  # a busy machine spoils most of them, one that reads late all
    assert statistics.median(sent[index] - sent[index - 1] for index in range(1, 40)) >= 0.02


@pytest.mark.parametrize("incremental", [False, True])
@pytest.mark.parametrize("chunks", [((0.0, 5),), ((0.0, 1), (0.0, 4)), ((0.0, 1),) * 7])
def test_ids_are_whole_whichever_way_they_are_streamed(
    server: AnsweringServer, chunks: tuple[tuple[float, int], ...], incremental: bool
) -> None:
    server.replies = [Reply(chunks=chunks, incremental=incremental)]
    streamed = ask(server)
    total = sum(new for _, new in chunks)
    assert streamed.output_ids == list(range(100, 100 + total))
    assert streamed.tokens == total


def test_a_version_without_ids_still_counts(server: AnsweringServer) -> None:
    server.replies = [Reply(chunks=[(0.0, 1), (0.0, 3), (0.0, 2)], ids=False)]
    streamed = ask(server)
    assert streamed.output_ids is None
    assert streamed.chunk_tokens == [1, 3, 2]


def test_the_last_piece_may_bring_no_token(server: AnsweringServer) -> None:
    server.replies = [Reply(chunks=[(0.0, 3), (0.05, 0)])]
    streamed = ask(server)
    assert streamed.chunk_tokens == [3]
    assert streamed.chunk_s[-1] < streamed.done_s  # type: ignore[operator]
    assert streamed.meta["finish_reason"] == {"type": "length", "length": 3}


def test_meta_info_comes_from_the_last_piece_and_may_hold_infinity(server: AnsweringServer) -> None:
    server.replies = [Reply(chunks=[(0.0, 64)], meta={**RECORDED_META, "decode_throughput": float("inf")})]
    meta = ask(server).meta
    assert meta["spec_correct_drafts_histogram"] == [11, 10, 0, 8]
    assert meta["decode_throughput"] == float("inf")


def test_a_recorded_stream_of_a_real_server(server: AnsweringServer) -> None:
    """SGLang 0.5.23: 24 tokens in 19 pieces, cumulative text and ids, the numbers of speculation in the last."""
    server.replies = [Reply(recorded=(RECORDED / "generate_stream.txt").read_bytes())]
    streamed = ask(server)
    assert streamed.chunk_tokens == [1, 1, 2, 1, 1, 1, 3, 1, 1, 1, 1, 2, 1, 2, 1, 1, 1, 1, 1]
    assert streamed.output_ids is not None
    assert streamed.output_ids[:3] == [19, 373, 68]
    assert len(streamed.output_ids) == 24
    answer = read_answer(streamed.meta, Asked(width=3, streamed=streamed.tokens, ids=24))
    assert (answer.verify_steps, answer.correct_drafts, answer.histogram) == (18, 5, (14, 3, 1))
    assert answer.broken_identities == ()


def test_a_connection_is_used_again_and_replaced_when_the_server_dropped_it(server: AnsweringServer) -> None:
    line = Line(server.url, "secret")
    with contextlib.closing(line.loop):
        for _ in range(3):
            assert ask(server, line=line).tokens == 4
        assert {headers["Authorization"] for headers in server.headers} == {"Bearer secret"}
        assert len(server.sockets) == 1
        server.drop_idle()
        assert ask(server, line=line).tokens == 4
        assert len(server.sockets) == 2


@pytest.mark.parametrize("after", [1, 2])
def test_a_cut_stream_keeps_what_came(server: AnsweringServer, after: int) -> None:
    server.replies = [Reply(chunks=[(0.0, 2)] * 4, cut_after=after)]
    error, streamed = broken(server)
    assert f"tokens so far: {2 * after}" in str(error)
    assert streamed.chunk_tokens == [2] * after
    assert error.status == 200


def test_a_stream_cut_before_its_first_token_is_told(server: AnsweringServer) -> None:
    server.replies = [Reply(cut_after=0)]
    error, streamed = broken(server)
    assert "tokens so far: 0" in str(error)
    assert streamed.chunk_s == []


def test_a_stream_that_ends_without_an_end_is_broken(server: AnsweringServer) -> None:
    server.replies = [Reply(chunks=[(0.0, 2), (0.0, 2)], meta={"finish_reason": None}, end=False)]
    error, _ = broken(server)
    assert str(error) == "the stream ended before the answer did; tokens so far: 4"


def test_a_stream_that_stops_runs_into_the_deadline_of_the_whole_request(server: AnsweringServer) -> None:
    server.replies = [Reply(chunks=[(0.02, 1)] * 50, hang_after=3)]
    with Within():
        error, streamed = broken(server, timeout_s=1.5)
    assert str(error) == "no end within 1.5 s; tokens so far: 3"
    assert streamed.tokens == 3


def test_tokens_that_trickle_do_not_put_the_deadline_off(server: AnsweringServer) -> None:
    server.replies = [Reply(chunks=[(0.05, 1)] * 200)]
    error, _ = broken(server, timeout_s=0.5)
    assert "no end within 0.5 s" in str(error)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (503, b"", "HTTP 503: no words"),
        (400, b'{"error": {"message": "input is too long", "code": 400}}', "HTTP 400: input is too long"),
        (422, b'{"detail": "body is wrong"}', "HTTP 422: body is wrong"),
        (500, b"Internal\nServer Error", "HTTP 500: Internal Server Error"),
    ],
)
def test_a_refused_request_is_told_in_the_servers_words(
    server: AnsweringServer, status: int, body: bytes, words: str
) -> None:
    server.replies = [Reply(status=status, body=body)]
    error, streamed = broken(server)
    assert str(error) == words
    assert error.status == streamed.status == status


def test_an_error_in_the_stream_is_told(server: AnsweringServer) -> None:
    server.replies = [Reply(chunks=[(0.0, 1)] * 3, error_after=2)]
    error, streamed = broken(server)
    assert str(error) == "the server broke the request off: the request was aborted"
    assert streamed.tokens == 2


def test_nobody_listens() -> None:
    with AnsweringServer() as server:
        url = server.url
    line = Line(url)
    with contextlib.closing(line.loop), pytest.raises(StreamBroken, match="refused"):
        line.ask(Streamed(), 5.0)


def test_a_name_without_an_address() -> None:
    line = Line("http://no-such-host.invalid:1")
    with contextlib.closing(line.loop), pytest.raises(StreamBroken, match="tokens so far: 0"):
        line.ask(Streamed(), 5.0)


def test_a_request_larger_than_the_socket_takes_at_once(server: AnsweringServer) -> None:
    text, streamed, line = "x" * (16 << 20), Streamed(), Line(server.url)
    with contextlib.closing(line.loop):
        line.ask(streamed, body=json.dumps({"text": text}).encode())
    assert streamed.tokens == 4
    assert server.asked == [{"text": text}]


def test_a_server_that_speaks_tls(server: AnsweringServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = write_certificate(tmp_path / "server.pem")
    server.speak_tls(certificate)
    untrusting = Line(server.url)
    with contextlib.closing(untrusting.loop), pytest.raises(StreamBroken, match="tokens so far: 0"):
        untrusting.ask(Streamed())
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    server.replies = [Reply(chunks=[(0.01, 1)] * 5), Reply(chunks=[(0.0, 1000)])]
    line, first, second = Line(server.url), Streamed(), Streamed()
    with contextlib.closing(line.loop):
        line.ask(first)
        line.ask(second)
    assert first.chunk_tokens == [1] * 5
    assert second.output_ids == list(range(100, 1100))


def test_an_answer_that_is_no_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            asked, _ = listening.accept()
            with asked:
                asked.sendall(b"SSH-2.0-OpenSSH\r\n")
                asked.recv(1 << 16)

        greeting = threading.Thread(target=greet)
        greeting.start()
        line = Line(f"http://127.0.0.1:{listening.getsockname()[1]}")
        with contextlib.closing(line.loop), pytest.raises(StreamBroken, match="no HTTP answer"):
            line.ask(Streamed(), 5.0)
        greeting.join()


def write_certificate(path: Path) -> Path:
    """A certificate of `localhost` that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    return path
