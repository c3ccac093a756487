"""`cancel` of a run whose files no longer say what runs: it ends what the kernel knows of, or says that nothing is."""

import dataclasses
import shutil
from collections.abc import Callable

import pytest

from remote_payload import follow, leftovers
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.schema import CancelRequest, FollowRequest, RunState, SelftestJob, to_json
from tests.payload.rig import NONCE, Rig, is_alive, kill, wait_for


def replace_by_folder(run: RunDir) -> None:
    run.state.unlink()
    run.state.mkdir()


def take_for_over(run: RunDir) -> None:
    run.state.write_text(to_json(RunState(run_id=run.path.name, sequence=9, phase="succeeded")))


def at_work(rig: Rig, run_id: str) -> RunState:
    """Wait until the worker needs no more files of its run."""
    state = rig.running(run_id)
    wait_for(lambda: rig.run(run_id).events.exists() and rig.run(run_id).events.stat().st_size)
    return state


DAMAGES: dict[str, Callable[[RunDir], object]] = {
    "removed": lambda run: run.state.unlink(),
    "empty": lambda run: run.state.write_bytes(b""),
    "binary": lambda run: run.state.write_bytes(b"\xff"),
    "deep": lambda run: run.state.write_text("[" * 300_000),
    "pid": lambda run: run.state.write_text(run.state.read_text().replace('"supervisor_pid":', '"supervisor_pid":-')),
    "folder": replace_by_folder,
    "over": take_for_over,
    "all gone": lambda run: shutil.rmtree(run.path),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_live_run_is_ended_whatever_became_of_its_state(rig: Rig, damage: Callable[[RunDir], object]) -> None:
    rig.launch(rig.spec("r1", SelftestJob(duration_s=60)))
    rig.launch(rig.spec("r10", SelftestJob(duration_s=60)))
    state, other = at_work(rig, "r1"), at_work(rig, "r10")
    damage(rig.run("r1"))
    answer = rig.cancel("r1", grace_s=1.0)
    assert not is_alive(state.supervisor_pid or 0)
    assert not is_alive(state.worker_pid or 0)
    assert {state.supervisor_pid, state.worker_pid} <= {*answer.ended}
    assert answer.survivors == ()
    assert is_alive(other.supervisor_pid or 0)
    assert is_alive(other.worker_pid or 0)
    if rig.run("r1").path.exists():
        assert rig.state("r1").phase == answer.state.phase in ("cancelled", "succeeded")
        assert rig.cancel("r1").was_terminal


def test_a_live_run_without_state_is_told_from_one_that_never_started(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "CLAIM_WAIT_S", 0.1)
    rig.launch(rig.spec("r1", SelftestJob(duration_s=60)))
    at_work(rig, "r1")
    rig.run("r1").state.unlink()
    assert rig.status("r1").unreadable == (
        "r1: has no state, but its supervisor runs; if that stays so, `cancel` ends it",
    )
    with pytest.raises(Refusal, match="state was removed while its supervisor runs on") as refused:
        follow.follow(FollowRequest(nonce=NONCE, root=str(rig.root), run_id="r1"), lambda frame: None)
    assert "`cancel`" in (refused.value.hint or "")


def test_orphans_are_ended_without_supervisor_state_and_folder(rig: Rig) -> None:
    rig.launch(rig.spec("r1", SelftestJob(duration_s=60)))
    state = at_work(rig, "r1")
    kill(state.supervisor_pid or 0)
    wait_for(lambda: not is_alive(state.supervisor_pid or 0))
    shutil.rmtree(rig.run("r1").path)
    assert rig.cancel("r1").ended == (state.worker_pid,)
    assert not is_alive(state.worker_pid or 0)


@pytest.mark.parametrize("damage", ["", "folder"])
def test_a_damaged_run_of_which_nothing_lives_keeps_its_files(rig: Rig, damage: str) -> None:
    rig.launch(rig.spec("r1"), follow=True)
    run = rig.run("r1")
    wait_for(lambda: not leftovers.alive(run))
    run.state.unlink()
    if damage:
        run.state.mkdir()
    else:
        run.state.touch()
    request = CancelRequest(nonce=NONCE, root=str(rig.root), run_id="r1")
    (frame,) = rig.call("cancel", request, exit_code=1)
    assert frame.code == "no_such_run"  # type: ignore[union-attr]
    assert frame.message.endswith("none of its processes is alive on this host")  # type: ignore[union-attr]
    assert run.state.exists()


def test_a_finished_run_is_not_started_again_by_its_lost_state(rig: Rig) -> None:
    rig.launch(rig.spec("r1"), follow=True)
    rig.run("r1").state.unlink()
    answer = rig.cancel("r1")
    assert (answer.state.phase, answer.state.note) == ("cancelled", "its state was removed")
    assert dataclasses.replace(answer.state) == rig.state("r1")
