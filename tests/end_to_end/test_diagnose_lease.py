"""`diagnose --gpus`: one lease for all stages, whoever goes on with it; and stages that were cut short are run anew."""

import contextlib
import json
import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.demo.stage import DATA
from remote_payload.gpus.leases import lease_holders
from tests.support.answering_server import RECORDED_META, AnsweringServer, Reply
from tests.support.host_runs import kept_running, phase, state_file, wait_for_phase
from tests.support.laptop import Laptop
from tests.support.made_smi import TWO_GPUS, MadeSmi
from tests.support.sshd import ServerOptions, SshServer, running_sshd

TARGET = "/no/such/target"
PAIR = {"model": "target", "draft": "drafter_std", "rows": "rows"}
GPUS = ["GPU-aaaa", "GPU-bbbb"]
PASSED = Reply(chunks=[(0.0, 1), (0.0, 63)], meta=RECORDED_META)


@dataclass(frozen=True)
class Scene:
    """A host of two GPUs, and on it a server that answers."""

    laptop: Laptop
    host: SshServer
    smi: MadeSmi
    leases: Path
    server: AnsweringServer
    prompts: Path

    def words(self, run_id: str, *more: str) -> tuple[str, ...]:
        asked = (f"--attach-url={self.server.url}", f"--prompts={self.prompts}")
        return ("diagnose", "--host", "gpu1", "--run-id", run_id, *asked, *more)

    def spec(self, run_id: str) -> dict[str, Any]:
        return dict(json.loads(state_file(self.host, run_id).with_name("spec.json").read_text()))

    def runs(self, run_id: str) -> dict[str, str]:
        """Those of a diagnosis that its host has, with their phases."""
        found = state_file(self.host, run_id).parent.parent.glob(f"{run_id}.*")
        return {path.name: phase(self.host, path.name) for path in found}

    def holders(self) -> dict[str, str]:
        if not self.leases.exists():
            return {}
        return {gpu: who.run_id for gpu, who in lease_holders(self.leases, GPUS).items() if who is not None}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    base = tmp_path_factory.mktemp("lease")
    smi = MadeSmi(base)
    prompts = base / "prompts.jsonl"
    prompts.write_text('{"input_ids": [5, 6, 7], "n_prompt_tokens": 2}\n')
    options = ServerOptions(environment={"PATH": smi.path})
    with running_sshd(base / "gpu1", options) as host, AnsweringServer() as server:
        server.replies = [PASSED]
        server.info = {**server.info, "model_path": TARGET}
        (base / "laptop").mkdir()
        laptop = Laptop(base / "laptop")
        laptop.add_host("gpu1", host, settings=f'leases = "{base}/leases"')
        yield Scene(laptop, host, smi, base / "leases", server, prompts)
        laptop.close()


@pytest.mark.slow
def test_one_lease_for_all_stages_also_when_the_laptop_goes_and_comes(scene: Scene) -> None:
    """The capture fails, for this server cannot capture; the next stage finds the same GPU."""
    words = scene.words("l1", f"--model={TARGET}", "--gpus=1")
    first = scene.laptop.start(*words)
    with kept_running(scene.host, "l1.serve"):
        assert scene.holders() == {"GPU-aaaa": "l1.hold"}
        top = scene.laptop.run("hosts", "top", "gpu1").out
        first.send_signal(signal.SIGINT)
        left = scene.laptop.finish(first)
        assert left.code == 9
        # Of the diagnosis, not of the one stage that was looked at.
        said = "the same command, or `eagle3-remote diagnose --host gpu1 --run-id l1`, goes on with the diagnosis"
        assert said in " ".join(left.err.split())
        assert phase(scene.host, "l1.hold") == "running"
        again = scene.laptop.start(*words)
    done = scene.laptop.finish(again)
    assert done.code == 30, done.err  # what its capture says
    assert "diagnosis l1" in top
    assert scene.runs("l1") == {"l1.hold": "succeeded", "l1.capture": "failed", "l1.serve": "succeeded"}
    assert [scene.spec(run_id)["within"] for run_id in ("l1.capture", "l1.serve")] == ["l1.hold"] * 2
    assert scene.holders() == {}
    listed = scene.laptop.run("runs", "list", "--tag", "l1").out
    assert "GPUs of l1" in listed


def test_a_stage_that_was_cut_short_is_run_anew(scene: Scene) -> None:
    first = scene.laptop.start(*scene.words("c1", "--gpus=1"))
    with contextlib.suppress(ProcessLookupError), kept_running(scene.host, "c1.serve"):  # it is gone after the cancel
        assert scene.holders() == {"GPU-aaaa": "c1.hold"}
        assert scene.laptop.run("cancel", "c1.serve", "--host", "gpu1", "--grace-s", "0").code == 0
    assert scene.laptop.finish(first).code == 24
    assert scene.runs("c1") == {"c1.hold": "succeeded", "c1.serve": "cancelled"}
    done = scene.laptop.run("diagnose", "--host", "gpu1", "--run-id", "c1", "--json")  # as it was asked before
    assert done.objects[-1]["stages"]["serve"] == {"run_id": "c1.serve.2", "phase": "succeeded", "failure": None}
    told = [line["text"] for line in done.objects[:-1] if line.get("name") == "again"]
    why = "from its beginning: a server's start and half of its requests are no measurement"
    assert told == [f"run c1.serve came to nothing (somebody cancelled it): run anew as c1.serve.2, {why}"]
    assert scene.spec("c1.serve.2")["within"] == "c1.hold.2"
    assert scene.holders() == {}


@pytest.mark.slow
def test_the_fix_is_served_on_the_same_lease(scene: Scene) -> None:
    """No SGLang here: both servers fail, each on the leased GPU."""
    story = shutil.copytree(DATA, scene.host.home / "story")
    config = json.loads((story / "drafter_std" / "config.json").read_text())
    config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = [-1, 1, 3]
    (story / "drafter_std" / "config.json").write_text(json.dumps(config))
    folders = [f"--{name}={story / place}" for name, place in PAIR.items()]
    more = ("--states=embed,2,4,5", "--apply", "--server-python=/no/such/python", "--gpus=1")
    done = scene.laptop.run("diagnose", "--host", "gpu1", "--run-id", "a1", *folders, *more, "--json")
    assert done.code == 0, done.err
    assert done.objects[-1]["applied"]["folder"].endswith("-for-sglang")
    stages = ("a1.offline", "a1.serve", "a1.fixed.serve")
    assert set(scene.runs("a1")) == {"a1.hold", *stages}
    assert [scene.spec(run_id)["within"] for run_id in stages] == ["a1.hold"] * 3


@pytest.mark.slow
def test_a_stage_that_failed_stands_until_it_is_asked_for_again(scene: Scene) -> None:
    missing = ("--prompts=/no/such/prompts",)
    assert scene.laptop.run(*scene.words("f1"), *missing).code == 20
    assert scene.laptop.run(*scene.words("f1"), *missing).code == 20
    assert scene.runs("f1") == {"f1.serve": "failed"}
    assert scene.laptop.run(*scene.words("f1"), *missing, "--again").code == 20
    assert scene.runs("f1") == {"f1.serve": "failed", "f1.serve.2": "failed"}


def test_without_free_gpus_nothing_is_run(scene: Scene) -> None:
    scene.smi.say(TWO_GPUS, apps="GPU-aaaa, 99999999, 100\nGPU-bbbb, 99999998, 100\n")
    try:
        done = scene.laptop.run(*scene.words("n1", f"--model={TARGET}", "--gpus=1"))
    finally:
        scene.smi.say(TWO_GPUS)
    assert done.code == 14, done.err
    assert "1 GPU not free" in done.err
    assert scene.runs("n1") == {"n1.hold": "failed"}


@pytest.mark.slow
def test_who_stops_waiting_leaves_the_queue(scene: Scene) -> None:
    scene.smi.say(TWO_GPUS, apps="GPU-aaaa, 99999999, 100\nGPU-bbbb, 99999998, 100\n")
    try:
        waiting = scene.laptop.start(*scene.words("w1", "--gpus=1", "--when-free"))
        assert waiting.stderr is not None
        assert any("state: queued - waits for 1 GPU: GPU 0 used by" in line for line in waiting.stderr)
        waiting.send_signal(signal.SIGINT)
        done = scene.laptop.finish(waiting)
    finally:
        scene.smi.say(TWO_GPUS)
    assert (done.code, "the place in the queue is given up" in done.err) == (9, True)
    assert scene.runs("w1") == {"w1.hold": "cancelled"}


@pytest.mark.slow
def test_the_lease_of_a_laptop_that_died_waiting_is_taken_over(scene: Scene) -> None:
    scene.smi.say(TWO_GPUS, apps="GPU-aaaa, 99999999, 100\nGPU-bbbb, 99999998, 100\n")
    try:
        dying = scene.laptop.start(*scene.words("t1", "--gpus=1", "--when-free"))
        wait_for_phase(scene.host, "t1.hold", "queued")
        dying.kill()
        scene.laptop.finish(dying)
        assert phase(scene.host, "t1.hold") == "queued"
        again = scene.laptop.start(*scene.words("t1", "--gpus=1", "--when-free"))
        assert again.stderr is not None
        assert any("lease: t1.hold is taken over" in line for line in again.stderr)
    finally:
        scene.smi.say(TWO_GPUS)
    done = scene.laptop.finish(again)
    assert done.code == 3, done.err  # one request tells nothing
    assert scene.runs("t1") == {"t1.hold": "succeeded", "t1.serve": "succeeded"}


@pytest.mark.slow
def test_a_lease_that_is_lost_is_taken_anew_for_the_next_stage(scene: Scene) -> None:
    """Supervisor and worker of the hold are killed under a stage, which goes on; gc takes all of it away afterwards."""
    first = scene.laptop.start(*scene.words("g1", f"--model={TARGET}", "--gpus=1"))
    with kept_running(scene.host, "g1.capture"):
        state = json.loads(state_file(scene.host, "g1.hold").read_text())
        for pid in (state["supervisor_pid"], state["worker_pid"]):
            os.kill(pid, signal.SIGKILL)
    done = scene.laptop.finish(first)
    assert done.code == 30, done.err
    assert "g1.hold is over (lost); the GPUs are asked for again" in done.err
    assert scene.spec("g1.serve")["within"] == "g1.hold.2"
    assert scene.runs("g1") == {
        "g1.hold": "lost",
        "g1.hold.2": "succeeded",
        "g1.capture": "failed",
        "g1.serve": "succeeded",
    }
    told = scene.laptop.run("attach", "g1.hold", "--host", "gpu1")
    assert (told.code, "its supervisor is gone" in told.err) == (25, True)
    shown = scene.laptop.run("runs", "show", "g1.hold.2")
    assert (shown.code, "hold, succeeded" in shown.out) == (0, True)
    freed = scene.laptop.run("gc", "--host", "gpu1", "--older-than", "0s", "--runs", "--apply")
    assert freed.code == 0, freed.err
    assert scene.runs("g1") == {}


@pytest.mark.slow
def test_who_cancels_the_lease_ends_the_diagnosis(scene: Scene) -> None:
    first = scene.laptop.start(*scene.words("x1", f"--model={TARGET}", "--gpus=1"))
    wait_for_phase(scene.host, "x1.capture", "running")
    assert scene.laptop.run("cancel", "x1.hold", "--host", "gpu1", "--grace-s", "0").code == 0
    done = scene.laptop.finish(first)
    assert done.code == 24, done.err
    assert scene.runs("x1") == {"x1.hold": "cancelled", "x1.capture": "cancelled"}
    assert "somebody cancelled the lease" in done.out
