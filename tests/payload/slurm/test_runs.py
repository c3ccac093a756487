"""Runs under a real Slurm: from the login node's verbs to the end, whatever Slurm does to the job."""

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from remote_payload import processes
from remote_payload.schema import CancelAnswer, CancelRequest, FollowRequest, RunState, SelftestJob
from remote_payload.schema.slurm import SlurmSettings
from remote_payload.schema.waiting import Waiting
from tests.payload.rig import NONCE, Rig, of_kind, wait_for
from tests.support.slurm import PROVES, Slurm, until

pytestmark = pytest.mark.infra

SETTINGS = SlurmSettings(poll_s=1.0, answer_s=10.0)


def launch(rig: Rig, run_id: str, job: SelftestJob | None = None, **changes: Any) -> RunState:
    secrets = changes.pop("secrets", None)
    spec = rig.spec(run_id, job, **{"slurm": SETTINGS, "secret_names": tuple(secrets or ()), **changes})
    (frame,) = of_kind(rig.launch(spec, secrets=secrets), "launched")
    return frame.state


def state_of(rig: Rig, run_id: str) -> RunState:
    (state,) = rig.status(run_id).states
    return state


def ended(rig: Rig, run_id: str, patience_s: float = 60.0) -> RunState:
    until(lambda: state_of(rig, run_id).is_terminal, f"the end of {run_id}", patience_s)
    return state_of(rig, run_id)


def job_of(rig: Rig, run_id: str) -> str:
    job = rig.state(run_id).slurm
    assert job is not None
    return job.job_id


def cancel(rig: Rig, run_id: str, grace_s: float = 5.0) -> CancelAnswer:
    request = CancelRequest(nonce=NONCE, root=str(rig.root), run_id=run_id, grace_s=grace_s)
    answer: CancelAnswer = of_kind(rig.call("cancel", request), "cancel")[0].answer
    return answer


def started(rig: Rig, run_id: str) -> RunState:
    wait_for(lambda: rig.state(run_id).phase == "running")
    return rig.state(run_id)


def test_a_run_goes_through_slurm_to_its_result(rig: Rig, slurm: Slurm) -> None:
    frames = rig.launch(rig.spec("r1", SelftestJob(result_bytes=10), slurm=SETTINGS), follow=True)
    states = [frame.state for frame in of_kind(frames, "state")]
    assert of_kind(frames, "launched")[0].state.phase == "queued"
    assert [states[0].phase, states[-1].phase] == ["queued", "succeeded"]
    assert of_kind(frames, "manifest")[0].manifest.files
    final = rig.state("r1")
    assert final.slurm is not None
    assert (final.slurm.node or "").startswith("node")
    assert final.slurm.restarts == 0
    assert not processes.is_running(final.supervisor_pid or 0, final.supervisor_start_ticks or 0)
    shown = slurm.run("scontrol", "-o", "show", "job", final.slurm.job_id)
    assert "JobName=e3r.r1 " in shown


def test_a_failing_job_is_told_in_its_own_words(rig: Rig) -> None:
    launch(rig, "r1", SelftestJob(fail=True))
    state = ended(rig, "r1")
    assert state.failure is not None
    assert (state.phase, state.failure.message) == ("failed", "selftest was asked to fail")


def test_what_sbatch_refuses_is_told_in_its_words_and_leaves_nothing(rig: Rig) -> None:
    spec = rig.spec("r1", slurm=SlurmSettings(partition="nowhere"))
    (error,) = of_kind(rig.launch(spec, exit_code=1), "error")
    assert error.code == "supervisor_did_not_start"
    assert "invalid partition specified: nowhere" in error.message
    assert not rig.run("r1").path.exists()


def test_secrets_reach_the_worker_and_neither_slurm_nor_any_file_that_stays(rig: Rig, slurm: Slurm) -> None:
    tell = "import json; (RUN / 'result' / 'seen').write_text(str(len(os.environ['TOKEN'])))\n"
    tell += "time.sleep(float(os.environ['SLEEP']))\n"
    python = rig.worker("teller", tell)
    launch(rig, "r1", python=python, secrets={"TOKEN": "s3cr3t-of-nobody"}, environment={"SLEEP": "2"})
    started(rig, "r1")
    job = job_of(rig, "r1")
    asked = [slurm.run("scontrol", "-o", "show", "job", job), slurm.run("scontrol", "write", "batch_script", job, "-")]
    spool = [path.read_bytes() for path in (slurm.folder / "state").rglob("*") if path.is_file()]
    assert not any("s3cr3t" in text for text in asked)
    assert not any(b"s3cr3t" in data for data in spool)
    keeps = [path for path in rig.root.rglob("*") if path.is_file() and b"s3cr3t" in path.read_bytes()]
    assert [path.parent.name for path in keeps] == ["secrets"]
    assert keeps[0].stat().st_mode & 0o077 == 0
    assert ended(rig, "r1").phase == "succeeded"
    assert (rig.run("r1").result / "seen").read_text() == "16"
    assert not keeps[0].exists()


def test_a_run_starts_at_its_time_and_after_another_run(rig: Rig, slurm: Slurm) -> None:
    launch(rig, "r1", SelftestJob(duration_s=60))
    launch(rig, "r2", waiting=Waiting(after=("r1",)))
    launch(rig, "r3", waiting=Waiting(start_unix_s=4e9))
    until(lambda: "Dependency" in (state_of(rig, "r2").note or ""), "the dependency")
    assert (state_of(rig, "r2").phase, state_of(rig, "r3").phase) == ("queued", "queued")
    until(lambda: "BeginTime" in (state_of(rig, "r3").note or ""), "the time")
    started(rig, "r1")
    assert cancel(rig, "r1", grace_s=1).state.phase == "cancelled"
    assert ended(rig, "r2").phase == "succeeded"
    waits = cancel(rig, "r3")
    assert (waits.state.phase, waits.unproved) == ("cancelled", None)
    assert cancel(rig, "r3").was_terminal


def test_gpus_are_asked_of_slurm_and_seen_by_the_worker(rig: Rig) -> None:
    python = rig.worker("teller", "(RUN / 'result' / 'seen').write_text(os.environ['CUDA_VISIBLE_DEVICES'])\n")
    launch(rig, "r1", python=python, waiting=Waiting(gpus=2))
    assert ended(rig, "r1").phase == "succeeded"
    assert (rig.run("r1").result / "seen").read_text() == "0,1"


ESCAPING = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["setsid", "sh", "-c", "trap '' TERM; while :; do sleep 1; done"])
subprocess.Popen(["env", "-i", "setsid", "sh", "-c", "trap '' TERM; (while :; do sleep 1; done) & exit"])
time.sleep(600)
"""


def left() -> list[bytes]:
    """Command lines on any node that look like the escaping tree's."""
    lines = [command_line(pid) for pid in processes.all_pids()]
    return [line for line in lines if b"trap '' TERM; " in line]


def command_line(pid: int) -> bytes:
    """Empty for a process that is gone; this machine sees those of all nodes."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_cancel_leaves_nothing_of_a_tree_that_escapes(rig: Rig, slurm: Slurm) -> None:
    launch(rig, "r1", python=rig.worker("escaping", ESCAPING))
    started(rig, "r1")
    wait_for(lambda: len(left()) >= 2)
    answer = cancel(rig, "r1", grace_s=1)
    assert (answer.state.phase, answer.survivors, answer.unproved) == ("cancelled", (), None)
    assert left() == []
    assert "r1" not in slurm.run("squeue", "-h", "-o", "%j")


@pytest.mark.skipif(not PROVES, reason="needs the freezer of cgroup v1, by which Slurm ends every process of a job")
def test_a_supervisor_that_is_killed_leaves_slurm_to_end_the_tree_and_to_say_so(rig: Rig, slurm: Slurm) -> None:
    launch(rig, "r1", python=rig.worker("escaping", ESCAPING))
    started(rig, "r1")
    wait_for(lambda: len(left()) >= 2)
    slurm.run("scancel", "--batch", "--signal=KILL", job_of(rig, "r1"))
    state = ended(rig, "r1")
    assert state.failure is not None
    assert state.phase == "lost"
    assert "without a final state of its own; Slurm job" in state.failure.message
    assert "signal 9" in state.failure.message
    until(lambda: left() == [], "the tree's end")


def test_scancel_by_hand_is_a_cancelled_run_that_says_so(rig: Rig, slurm: Slurm) -> None:
    launch(rig, "r1", SelftestJob(duration_s=60))
    launch(rig, "r2", waiting=Waiting(start_unix_s=4e9))
    launch(rig, "r3", SelftestJob(duration_s=60))
    started(rig, "r1")
    started(rig, "r3")
    slurm.run("scancel", job_of(rig, "r1"), job_of(rig, "r2"))
    end = f"batch\0{rig.run('r3').path}\0".encode()
    (supervisor,) = [pid for pid in processes.all_pids() if command_line(pid).endswith(end)]
    os.kill(supervisor, signal.SIGTERM)
    state = ended(rig, "r1")
    assert (state.phase, state.note) == ("cancelled", "ended by Slurm: scancel, by whom Slurm does not say")
    signalled = ended(rig, "r3")
    assert signalled.note == "ended by a signal that neither this tool nor Slurm accounts for"
    waited = ended(rig, "r2")
    assert waited.phase == "cancelled"
    assert "by scancel, outside this tool" in (waited.note or "")


def test_a_requeued_run_goes_on_in_its_folder(rig: Rig, slurm: Slurm) -> None:
    python = rig.worker("twice", "open(RUN / 'tries', 'a').write('x')\ntime.sleep(60)\n")
    launch(rig, "r1", python=python)
    started(rig, "r1")
    wait_for((rig.run("r1").path / "tries").exists)
    (rig.root.parent / "twice").write_text(
        (rig.root.parent / "twice").read_text().replace("time.sleep(60)", "(RUN / 'result' / 'done').touch()")
    )
    slurm.run("scontrol", "requeue", job_of(rig, "r1"))
    wait_for(lambda: rig.state("r1").phase == "queued")
    until(lambda: "to be started again; Slurm: PENDING" in (state_of(rig, "r1").note or ""), "the requeue")
    # Slurm would hold it for two minutes, so that the end of its first start is not taken for that of its second.
    time.sleep(1)
    slurm.run("scontrol", "update", f"jobid={job_of(rig, 'r1')}", "StartTime=now")
    state = ended(rig, "r1")
    assert (state.phase, state.slurm.restarts if state.slurm else None) == ("succeeded", 1)
    assert (rig.run("r1").path / "tries").read_text() == "xx"
    assert "Slurm started the job again on node" in rig.run("r1").events.read_text()


def test_a_preempted_run_is_queued_again_or_killed_as_its_partition_has_it(rig: Rig, slurm: Slurm) -> None:
    for node, partition in (("node1", "gpu"), ("node2", "cheap")):
        alone = SlurmSettings(poll_s=1.0, partition=partition, options=(f"--nodelist={node}", "--exclusive"))
        launch(rig, partition, SelftestJob(duration_s=60), slurm=alone)
        started(rig, partition)
    for node in ("node1", "node2"):
        settings = SlurmSettings(poll_s=1.0, partition="urgent", options=(f"--nodelist={node}", "--exclusive"))
        launch(rig, f"urgent-{node}", slurm=settings)
    killed = ended(rig, "cheap")
    assert killed.failure is not None
    assert (killed.phase, killed.failure.kind) == ("killed", "machine")
    assert "PREEMPTED" in killed.failure.message
    until(lambda: state_of(rig, "gpu").phase == "queued", "the requeue")
    assert "to be started again; Slurm: PENDING" in (state_of(rig, "gpu").note or "")
    assert ended(rig, "urgent-node1").phase == "succeeded"


def test_the_time_limit_ends_the_run_early_enough_to_keep_what_it_has(rig: Rig, slurm: Slurm) -> None:
    job = "(RUN / 'result' / 'half').write_text('kept')\ntime.sleep(600)\n"
    launch(rig, "r1", python=rig.worker("half", job))
    started(rig, "r1")
    wait_for((rig.run("r1").result / "half").exists)
    # What Slurm sends `--signal=B:USR2@N` before the limit, without waiting for its minutes.
    slurm.run("scancel", "--batch", "--signal=USR2", job_of(rig, "r1"))
    state = ended(rig, "r1")
    assert state.phase == "timed_out"
    assert "Slurm's time limit" in (state.note or "")
    assert json.loads(rig.run("r1").manifest.read_text())["files"][0]["name"] == "half"


def test_a_node_without_power_gives_the_run_to_another(rig: Rig, slurm: Slurm) -> None:
    options = SlurmSettings(poll_s=1.0, options=("--no-requeue",))
    launch(rig, "stays", SelftestJob(duration_s=600), slurm=options)
    until(lambda: rig.state("stays").phase == "running", "the first run")
    node = rig.state("stays").slurm
    assert node is not None
    comes_back = SlurmSettings(poll_s=1.0, options=(f"--nodelist={node.node}",))
    launch(rig, "moves", SelftestJob(duration_s=5), slurm=comes_back)
    started(rig, "moves")
    (dead,) = [one for one in slurm.nodes if one.name == node.node]
    dead.kill()
    try:
        assert state_of(rig, "moves").phase == "running"  # nobody knows better yet
        state = ended(rig, "stays")
        assert state.failure is not None
        assert state.phase == "lost"
        assert "NODE_FAIL" in state.failure.message
        until(lambda: state_of(rig, "moves").phase == "queued", "the requeue")
        job = job_of(rig, "moves")
        slurm.run("scontrol", "update", f"jobid={job}", "ReqNodeList=", "StartTime=now")
        state = ended(rig, "moves")
        assert (state.phase, state.slurm.restarts if state.slurm else None) == ("succeeded", 1)
        assert state.slurm is not None
        assert state.slurm.node != dead.name
    finally:
        dead.start()


class Gaps:
    """The longest silence of a follower, read by a thread."""

    def __init__(self, follower: "subprocess.Popen[bytes]") -> None:
        self._follower = follower
        self._longest_s = 0.0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        before_s = None
        assert self._follower.stdout is not None
        for _ in self._follower.stdout:
            now_s = time.monotonic()
            self._longest_s = max(self._longest_s, 0.0 if before_s is None else now_s - before_s)
            before_s = now_s

    @property
    def longest_s(self) -> float:
        """Once it has ended."""
        self._reader.join(30)
        self._follower.communicate()
        return self._longest_s


def test_a_controller_that_is_gone_is_no_end_of_a_run(rig: Rig, slurm: Slurm) -> None:
    impatient = SlurmSettings(poll_s=1.0, answer_s=1.0)
    launch(rig, "r1", SelftestJob(duration_s=600), slurm=SlurmSettings(poll_s=1.0, answer_s=4.0))
    started(rig, "r1")
    slurm.stop_controller()
    follow = FollowRequest(nonce=NONCE, root=str(rig.root), run_id="r1", pulse_s=0.5)
    gaps = Gaps(rig.start("follow", follow))
    try:
        until(lambda: "the run's own folder says" in (state_of(rig, "r1").note or ""), "the problem", 20)
        assert state_of(rig, "r1").phase == "running"
        (error,) = of_kind(rig.launch(rig.spec("r2", slurm=impatient), exit_code=1), "error")
        assert "Slurm did not answer within 1 s (sbatch)" in error.message
        assert not rig.run("r2").path.exists()
        answer = cancel(rig, "r1", grace_s=1)  # asked for in the folder, where the supervisor sees it
        assert (answer.state.phase, answer.unproved) == ("cancelled", None)
    finally:
        slurm.start_controller()
    assert rig.state("r1").phase == "cancelled"
    assert gaps.longest_s < 3.0, "the laptop takes a follower that is silent for 12 s for a broken link"


def test_slurm_is_asked_once_for_all_runs_and_by_everybody(
    rig: Rig, slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = tmp_path / "asked"
    shim = tmp_path / "bin" / "squeue"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho "$@" >> {counted}\nexec {shutil.which("squeue")} "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    polite = SlurmSettings()  # 30 s
    for run_id in ("r1", "r2", "r3"):
        launch(rig, run_id, SelftestJob(duration_s=2), slurm=polite)
    follower = rig.start("follow", FollowRequest(nonce=NONCE, root=str(rig.root), run_id="r1"))
    while not all(rig.state(run_id).is_terminal for run_id in ("r1", "r2", "r3")):
        assert len(rig.status().states) == 3
    follower.communicate(timeout=30)  # the run's own folder tells its end, long before Slurm is asked again
    assert len(counted.read_text().splitlines()) == 1
