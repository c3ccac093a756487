"""Strangers on leased GPUs while a run is measured, and an nvidia-smi that hangs: told once, asked once."""

import os
import subprocess
from pathlib import Path

import pytest

from remote_payload.gpus.facts import GpuFacts, parse_gpus
from remote_payload.schema.waiting import LEASED
from remote_payload.sglang_bench import strays
from remote_payload.sglang_bench.gpu_memory import GpuMemory, PatientLook
from remote_payload.sglang_bench.machine_samples import Machine
from remote_payload.sglang_bench.strays import Strays

GPUS = ["0, GPU-a, H200, 100, 50, 3, 570.1", "1, GPU-b, H200, 100, 50, 3, 570.1"]


def facts(*users: tuple[str, int]) -> GpuFacts:
    return GpuFacts(answer="ok", gpus=parse_gpus(GPUS, [f"{uuid}, {pid}, 10" for uuid, pid in users]))


def test_a_stranger_who_comes_while_it_goes_on_is_told_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(LEASED, "GPU-a")
    monkeypatch.setattr(strays, "INTERVAL_S", 0.0)
    child = subprocess.Popen(["sleep", "600"])
    ours = ("GPU-a", child.pid), ("GPU-a", os.getpid()), ("GPU-b", 1)
    looks = [facts(*ours), facts(*ours, ("GPU-a", 1)), facts(*ours, ("GPU-a", 1))]
    told: list[tuple[str, str]] = []
    watch = Strays(lambda *words: told.append(words), look=lambda: looks.pop(0))
    try:
        watch.look_when_due()
        assert told == []
        watch.look_when_due()
        watch.look_when_due()
    finally:
        child.kill()
        child.wait()
    ((name, words),) = told
    assert name == "leased_gpu_shared"
    assert "pid 1 (" in words
    assert "uses GPU 0, which is leased to this run" in words
    looks.append(facts(("GPU-a", 1)))
    told.clear()
    machine = Machine(tmp_path, lambda *_: None, Strays(lambda *words: told.append(words), look=lambda: looks[0]))
    with machine.sampling():
        pass
    machine.close()
    assert len(told) == 1


def test_nothing_is_looked_for_where_nothing_is_leased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LEASED, raising=False)
    Strays(lambda *_: None, look=lambda: pytest.fail("nobody asked")).look_when_due()


def test_a_hung_tool_is_asked_once_by_all_starts() -> None:
    asked: list[bool] = []

    def look(*, parts: bool) -> GpuFacts:
        asked.append(parts)
        return GpuFacts(answer="hung", problem="no answer") if len(asked) == 2 else facts()

    patient = PatientLook(look)
    assert patient().answer == "ok"
    for _ in range(3):
        memory = GpuMemory(look=patient)
        memory.begin()
        assert memory.left_bytes() is None
    assert patient.with_parts().answer == "hung"
    assert asked == [False, False]
