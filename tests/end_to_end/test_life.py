"""The whole path over a real sshd: launch, follow, collect; come back from elsewhere; end it."""

import contextlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

from tests.support.host_runs import kept_running, phase, state_file, wait_for_phase
from tests.support.laptop import Laptop
from tests.support.sshd import SshServer, session_pids


def test_a_second_run_ships_nothing_and_says_so(laptop: Laptop, server: SshServer) -> None:
    first = laptop.run("run", "selftest", "--host", "gpu1")
    assert first.code == 0, first.err
    assert "shipped" in first.err
    payloads = list((server.home / ".eagle3-remote" / "payloads").glob("*.pyz"))
    assert len(payloads) == 1
    before = payloads[0].stat()
    second = laptop.run("run", "selftest", "--host", "gpu1")
    assert second.code == 0, second.err
    assert "nothing shipped" in second.err
    assert payloads[0].stat().st_mtime_ns == before.st_mtime_ns
    assert (server.home / ".eagle3-remote").stat().st_mode & 0o777 == 0o700
    listed = json.loads(laptop.run("runs", "list", "--json").out)
    assert len(listed["runs"]) == 2


def test_json_events_end_with_the_result(laptop: Laptop) -> None:
    done = laptop.run("run", "selftest", "--host", "gpu1", "--json", "--run-id", "j1")
    assert done.code == 0, done.err
    assert [item["phase"] for item in done.objects if item.get("update") == "state"][-1] == "succeeded"
    assert done.objects[-1]["run"]["run_id"] == "j1"
    assert done.err == ""


def test_everything_works_from_another_laptop(
    laptop: Laptop, new_laptop: Callable[[str], Laptop], server: SshServer
) -> None:
    launched = laptop.run("run", "selftest", "--host", "gpu1", "--detach", "--duration-s", "120", "--run-id", "r1")
    assert (launched.code, launched.out) == (0, "r1\n")
    wait_for_phase(server, "r1", "running")
    other = new_laptop("other")
    other.add_host("box", server)
    asked = other.run("status", "r1", "--host", "box", "--json")
    assert asked.code == 0, asked.err
    status = json.loads(asked.out)
    assert [state["phase"] for state in status["states"]] == ["running"]
    logs = other.run("logs", "r1", "--host", "box")
    assert "selftest" in logs.out + logs.err
    attached = other.start("attach", "r1", "--host", "box")
    cancelled = other.run("cancel", "r1", "--host", "box")
    assert cancelled.code == 0, cancelled.err
    assert other.finish(attached).code == 24
    mine = laptop.run("attach", "r1")
    assert mine.code == 24, mine.err
    assert "cancelled" in mine.err


def test_ctrl_c_detaches_and_attach_goes_on(laptop: Laptop, server: SshServer) -> None:
    process = laptop.start("run", "selftest", "--host", "gpu1", "--duration-s", "2", "--run-id", "r2")
    with kept_running(server, "r2"):
        process.send_signal(signal.SIGINT)
        done = laptop.finish(process)
        assert done.code == 9
        assert "detached; job goes on" in done.err
        assert "eagle3-remote attach r2 --host gpu1" in done.err
        assert phase(server, "r2") == "running"
    again = laptop.run("attach", "r2")
    assert again.code == 0, again.err
    result = laptop.store / "runs" / "r2" / "result"
    assert (result / "manifest.json").exists()


def test_a_killed_laptop_process_loses_nothing(laptop: Laptop, server: SshServer) -> None:
    process = laptop.start("run", "selftest", "--host", "gpu1", "--duration-s", "2", "--run-id", "r3")
    wait_for_phase(server, "r3", "running")
    process.send_signal(signal.SIGKILL)
    assert laptop.finish(process).code == -signal.SIGKILL
    wait_for_phase(server, "r3", "succeeded")
    assert laptop.run("attach", "r3").code == 0
    events = (laptop.store / "runs" / "r3" / "events.jsonl").read_bytes()
    assert events == (server.home / ".eagle3-remote" / "runs" / "r3" / "events.jsonl").read_bytes()


def test_two_laptops_with_the_same_run_id(
    laptop: Laptop, new_laptop: Callable[[str], Laptop], server: SshServer
) -> None:
    other = new_laptop("other")
    other.add_host("gpu1", server)
    assert laptop.run("run", "selftest", "--host", "gpu1").code == 0  # so that both are warm
    command = ("run", "selftest", "--host", "gpu1", "--run-id", "same", "--duration-s", "1")
    started = [laptop.start(*command), other.start(*command)]
    done = [laptop.finish(started[0]), other.finish(started[1])]
    assert sorted(one.code for one in done) == [0, 15], [one.err for one in done]
    loser = next(one for one in done if one.code == 15)
    assert "same" in loser.err
    assert "hint: " in loser.err


def test_the_link_dies_while_a_job_runs(laptop: Laptop, server: SshServer) -> None:
    process = laptop.start("run", "selftest", "--host", "gpu1", "--duration-s", "2", "--run-id", "r4")
    wait_for_phase(server, "r4", "running")
    for pid in session_pids(server):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    done = laptop.finish(process)
    assert done.code == 0, done.err
    assert "reconnecting" in done.err


def test_kill_of_worker_and_supervisor(laptop: Laptop, server: SshServer) -> None:
    for run_id, victim, code, word in (("w", "worker_pid", 21, "SIGKILL"), ("s", "supervisor_pid", 25, "supervisor")):
        process = laptop.start("run", "selftest", "--host", "gpu1", "--duration-s", "60", "--run-id", run_id)
        wait_for_phase(server, run_id, "running")
        os.kill(json.loads(state_file(server, run_id).read_text())[victim], signal.SIGKILL)
        done = laptop.finish(process)
        assert done.code == code, done.err
        assert word in done.err
    assert laptop.run("cancel", "s").code == 0


def test_a_result_larger_than_the_inline_limit(laptop: Laptop, server: SshServer) -> None:
    done = laptop.run("run", "selftest", "--host", "gpu1", "--result-bytes", "3000000", "--run-id", "big")
    assert done.code == 0, done.err
    local, remote = (base / "runs" / "big" / "result" for base in (laptop.store, server.home / ".eagle3-remote"))
    names = sorted(path.name for path in remote.iterdir())
    assert sorted(path.name for path in local.iterdir()) == names
    for name in names:
        if name != "manifest.json":
            assert (local / name).read_bytes() == (remote / name).read_bytes()


def test_secrets_reach_the_job_and_nothing_else(laptop: Laptop, server: SshServer, tmp_path: Path) -> None:
    laptop.add_host("gpu2", server, settings='secrets = ["E3_TEST_SECRET"]')
    missing = laptop.run("run", "selftest", "--host", "gpu2")
    assert missing.code == 2
    assert "E3_TEST_SECRET" in missing.err
    value = "s3cr3t-b92c4f"
    done = laptop.run("run", "selftest", "--host", "gpu2", E3_TEST_SECRET=value)
    assert done.code == 0, done.err
    for folder in (server.home, laptop.store):
        for path in folder.rglob("*"):
            if path.is_file():
                assert value.encode() not in path.read_bytes(), path
    assert value not in done.out + done.err
