import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from remote_payload.gpus.facts import GpuFacts, parse_gpus
from remote_payload.sglang_bench.asking import MOST_BYTES, ask
from remote_payload.sglang_bench.gpu_memory import GpuMemory
from remote_payload.sglang_bench.info import counters_of, flush, server_info, snapshot
from tests.payload.sglang_bench.conftest import RECORDED, Site
from tests.support.patience import Within


def test_a_snapshot_of_what_the_server_counted(site: Site) -> None:
    states = [{"avg_spec_accept_length": 1.5}, {"avg_spec_accept_length": None}, {}]
    behaviour = {"metrics": str(RECORDED / "metrics.txt"), "changes": {"internal_states": states}}
    running = site.start(site.job(behaviour))
    began_s = time.monotonic()
    found = snapshot(running.url, running.key, began_s)
    assert found.avg_spec_accept_length == (1.5, None, None)
    assert (found.generation_tokens, found.verify_calls) == (65.0, 42.0)
    assert (found.running, found.queued) == (0, 0)
    assert 0 <= found.time_s <= time.monotonic() - began_s


def test_a_server_that_tells_nothing_gives_an_empty_snapshot(site: Site) -> None:
    running = site.start(site.job())
    url = running.url
    assert snapshot(url, None, time.monotonic()).generation_tokens is None
    running.stop()
    gone = snapshot(url, None, time.monotonic())
    assert (gone.avg_spec_accept_length, gone.running) == ((), None)
    assert not flush(url, None)


@pytest.mark.parametrize(
    ("behaviour", "flushed"), [({}, True), ({"flush": 400}, False), ({"flushes_by_get": True}, True)]
)
def test_flushing(site: Site, behaviour: dict[str, object], flushed: bool) -> None:
    running = site.start(site.job(behaviour))
    assert flush(running.url, running.key) is flushed


def test_counters_are_summed_over_ranks_and_infinity_is_none_of_them() -> None:
    text = (
        '# HELP sglang:generation_tokens_total x\nsglang:generation_tokens_total{tp_rank="0"} 40.0\n'
        'sglang:generation_tokens_total{tp_rank="1"} 2.5e1\nsglang:gen_throughput{a="b"} +Inf\nother 3\n'
        "sglang:num_running_reqs 1e999\nsglang:num_queue_reqs 1e300\n"
    )
    assert counters_of(text) == {"generation_tokens_total": 65.0}


class Odd(BaseHTTPRequestHandler):
    """Answers that no whole JSON client expects."""

    def do_GET(self) -> None:
        body = {"/server_info": b'{"mem": Infinity, "internal_states": [{"avg_spec_accept_length": Infinity}]}'}
        self.send_response(200)
        data = body.get(self.path, b"<html>")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def odd() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_infinity_is_read_and_is_no_figure(odd: str) -> None:
    assert server_info(odd, None) == {
        "mem": float("inf"),
        "internal_states": [{"avg_spec_accept_length": float("inf")}],
    }
    assert snapshot(odd, None, 0.0).avg_spec_accept_length == (None,)


def test_no_http_answer_is_an_os_error(odd: str) -> None:
    with pytest.raises(OSError, match=r"[Rr]efused"):
        ask("http://127.0.0.1:1", "/health", None)
    assert ask(odd, "/x", None) == (200, b"<html>")


def smi(*pids: int) -> GpuFacts:
    gpu = ["0, GPU-a, H200, 100, 50, 3, 570.1"]
    return GpuFacts(answer="ok", gpus=parse_gpus(gpu, [f"GPU-a, {pid}, 10" for pid in pids]))


def commanded(facts: GpuFacts, **commands: str) -> GpuFacts:
    (gpu,) = facts.gpus
    named = tuple(replace(item, command=commands.get(f"pid_{item.pid}")) for item in gpu.processes)
    return replace(facts, gpus=(replace(gpu, processes=named),))


@pytest.mark.parametrize("behind_prefix", [False, True])
def test_gpu_memory_that_stays_is_told_and_a_colleagues_is_not(*, behind_prefix: bool) -> None:
    ours = commanded(smi(7, 100, 200, 300), pid_200="python -m sglang.launch_server", pid_300="python train.py")
    looks = [smi(7), ours, ours, smi(7, 200), smi(7)]
    memory = GpuMemory(look=lambda: looks.pop(0))
    memory.begin()
    memory.claim((100,), behind_prefix=behind_prefix)
    if not behind_prefix:  # whoever else came meanwhile is not of our tree
        assert memory.ours == {100}
        return
    assert memory.ours == {100, 200}  # 200: the server, seen through a container
    assert memory.left_bytes(0.0) == 20 * 1024 * 1024
    assert memory.left_bytes(5.0) == 0
    assert looks == []


@pytest.mark.parametrize("answer", ["hung", "no_nvidia_smi", "failed"])
def test_gpu_memory_that_cannot_be_known_is_not_waited_for(answer: str) -> None:
    looked = []

    def look() -> GpuFacts:
        looked.append(1)
        return GpuFacts(answer=answer)  # type: ignore[arg-type] # one of its words

    memory = GpuMemory(look=look)
    memory.begin()
    memory.claim((1,), behind_prefix=False)
    assert memory.left_bytes() is None
    assert len(looked) == 1


def test_what_is_kept_of_the_info_has_no_secret_and_says_nothing_twice(site: Site) -> None:
    running = site.start(site.job({"changes": {"api_key": "sk-1", "watermark_key": "w"}}))
    kept = json.loads(running.facts.server_info or "")
    assert kept["api_key"] == kept["watermark_key"] == "<redacted>"
    assert "speculative_num_steps" not in kept["internal_states"][0]
    assert kept["internal_states"][0]["memory_usage"]


class Raw:
    """A server that answers every question by the same bytes, each after a wait, and then keeps the line open."""

    def __init__(self, parts: list[tuple[float, bytes]]) -> None:
        self._parts = parts
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._closing = threading.Event()
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = self._listening.accept()
                threading.Thread(target=self._say, args=(line,), daemon=True).start()

    def _say(self, line: socket.socket) -> None:
        with contextlib.suppress(OSError), line:
            line.recv(1 << 16)
            for wait_s, data in self._parts:
                if self._closing.wait(wait_s):
                    return
                line.sendall(data)
            self._closing.wait()

    def close(self) -> None:
        self._closing.set()
        self._listening.close()


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([(0.0, b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"), *[(0.05, b" ")] * 200], "timed out"),
        ([(0.0, b"HTTP/1.1 200 OK\r\n"), *[(0.05, b"X-A: b\r\n")] * 1200], "timed out"),
        ([(0.0, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n")], "no length of a chunk"),
        ([(0.0, b"SSH-2.0-OpenSSH\r\n\r\n")], "no HTTP answer"),
        ([(0.0, b"HTTP/1.1 200 OK\r\n\r\n"), *[(0.0, b" " * (1 << 20))] * 17], "more than 16 MiB"),
    ],
)
def test_every_question_has_a_deadline_for_its_whole_answer(parts: list[tuple[float, bytes]], words: str) -> None:
    assert MOST_BYTES == 16 << 20
    with contextlib.closing(Raw(parts)) as server, Within(), pytest.raises(OSError, match=words):
        ask(server.url, "/health", None, timeout_s=0.5)


def test_a_name_that_is_none_is_no_bug() -> None:
    with pytest.raises(OSError, match="no name of a host"):
        ask(f"http://{'a' * 300}.example:80", "/health", None)


def told(info: str) -> Raw:
    body = info.encode()
    return Raw([(0.0, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))])


def test_what_a_server_tells_is_bounded_in_depth_length_and_size() -> None:
    deep = "[" * 900 + "]" * 900
    with contextlib.closing(told(f'{{"a": {deep}, "b": "{"x" * 50_000}", "c": {10**400}, "d": [3]}}')) as server:
        info = server_info(server.url, None) or {}
    assert (len(info["b"]), info["c"], info["d"]) == (10_003, "<a number of more than 64 bits>", [3])
    assert len(json.dumps(info["a"])) < 100
    with contextlib.closing(told(f'{{"a": {"[" * 200_000}')) as server:
        assert server_info(server.url, None) is None


def test_a_number_beyond_all_floats_is_no_figure() -> None:
    with contextlib.closing(told(f'{{"internal_states": [{{"avg_spec_accept_length": {10**401}}}]}}')) as server:
        assert snapshot(server.url, None, time.monotonic()).avg_spec_accept_length == (None,)
