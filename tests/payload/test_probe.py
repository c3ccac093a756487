"""The probe on this machine, and its parts on made ones."""

import os
import sys
import time
from pathlib import Path

import pytest

from remote_payload import bounded, login, pythons, storage
from remote_payload import probe as probe_module
from remote_payload.gpus.facts import GpuFacts, look_at_gpus, parse_gpus
from remote_payload.schema import Frame, HostFacts, ProbeRequest
from tests.payload.rig import NONCE, Rig, fill
from tests.support.patience import Within


def probe(rig: Rig, root: str | None = None, pythons: tuple[str, ...] = (), path: str = "/usr/bin:/bin") -> HostFacts:
    request = ProbeRequest(nonce=NONCE, root=root or str(rig.root), pythons=pythons)
    (frame,) = rig.call("probe", request, env={**os.environ, "PATH": path})
    return frame.facts  # type: ignore[union-attr,no-any-return]


def tool(folder: Path, name: str, body: str) -> Path:
    folder.mkdir(exist_ok=True)
    script = folder / name
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return script


def test_facts_of_this_machine(rig: Rig) -> None:
    facts = probe(rig, pythons=(sys.executable, "/nowhere/python"))
    assert facts.hostname == os.uname().nodename
    assert abs(facts.time_unix_s - time.time()) < 10
    assert (facts.root_writable, facts.root_problem) == (True, None)
    assert facts.cpu_count == len(os.sched_getaffinity(0))
    assert (facts.memory_total_bytes or 0) > (facts.memory_available_bytes or 0) > 0
    assert (facts.disk_free_bytes or 0) > 0
    here, absent = facts.pythons
    assert here.version == ".".join(map(str, sys.version_info[:3]))
    assert (here.torch, here.safetensors) != (None, None)
    assert absent.problem == "No such file or directory"


def test_a_user_who_stands_in_no_passwd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    monkeypatch.setenv("HOME", str(tmp_path))
    frames: list[Frame] = []
    probe_module.probe(ProbeRequest(nonce=NONCE, root="~/root", pythons=(sys.executable,)), frames.append)
    (frame,) = frames
    assert (frame.facts.user, frame.facts.login_shell) == ("54321", None)  # type: ignore[union-attr]
    assert frame.facts.root == f"{tmp_path.resolve()}/root"  # type: ignore[union-attr]


def test_a_root_that_does_not_exist_yet_is_judged_by_its_parent(rig: Rig) -> None:
    facts = probe(rig, root=f"{rig.root}/not/yet", pythons=(sys.executable,))
    assert facts.root_writable
    assert not (rig.root / "not").exists()


def test_a_file_in_the_way_of_the_root_is_a_problem(rig: Rig) -> None:
    (rig.root / "file").write_text("")
    facts = probe(rig, root=f"{rig.root}/file/root", pythons=(sys.executable,))
    assert (facts.root_writable, facts.root_problem) == (False, f"a file is in the way: {rig.root.resolve()}/file")


def test_a_disk_without_room_or_right_to_run(small_disk: Path) -> None:
    facts = storage.look_at(small_disk / "root")
    assert (facts.problem, facts.noexec, facts.filesystem) == (None, True, "tmpfs")
    fill(small_disk / "filler")
    full = storage.look_at(small_disk)
    assert full.problem == f"No space left on device: {small_disk}"
    assert full.free_bytes == 0


def test_without_a_request_likely_interpreters_are_found_once_each(tmp_path: Path) -> None:
    for name in ("venv", "miniconda3/envs/sgl", "project/.venv"):
        binary = tmp_path / name / "bin"
        binary.mkdir(parents=True)
        (binary / "python").symlink_to(sys.executable)
        (binary / "python3").symlink_to("python")
        (binary.parent / "pyvenv.cfg").write_text("")
    environment = {"VIRTUAL_ENV": f"{tmp_path}/venv", "PATH": f"{tmp_path}/venv/bin:/usr/bin"}
    found = pythons.likely_pythons(environment, tmp_path)
    assert found[0] == f"{tmp_path}/venv/bin/python"
    ours = [name for name in found if name.startswith(str(tmp_path))]
    assert sorted(ours) == [
        f"{tmp_path}/miniconda3/envs/sgl/bin/python",
        f"{tmp_path}/project/.venv/bin/python",
        f"{tmp_path}/venv/bin/python",
    ]


def test_interpreters_that_hang_lie_or_fail_are_said_to(tmp_path: Path) -> None:
    hung = tool(tmp_path, "hung", "exec sleep 60")
    liar = tool(tmp_path, "liar", "echo hello")
    broken = tool(tmp_path, "broken", "echo 'libpython.so: not found' >&2; exit 127")
    with Within():  # one patience for all of them: the hung one costs it, and a busy machine's real one fits in
        facts = pythons.examine([str(hung), str(liar), str(broken), sys.executable], deadline_s=5.0)
    assert [fact.problem for fact in facts] == [
        "gave no answer in time",
        "did not answer as a Python does: hello",
        "did not answer as a Python does: libpython.so: not found",
        None,
    ]


def test_torch_and_its_cuda_are_read_without_importing_it(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "torch").mkdir(parents=True)
    (site / "torch" / "__init__.py").write_text("raise SystemExit('imported')")
    (site / "torch" / "version.py").write_text("__version__ = '2.9.1+cu128'\ncuda: Optional[str] = '12.8'\n")
    (site / "torch-2.9.1+cu128.dist-info").mkdir()
    (site / "torch-2.9.1+cu128.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.9.1+cu128\n")
    python = tool(tmp_path, "py", f'PYTHONPATH={site} exec "{sys.executable}" -S "$@"')
    (facts,) = pythons.examine([str(python)])
    assert (facts.torch, facts.torch_cuda, facts.safetensors, facts.problem) == ("2.9.1+cu128", "12.8", None, None)


def test_no_tool_is_another_answer_than_a_hung_or_failing_one(rig: Rig, tmp_path: Path) -> None:
    assert probe(rig, pythons=(sys.executable,)).gpu_answer == "no_nvidia_smi"
    tool(tmp_path / "failing", "nvidia-smi", "echo 'Driver/library version mismatch'; exit 18")
    facts = probe(rig, pythons=(sys.executable,), path=f"{tmp_path}/failing:/usr/bin:/bin")
    assert facts.gpu_answer == "failed"
    assert "exit code 18: Driver/library version mismatch" in (facts.gpu_problem or "")


def test_a_hung_tool_costs_its_deadline_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, "nvidia-smi", "trap '' TERM; sleep 60 & wait")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with Within():
        assert look_at_gpus(deadline_s=0.3).answer == "hung"


def test_gpus_and_who_uses_them() -> None:
    lines = [
        "0, GPU-aaaa, NVIDIA H200, 143771, 1024, 37, 570.86.15",
        "1, GPU-bbbb, NVIDIA H200, 143771, [N/A], [Not Supported], 570.86.15",
    ]
    first, second = parse_gpus(lines, [f"GPU-aaaa, {os.getpid()}, 1000", "GPU-aaaa, 99999999, [N/A]"])
    assert (first.memory_total_bytes, first.memory_used_bytes) == (143771 * 2**20, 1024 * 2**20)
    assert (first.utilization_percent, second.utilization_percent, second.memory_used_bytes) == (37.0, None, None)
    mine, gone = first.processes
    assert mine.command
    assert "python" in mine.command
    assert mine.user
    assert (gone.user, gone.command, gone.used_memory_bytes) == (None, None, None)
    assert second.processes == ()
    with pytest.raises(ValueError, match="unpack"):
        parse_gpus(["not what we asked for"], [])


LISTED = "0, GPU-aaaa, NVIDIA H200, 143771, 10, 0, 570.86.15"


@pytest.mark.parametrize(
    ("said", "code", "problem"),
    [
        ("echo 'WARNING: infoROM is corrupted at gpu 0000:00:1E.0'", 14, "infoROM is corrupted"),
        ("echo 'Unable to determine the device handle for GPU2: 0000:5E:00.0: Unknown Error'", 0, "device handle"),
        ("echo '# a, word, of, the, driver, with, commas'", 0, "# a, word"),
        ("echo 'a library was not found' >&2", 0, None),
        ("echo 'Unable to determine the device handle for GPU1: 0000:5F:00.0: GPU is lost.'", 15, "GPU is lost"),
    ],
)
def test_what_else_it_says_takes_no_gpu_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, code: int, problem: str | None
) -> None:
    answer = f'case "$*" in *query-gpu*) echo "{LISTED}" ;; *) echo "GPU-aaaa, [Not Found], 20" ;; esac'
    tool(tmp_path, "nvidia-smi", f"{said}\n{answer}\nexit {code}")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    facts = look_at_gpus()
    assert (facts.answer, [gpu.uuid for gpu in facts.gpus]) == ("ok", ["GPU-aaaa"])
    assert (facts.problem is None) if problem is None else (problem in (facts.problem or ""))
    # Somebody is on it, whoever it is: it is not free.
    (process,) = facts.gpus[0].processes
    assert (process.pid, process.used_memory_bytes) == (None, 20 * 2**20)


@pytest.mark.parametrize("code", [0, 6])
def test_a_driver_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    tool(tmp_path, "nvidia-smi", f"echo 'No devices were found'; exit {code}")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert look_at_gpus() == GpuFacts(answer="ok")


def test_an_answer_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "LONGEST_BYTES", 1000)
    words = ["sh", "-c", "yes 'a word and a word' | head -c 100000"]
    assert bounded.BoundedChild(words).finish(time.monotonic() + 60) == (0, ("a word and a word\n" * 56)[:1000])
    tool(tmp_path, "nvidia-smi", words[-1])
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    facts = look_at_gpus()
    assert facts.answer == "failed"
    assert len(facts.problem or "") < 1000


def test_an_answer_without_a_row_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, "nvidia-smi", "echo 'something else altogether'")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    facts = look_at_gpus()
    assert facts.answer == "failed"
    assert "something else altogether" in (facts.problem or "")


def test_what_logind_does_at_logout(tmp_path: Path) -> None:
    running = tmp_path / "run"
    system, etc = tmp_path / "usr", tmp_path / "etc"
    assert login.kills_user_processes([system, etc], running) is None
    (running / "seats").mkdir(parents=True)
    assert login.kills_user_processes([system, etc], running) is False
    for folder in (system, etc):
        (folder / "logind.conf.d").mkdir(parents=True)
    (etc / "logind.conf").write_text("[Login]\n#KillUserProcesses=no\nKillUserProcesses = yes\n")
    assert login.kills_user_processes([system, etc], running) is True
    (system / "logind.conf.d" / "50-keep.conf").write_text("[Login]\nKillUserProcesses=no\n")
    assert login.kills_user_processes([system, etc], running) is False
    (etc / "logind.conf.d" / "50-keep.conf").write_text("")
    assert login.kills_user_processes([system, etc], running) is True


def test_who_lingers(tmp_path: Path) -> None:
    assert login.lingers("me", tmp_path / "none" / "linger") is None
    (tmp_path / "linger").mkdir()
    assert login.lingers("me", tmp_path / "linger") is False
    (tmp_path / "linger" / "me").touch()
    assert login.lingers("me", tmp_path / "linger") is True
