"""A served benchmark that is ended on its way: what it measured comes home, and is told as no measurement."""

import json
import os
import signal
from pathlib import Path

from remote_payload import processes
from tests.support.answering_server import RECORDED_META, AnsweringServer, Reply
from tests.support.host_runs import state_file
from tests.support.laptop import Laptop
from tests.support.patience import wait_for
from tests.support.sshd import SshServer

PASSED = Reply(chunks=[(0.0, 1), (0.0, 63)], meta=RECORDED_META)


def test_cancelled_in_its_third_repeat(laptop: Laptop, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"text": "Once"}\n')
    with AnsweringServer() as server:
        # A point is two warm-ups and five requests; the third one's second request never ends.
        server.replies = [PASSED] * (7 + 7 + 3) + [Reply(chunks=[(0.0, 1)] * 3, hang_after=2)]
        words = (f"--attach-url={server.url}", f"--prompts={prompts}", "--repeats=3", "--run-id=b1")
        started = laptop.start("run", "bench", "--host", "gpu1", *words)
        wait_for(lambda: len(server.asked) == 18, "the request that hangs")
        assert laptop.run("cancel", "b1", "--host", "gpu1").code == 0
        ended = laptop.finish(started)
    assert ended.code == 24, ended.err
    assert "what was measured before is kept: eagle3-remote runs show b1" in ended.err
    shown = laptop.run("runs", "show", "b1")
    assert shown.code == 0, shown.err
    first = shown.out.splitlines()[0]
    assert first.startswith(
        "The run ended early, 2 of 3 repeats finished, 2 of 3 points; 1 request of the next one came"
    )
    assert "why: somebody cancelled it" in " ".join(shown.out.split())
    assert "Speed:" in shown.out
    assert "bench, cancelled" in shown.out
    value = json.loads(laptop.run("runs", "show", "b1", "--json").out)
    assert value["valid"] is False
    assert value["diagnosis"]["verdict"] == "invalid"
    assert (value["part"]["repeats_done"], value["part"]["repeats"]) == (2, 3)
    assert len(value["requests"]) == 11  # also the one of the third point that came back
    assert json.loads(laptop.run("runs", "list", "--json").out)["runs"][0]["has_result"] is False


def test_what_the_worker_of_a_lost_run_finished_is_brought_home(
    laptop: Laptop, server: SshServer, tmp_path: Path
) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"text": "Once"}\n')
    with AnsweringServer() as answering:
        answering.replies = [PASSED] * 3 + [Reply(chunks=[(2.0, 1), (0.0, 63)], meta=RECORDED_META), PASSED]
        words = (f"--attach-url={answering.url}", f"--prompts={prompts}", "--run-id=b1")
        started = laptop.start("run", "bench", "--host", "gpu1", *words)
        wait_for(lambda: len(answering.asked) == 4, "the slow request")
        state = json.loads(state_file(server, "b1").read_text())
        os.kill(state["supervisor_pid"], signal.SIGKILL)
        ended = laptop.finish(started)
        assert (ended.code, "attach b1` brings home what its worker left" in ended.err) == (25, True), ended.err
        wait_for(lambda: processes.read_stat(state["worker_pid"]) is None, "the worker's end")
    again = laptop.run("attach", "b1", "--host", "gpu1")
    assert (again.code, "it left 3 result files" in again.err) == (25, True), again.err
    assert "what was measured before is kept: eagle3-remote runs show b1" in again.err
    shown = laptop.run("runs", "show", "b1", "--json")
    value = json.loads(shown.out)
    assert (value["run"]["phase"], len(value["requests"]), value["result"]["whole"]) == ("lost", 5, True)


def test_a_server_that_fails_on_the_way(laptop: Laptop, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"text": "Once"}\n')
    with AnsweringServer() as server:
        server.replies = [PASSED] * 7 + [Reply(status=503)]
        words = (f"--attach-url={server.url}", f"--prompts={prompts}", "--concurrency=1,2", "--run-id=b1")
        ended = laptop.run("run", "bench", "--host", "gpu1", *words)
    assert ended.code not in (0, 24)
    assert "answers none of 4 warm-up requests" in ended.err
    shown = laptop.run("runs", "show", "b1")
    told = " ".join(shown.out.split())
    assert "The run ended early, 1 of 2 points finished: no measurement; why: " in told
    assert "answers none of 4 warm-up requests" in told[:400]
    assert "answers none of 4 warm-up requests" in shown.out
