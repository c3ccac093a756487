"""An `exec_prefix` that enters another root: none of the host's paths is there, and its Python is at a path of its own.

Three ways in: with the host's processes in its /proc, with a pid namespace of its own, and with no /proc at all.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from remote_payload import processes
from remote_payload.schema import to_json
from remote_payload.schema.bench import BenchResult
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.record import from_json
from remote_payload.sglang_bench.job import run
from remote_payload.sglang_bench.leftovers import find_leftovers, warning_of
from tests.payload.rig import Rig, wait_for
from tests.payload.sglang_bench.conftest import HERE, RECORDED, STAND_IN, Site
from tests.support.answering_server import AnsweringServer

WAYS = {
    "same processes": (("unshare", "--mount"), "yes"),
    "own processes": (("unshare", "--mount", "--pid", "--fork"), "yes"),
    "no /proc": (("unshare", "--mount"), "no"),
}
PYTHON = f"/engine/bin/python{sys.version_info.major}.{sys.version_info.minor}"


class OtherRoot:
    """A folder with the stand-in for SGLang in it, and the words that make it the root."""

    def __init__(self, folder: Path, way: str) -> None:
        self.path = folder / "other_root"
        shutil.copytree(STAND_IN, self.path / "stand_in")
        shutil.copytree(RECORDED, self.path / "recorded")
        words, proc = WAYS[way]
        enter = str(HERE / "enter_root.sh")
        self.prefix = (*words, "sh", enter, str(self.path), sys.base_prefix, proc)
        self.has_own_processes, self.has_proc = "--pid" in words, proc == "yes"

    def job(self, behaviour: dict[str, Any] | None = None, **changes: Any) -> BenchJob:
        told = {"log": "/recorded/start.log", "info": "/recorded/server_info.json", "child": True}
        environment = ("PYTHONPATH=/stand_in", f"STAND_IN={json.dumps({**told, **(behaviour or {})})}")
        values = {"model": "/models/target", "draft": "/models/draft", "server_environment": environment}
        return BenchJob(**{**values, "server_python": PYTHON, "exec_prefix": self.prefix, **changes})

    def inside(self) -> list[int]:
        """Living processes whose root this is."""
        return [pid for pid in processes.all_pids() if processes.is_alive(pid) and root_of(pid) == str(self.path)]


def root_of(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/root")  # noqa: PTH115 - what it names is no path of ours
    except OSError:
        return None


@pytest.fixture(params=WAYS)
def other(request: pytest.FixtureRequest, tmp_path: Path) -> OtherRoot:
    made = OtherRoot(tmp_path, request.param)
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root may enter another root, by util-linux's unshare")
    tried = subprocess.run([*made.prefix, PYTHON, "-c", "pass"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"cannot enter another root here: {tried.stderr.strip()}")
    return made


def test_its_python_is_no_path_of_this_host(other: OtherRoot) -> None:
    code = f"import os; print(os.path.exists({str(HERE)!r}), os.path.exists('/stand_in'), os.getcwd())"
    said = subprocess.run([*other.prefix, PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["False", "True", "/"]
    assert not Path(PYTHON).exists()


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_server_there_is_started_and_ended_whole(other: OtherRoot, site: Site, stubborn: bool) -> None:
    running = site.start(other.job({"ignores_term": stubborn}))
    assert len(other.inside()) == 3  # its guard, the server, and a scheduler that ignores TERM
    assert {fact.name for fact in running.facts.arguments} >= {"speculative_num_draft_tokens"}
    assert (running.facts.pid or 0) < 20 or not other.has_own_processes
    stopped = running.stop()
    assert (stopped.stopped, stopped.survivors) == ("kill" if stubborn else "term", ())
    assert other.inside() == []


def launched(other: OtherRoot, rig: Rig) -> list[int]:
    """A run whose server there is up and never healthy."""
    job = other.job({"starting_s": 600.0, "ignores_term": True})
    rig.launch(rig.spec("r1", job_kind="bench", job_json=to_json(job)))
    log = rig.run("r1").path / "server-0.log"
    wait_for(lambda: log.exists() and "fired up" in log.read_text())
    found = other.inside()
    assert len(found) == 3
    return found


def test_a_cancel_reaches_it(other: OtherRoot, rig: Rig) -> None:
    launched(other, rig)
    answer = rig.cancel("r1", grace_s=0.5)
    assert (answer.state.phase, answer.survivors) == ("cancelled", ())
    assert other.inside() == []


def test_a_cut_rope_ends_it(other: OtherRoot, rig: Rig) -> None:
    """Worker and supervisor are gone: nobody is left to say anything.

    Without a /proc the guard sees no tree, and a scheduler that ignores TERM stays (a real one ends with its parent).
    It bears its run's mark, so a cancel finds it.
    """
    launched(other, rig)
    state = rig.running("r1")
    for pid in (state.supervisor_pid, state.worker_pid):
        os.kill(pid or 0, signal.SIGKILL)
    wait_for(lambda: len(other.inside()) == (0 if other.has_proc else 1), 30.0)
    if not other.has_proc:
        assert rig.cancel("r1", grace_s=0.3).ended
        assert other.inside() == []


def test_an_orphan_is_found_and_named_and_a_cancel_ends_it(other: OtherRoot, rig: Rig) -> None:
    """The guard is killed as well: in a pid namespace it was the first process, without which there is none."""
    found = launched(other, rig)
    state = rig.running("r1")
    guard = min(found, key=lambda pid: (processes.read_stat(pid) or processes.ProcessStat(pid, "X", 0, 0)).start_ticks)
    for victim in (state.supervisor_pid, guard, state.worker_pid):
        os.kill(victim or 0, signal.SIGKILL)
    if other.has_own_processes:
        wait_for(lambda: other.inside() == [], 10.0)
        return
    wait_for(lambda: len(other.inside()) == 2, 10.0)
    leftovers = [one for one in find_leftovers() if one.pid in other.inside()]
    assert {Path(one.run_directory or "").name for one in leftovers} == {"r1"}
    assert "`eagle3-remote cancel r1` ends what is left of ended runs" in (warning_of(tuple(leftovers)) or "")
    assert set(rig.cancel("r1", grace_s=0.3).ended) >= {one.pid for one in leftovers}
    assert other.inside() == []


def test_sglangs_own_tool_there_gets_its_prompts_and_its_line_comes_home(other: OtherRoot, tmp_path: Path) -> None:
    folder = tmp_path / "run" / "result"
    folder.mkdir(parents=True)
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"text": "Once"}\n')
    with AnsweringServer() as server:
        run(other.job(attach_url=server.url, prompts=str(prompts), harness="sglang"), folder, lambda _: None)
    (call,) = from_json(BenchResult, (folder / "bench.json").read_text()).harness
    assert (call.returncode, call.result_file) == (0, "harness-0.jsonl")
    assert json.loads((folder / "harness-0.jsonl").read_text())["asked"] == ["Once"] * 5
    assert list((other.path / "tmp").iterdir()) == []
