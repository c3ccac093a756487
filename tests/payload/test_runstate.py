"""States that are damaged, removed, or written onto a full disk: named, and believed by nobody."""

import json
import shutil
from pathlib import Path

import pytest

from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.runstate import overwrite, read_state
from remote_payload.schema import Failure, SelftestJob
from tests.payload.rig import NONCE, Rig, kill
from tests.payload.test_liveness import running


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "r1")
    run.path.mkdir()
    return run


DAMAGED = {
    "empty": "",
    "cut": "{",
    "list": "[]",
    "keys": '{"run_id": "r1"}',
    "binary": "\xff",
    "phase": '{"phase": "asleep"}',
    "deep": "[" * 300_000,
    "deep value": '{"run_id": "r1", "sequence": 1, "phase": ' + "[" * 900 + "]" * 900 + "}",
    "digits": '{"run_id": "r1", "sequence": ' + "9" * 5000 + "}",
    "float": '{"run_id": "r1", "sequence": 1, "phase": "running", "started_unix_s": ' + "9" * 401 + "}",
    "infinite": '{"run_id": "r1", "sequence": 1, "phase": "running", "started_unix_s": 1e999}',
    "pid": '{"run_id": "r1", "sequence": 1, "phase": "running", "supervisor_pid": 99999999999}',
    "no pid": '{"run_id": "r1", "sequence": 1, "phase": "running", "supervisor_pid": -1}',
    "another": '{"run_id": "r2", "sequence": 1, "phase": "running"}',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=list(DAMAGED))
def test_a_damaged_state_is_named_not_believed(run: RunDir, content: str) -> None:
    run.state.write_text(content, encoding="latin-1")
    with pytest.raises(Refusal, match="state is damaged") as refused:
        current_state(run)
    assert str(run.state) in refused.value.frame.message


def test_damaged_runs_are_listed_beside_good_ones(rig: Rig) -> None:
    rig.launch(rig.spec("good"), follow=True)
    for name, content in DAMAGED.items():
        run = rig.run(f"r1-{name.replace(' ', '-')}")
        shutil.copytree(rig.run("good").path, run.path)
        run.state.write_text(content, encoding="latin-1")
    folder = rig.run("r2")
    shutil.copytree(rig.run("good").path, folder.path)
    folder.state.unlink()
    folder.state.mkdir()
    rig.run("s1").path.mkdir()
    answer = rig.status()
    assert [state.run_id for state in answer.states] == ["good"] == [spec.run_id for spec in answer.specs]
    damaged = sorted(f"r1-{name.replace(' ', '-')}" for name in DAMAGED)
    assert [line.partition(":")[0] for line in answer.unreadable] == [*damaged, "r2", "s1"]
    for run_id in ("r1-deep", "r1-pid", "r2"):
        request = f'{{"nonce": "{NONCE}", "root": "{rig.root}", "run_id": "{run_id}"}}'.encode()
        (frame,) = rig.call("follow", request, exit_code=1)
        assert frame.code == "no_such_run"  # type: ignore[union-attr]


def test_a_run_removed_under_a_follower_ends_it(rig: Rig) -> None:
    request = rig.launch_request(rig.spec("r1", SelftestJob(duration_s=60)), follow=True)
    with rig.start("launch", request) as child:
        state = rig.running("r1")
        assert child.stdout
        assert child.stderr
        while b'"kind":"state"' not in child.stdout.readline():  # until it follows
            assert child.poll() is None
        rig.run("r1").state.unlink()
        stdout, stderr = child.stdout.read(), child.stderr.read()
    kill(state.supervisor_pid or 0)
    assert (child.returncode, stderr) == (1, b"")
    assert b"removed meanwhile" in stdout


def test_a_full_disk_takes_the_final_state_in_place_of_the_old(run: RunDir) -> None:
    state = running(run)
    failure = Failure(kind="job", message="why", details=("long " * 200,))
    overwrite(run, state, phase="failed", failure=failure)
    written = read_state(run)
    assert written is not None
    assert (written.phase, written.sequence) == ("failed", state.sequence + 1)
    assert written.failure is not None
    assert (written.failure.message, written.failure.details) == ("why", ())
    json.loads(run.state.read_text())
