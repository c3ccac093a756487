import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from remote_payload.gpus import GpuFacts, parse_gpus
from remote_payload.sglang_bench.gpu_memory import GpuMemory
from remote_payload.sglang_bench.info import ask, counters_of, flush, server_info, snapshot
from tests.payload.sglang_bench.conftest import RECORDED, Site


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


def test_gpu_memory_that_stays_is_told() -> None:
    looks = [smi(7), smi(7, 100, 200), smi(7, 100, 200), smi(7, 200), smi(7)]
    memory = GpuMemory(look=lambda: looks.pop(0))
    memory.begin()
    memory.claim((100,))
    assert memory.ours == {100, 200}  # 200 is new: the server's, seen through a container
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
    memory.claim((1,))
    assert memory.left_bytes() is None
    assert len(looked) == 1


def test_what_is_kept_of_the_info_has_no_secret_and_says_nothing_twice(site: Site) -> None:
    running = site.start(site.job({"changes": {"api_key": "sk-1", "watermark_key": "w"}}))
    kept = json.loads(running.facts.server_info or "")
    assert kept["api_key"] == kept["watermark_key"] == "<redacted>"
    assert "speculative_num_steps" not in kept["internal_states"][0]
    assert kept["internal_states"][0]["memory_usage"]
