"""A server's process behind an `exec_prefix` that enters other namespaces, and what becomes of it when we go away."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from remote_payload import processes
from remote_payload.failure import JobFailure
from remote_payload.sglang_bench.launch import Order, Process
from tests.payload.sglang_bench.conftest import Site
from tests.support.patience import PATIENCE_S

NAMESPACES = ("unshare", "--pid", "--fork", "--mount", "--mount-proc")
ROOT = Path(__file__).parents[3]
BLIND = ("unshare", "--pid", "--fork")
"""Another pid namespace whose /proc is still the outer one's: pids there are other processes'."""
SERVER = (
    "import os, signal, subprocess, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN) if 'stubborn' in sys.argv else None\n"
    "child = 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)'\n"
    "mark = sys.argv[1]\n"
    "subprocess.Popen([sys.executable, '-c', child, mark], start_new_session=True)\n"
    "print('started as', os.getpid(), flush=True)\n"
    "time.sleep(300)\n"
)


def can(prefix: tuple[str, ...]) -> bool:
    if shutil.which(prefix[0]) is None:
        return False
    return subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0


def bearing(mark: str) -> list[int]:
    """Living processes that have `mark` among their words, but for guards (whose order names it on stdin only)."""
    found = []
    for pid in processes.all_pids():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        if mark in words and processes.is_alive(pid):
            found.append(pid)
    return found


def eventually(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
    until_s = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.02)
    return True


def process(tmp_path: Path, prefix: tuple[str, ...], *words: str) -> tuple[Process, str]:
    mark = f"mark-of-{tmp_path.name}"
    argv = (sys.executable, "-c", SERVER, mark, *words)
    return Process(prefix, Order(argv=argv, environment={"PYTHONUNBUFFERED": "1"}), tmp_path / "server-0.log"), mark


@pytest.mark.parametrize("prefix", [(), ("env", "A=b"), ("setsid", "--wait"), NAMESPACES, BLIND])
@pytest.mark.parametrize("words", [(), ("stubborn",)])
def test_the_whole_tree_ends_wherever_it_is(tmp_path: Path, prefix: tuple[str, ...], words: tuple[str, ...]) -> None:
    if prefix and not can(prefix):
        pytest.skip(f"cannot enter another namespace here: {' '.join(prefix)}")
    started, mark = process(tmp_path, prefix, *words)
    assert eventually(lambda: len(bearing(mark)) == 2)
    bystander = subprocess.Popen(["sleep", "60"])
    ended = started.end(0.5)
    assert ended.how == ("kill" if words else "term")
    assert ended.survivors == ()
    assert bearing(mark) == []
    assert bystander.poll() is None  # nobody else was meant
    bystander.kill()
    bystander.wait()


def test_it_runs_in_the_namespace_of_its_prefix(tmp_path: Path) -> None:
    if not can(NAMESPACES):
        pytest.skip("cannot enter another namespace here")
    started, _ = process(tmp_path, NAMESPACES)
    assert eventually(lambda: any(line.startswith("started as") for line in started.log.tail))
    assert int(started.log.tail[-1].split()[-1]) < 20  # a pid of its own, small namespace
    started.end(0.2)


@pytest.mark.parametrize("prefix", [(), NAMESPACES])
def test_a_server_ends_when_nobody_holds_it_any_more(tmp_path: Path, prefix: tuple[str, ...]) -> None:
    """The worker is killed: nobody can say `stop`; the cut rope does."""
    if prefix and not can(prefix):
        pytest.skip("cannot enter another namespace here")
    code = (
        "import time\nfrom pathlib import Path\nfrom tests.payload.sglang_bench.test_launch import process\n"
        f"process(Path({str(tmp_path)!r}), {prefix!r})\ntime.sleep(300)\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    mark = f"mark-of-{tmp_path.name}"
    assert eventually(lambda: len(bearing(mark)) == 2)
    worker.kill()
    worker.wait()
    assert eventually(lambda: bearing(mark) == [])


def test_what_a_cancel_signals_ends_the_server(tmp_path: Path) -> None:
    """`cancel` sends TERM to everyone below the supervisor: to the guard as to its server."""
    started, mark = process(tmp_path, ())
    assert eventually(lambda: len(bearing(mark)) == 2)
    processes.signal_all(started.tree(), signal.SIGTERM)
    assert eventually(lambda: bearing(mark) == [])
    assert eventually(lambda: started.has_ended)
    assert started.end(0.1).survivors == ()


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        (("/nowhere/docker", "exec", "-i", "x"), "No such file or directory: /nowhere/docker"),
        (("false",), r"it was not started by: false "),
        (("sh", "-c", "echo Error: No such container: x >&2; exit 1"), "No such container: x"),
    ],
)
def test_a_prefix_that_leads_nowhere_is_named(tmp_path: Path, prefix: tuple[str, ...], words: str) -> None:
    with pytest.raises(JobFailure, match=words):
        process(tmp_path, prefix)


def test_a_server_behind_a_prefix_becomes_ready(site: Site) -> None:
    if not can(NAMESPACES):
        pytest.skip("cannot enter another namespace here")
    running = site.start(site.job({"child": True, "ignores_term": True}, exec_prefix=NAMESPACES))
    assert running.facts.argv[:5] == NAMESPACES
    assert running.facts.pid is not None
    assert running.facts.pid < 20
    assert (running.stop().stopped, running.facts.survivors) == ("kill", ())


def test_a_server_in_another_network_is_told_from_a_slow_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container with a network of its own."""
    prefix = ("unshare", "--net")
    if not can(prefix):
        pytest.skip("cannot enter another namespace here")
    monkeypatch.setattr("remote_payload.sglang_bench.ready.UNREACHABLE_S", 1.0)
    job = site.job(exec_prefix=prefix, server_args=("--host", "0.0.0.0"))
    with pytest.raises(JobFailure, match=r"cannot be reached from this host \(unreachable\)") as caught:
        site.start(job)
    assert "--network host" in (caught.value.failure.hint or "")
    assert "Uvicorn running on" in caught.value.failure.details[0]


def test_output_is_kept_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remote_payload.sglang_bench.log.HEAD_BYTES", 2000)
    monkeypatch.setattr("remote_payload.sglang_bench.log.TAIL_BYTES", 1000)
    code = "for i in range(2000): print('line', i)"
    started = Process((), Order(argv=(sys.executable, "-c", code)), tmp_path / "server-0.log")
    assert eventually(lambda: started.has_ended)
    started.end(0.1)
    kept = {path.name: path.read_text().splitlines() for path in tmp_path.glob("server-0*")}
    assert set(kept) == {"server-0.log", "server-0.tail.log", "server-0.tail.1.log"}
    assert sum(path.stat().st_size for path in tmp_path.glob("server-0*")) <= 4000
    assert kept["server-0.log"][0] == "line 0"
    assert kept["server-0.tail.log"][-1] == "line 1999"
    assert int(kept["server-0.tail.1.log"][-1].split()[1]) + 1 == int(kept["server-0.tail.log"][0].split()[1])
