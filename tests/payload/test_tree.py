"""Ending trees: what escapes process groups must not escape `cancel`; what a dead supervisor leaves must be found."""

import signal

import pytest

from remote_payload import cancel, processes
from remote_payload.schema import SelftestJob
from tests.payload.rig import Rig, is_alive, kill, of_kind, wait_for
from tests.support.patience import PATIENCE_S, Within

# Each starts what is hard to end, notes its pids in the run directory, and stays.
NOTE = "note = lambda name, pid: (RUN / ('pid-' + name)).write_text(str(pid))\n"
STAY = "(RUN / 'ready').touch()\ntime.sleep(300)\n"
SLEEP = "time.sleep(300)\n"
CHILD_IN_OWN_SESSION = "note('session', subprocess.Popen(['sleep', '300'], start_new_session=True).pid)\n"
DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        note('daemon', os.getpid())
        time.sleep(300)
    os._exit(0)
os.wait()
"""
BARE_DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve('/bin/sh', ['sh', '-c', 'echo $$ > pid-bare; sleep 300; :'], {})
    os._exit(0)
os.wait()
"""
TERM_IGNORER = """
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note('ignorer', os.getpid())
    while True:
        time.sleep(300)
"""
RESPAWNER = """
if os.fork() == 0:
    os.setsid()
    while True:
        child = os.fork()
        if child == 0:
            os.setsid()
            note('respawned', os.getpid())
            time.sleep(300)
        os.waitpid(child, 0)
"""
STOPPED = """
child = os.fork()
if child == 0:
    note('stopped', os.getpid())
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(300)
"""
ALL = CHILD_IN_OWN_SESSION + DAEMON + BARE_DAEMON + TERM_IGNORER + RESPAWNER + STOPPED
NAMES = {"session", "daemon", "bare", "ignorer", "respawned", "stopped"}


def noted(rig: Rig, run_id: str) -> dict[str, int]:
    texts = {path.name[4:]: path.read_text() for path in rig.run(run_id).path.glob("pid-*")}
    return {name: int(text) for name, text in texts.items() if text}


def wait_until_ready(rig: Rig, run_id: str, names: set[str]) -> dict[str, int]:
    wait_for(lambda: (rig.run(run_id).path / "ready").exists() and set(noted(rig, run_id)) == names)
    pids = noted(rig, run_id)
    assert all(map(is_alive, pids.values()))
    return pids


def test_cancel_ends_everything_that_hides_from_a_process_group(rig: Rig) -> None:
    rig.launch(rig.spec("r1", python=rig.worker("w", NOTE + ALL + STAY)))
    pids = wait_until_ready(rig, "r1", NAMES)
    answer = rig.cancel("r1", grace_s=0.3)
    assert (answer.state.phase, answer.was_terminal, answer.survivors) == ("cancelled", False, ())
    assert not [pid for pid in pids.values() if is_alive(pid)]
    assert rig.alive("r1") == ()
    assert not is_alive(answer.state.supervisor_pid)


def test_what_a_worker_leaves_behind_goes_with_it(rig: Rig) -> None:
    body = (
        NOTE
        + DAEMON
        + BARE_DAEMON
        + "(RUN / 'result/ok').write_text('x')\nwhile not (RUN / 'on').exists(): time.sleep(0.01)"
    )
    rig.launch(rig.spec("r1", python=rig.worker("w", body)))
    wait_for(lambda: set(noted(rig, "r1")) == {"daemon", "bare"})
    (rig.run("r1").path / "on").touch()
    final = of_kind(rig.follow("r1"), "state")[-1].state
    assert final.phase == "succeeded"
    assert not [pid for pid in noted(rig, "r1").values() if is_alive(pid)]


def test_a_worker_gets_its_grace(rig: Rig) -> None:
    body = "def end(*_):\n    time.sleep(0.3); (RUN / 'result/saved').write_text('x'); sys.exit(0)\n"
    body += "signal.signal(signal.SIGTERM, end)\n" + STAY
    rig.launch(rig.spec("r1", python=rig.worker("w", body)))
    wait_until_ready(rig, "r1", set())
    assert rig.cancel("r1").state.phase == "cancelled"
    frames = rig.follow("r1")
    assert [file.name for file in of_kind(frames, "manifest")[0].manifest.files] == ["saved"]


def test_cancelling_what_is_over_changes_nothing(rig: Rig) -> None:
    rig.launch(rig.spec("r1"), follow=True)
    before = rig.state("r1")
    answer = rig.cancel("r1")
    assert (answer.state, answer.was_terminal, answer.ended) == (before, True, ())
    assert rig.state("r1") == before


def test_cancelling_a_claim_that_never_started_settles_it(rig: Rig) -> None:
    rig.run("r1").path.mkdir(parents=True)
    answer = rig.cancel("r1")
    assert (answer.state.phase, answer.was_terminal) == ("cancelled", False)
    frames = rig.launch(rig.spec("r1"), follow=False)
    assert (frames[0].kind, frames[0].adopted, frames[0].state.phase) == ("launched", True, "cancelled")  # type: ignore[union-attr]


def test_a_term_to_the_supervisor_is_a_cancel(rig: Rig) -> None:
    rig.launch(rig.spec("r1", SelftestJob(duration_s=60)))
    state = rig.running("r1")
    assert processes.send_signal(state.supervisor_pid, state.supervisor_start_ticks, signal.SIGTERM)
    assert of_kind(rig.follow("r1"), "state")[-1].state.phase == "cancelled"


def test_a_killed_supervisor_is_lost_and_its_orphans_are_named_and_ended(rig: Rig) -> None:
    left = "(RUN / 'result').mkdir(exist_ok=True)\n(RUN / 'result' / 'bench.json').write_text('whole')\n"
    rig.launch(rig.spec("r1", python=rig.worker("w", NOTE + CHILD_IN_OWN_SESSION + left + STAY)))
    pids = wait_until_ready(rig, "r1", {"session"})
    state = rig.running("r1")
    kill(state.supervisor_pid)
    frames = rig.follow("r1")
    lost = of_kind(frames, "state")[-1].state
    assert of_kind(frames, "manifest")[0].manifest is None  # they are still written to
    assert (lost.phase, lost.failure.kind) == ("lost", "supervisor")
    assert str(state.worker_pid) in lost.note
    assert str(pids["session"]) in lost.note
    assert rig.state("r1") == lost
    assert is_alive(state.worker_pid)
    answer = rig.cancel("r1", grace_s=0.3)
    assert (answer.state.phase, answer.was_terminal, answer.survivors) == ("lost", True, ())
    assert set(answer.ended) == {state.worker_pid, pids["session"]}
    assert str(state.worker_pid) in answer.state.note
    assert not is_alive(state.worker_pid)
    assert not is_alive(pids["session"])
    frames = rig.follow("r1")
    assert [file.name for file in of_kind(frames, "manifest")[0].manifest.files] == ["bench.json"]
    assert of_kind(frames, "file")[0].name == "bench.json"
    told = of_kind(frames, "state")[-1].state
    assert (told.phase, told.note) == ("lost", "nothing of it runs any more; it left 1 result file")
    assert rig.state("r1") == told


def test_a_follower_notices_at_once_that_the_supervisor_was_killed(rig: Rig) -> None:
    request = rig.launch_request(rig.spec("r1", SelftestJob(duration_s=60)), follow=True)
    with rig.start("launch", request) as child:
        kill(rig.running("r1").supervisor_pid)
        with Within():
            child.communicate(timeout=PATIENCE_S)
    assert rig.state("r1").phase == "lost"


def test_status_finds_a_lost_run(rig: Rig) -> None:
    rig.launch(rig.spec("r1", SelftestJob(duration_s=60)))
    kill(rig.running("r1").supervisor_pid)
    wait_for(lambda: not is_alive(rig.state("r1").supervisor_pid or 0))
    answer = rig.status()
    assert [state.phase for state in answer.states] == ["lost"]
    assert answer.heartbeat_ages_s == (None,)


def test_a_stuck_supervisor_is_ended_too(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancel, "SUPERVISOR_PATIENCE_S", 0.2)
    rig.launch(rig.spec("r1", SelftestJob(duration_s=60)))
    state = rig.running("r1")
    processes.send_signal(state.supervisor_pid, state.supervisor_start_ticks, signal.SIGSTOP)
    answers = []
    request = cancel.CancelRequest(nonce="n", root=str(rig.root), run_id="r1", grace_s=0.2)
    cancel.cancel(request, answers.append)
    assert answers[0].answer.state.phase == "lost"
    assert rig.alive("r1") == ()
    assert not is_alive(state.supervisor_pid)


def test_a_process_that_got_a_dead_ones_pid_is_left_alone(rig: Rig) -> None:
    rig.launch(rig.spec("r1", SelftestJob(duration_s=60)))
    state = rig.running("r1")
    assert not processes.send_signal(state.supervisor_pid, state.supervisor_start_ticks - 1, signal.SIGKILL)
    assert is_alive(state.supervisor_pid)
    assert rig.cancel("r1").state.phase == "cancelled"
