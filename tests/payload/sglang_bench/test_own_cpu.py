"""What a client cost itself, and what it lacked: measured beside a real process on the same core."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from remote_payload.sglang_bench.own_cpu import OwnCpu

SCHEDSTAT = Path("/proc/thread-self/schedstat")


def _busy(seconds: float) -> None:
    until_s = time.thread_time() + seconds
    while time.thread_time() < until_s:
        pass


def _on(core: int, found: list[OwnCpu]) -> None:
    os.sched_setaffinity(0, {core})  # this thread alone
    own = OwnCpu()
    _busy(0.2)
    own.stop()
    found.append(own)


@pytest.mark.skipif(not SCHEDSTAT.exists(), reason="this kernel does not count how long a thread waits for a core")
def test_a_core_that_somebody_else_uses() -> None:
    core = min(os.sched_getaffinity(0))
    rival = subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile 1: pass"])
    try:
        found: list[OwnCpu] = []
        thread = threading.Thread(target=_on, args=(core, found))
        thread.start()
        thread.join()
    finally:
        rival.kill()
        rival.wait()
    assert found[0].cpu_s >= 0.2
    assert found[0].waited_s is not None
    assert found[0].waited_s > 0.05


def test_a_kernel_that_does_not_tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("remote_payload.sglang_bench.own_cpu._SCHEDSTAT", tmp_path / "absent")
    own = OwnCpu()
    own.stop()
    assert own.waited_s is None
