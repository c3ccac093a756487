"""The last resort: a broken supervisor still leaves a final state and no processes."""

import subprocess

from remote_payload.detach import Report, start_detached
from remote_payload.supervisor import Supervisor
from tests.payload.rig import Rig, is_alive, of_kind, wait_for


def test_a_supervisor_that_breaks_ends_the_tree_and_says_so(rig: Rig) -> None:
    run = rig.run("r1")
    run.result.mkdir(parents=True)
    spec = rig.spec("r1")

    def body(report: Report) -> None:
        supervisor = Supervisor(run, spec)
        child = subprocess.Popen(["sleep", "300"], start_new_session=True)
        report(str(child.pid))
        supervisor.give_up("Traceback ...\nValueError: something nobody thought of")

    child = int(start_detached(body, keep=(), timeout_s=10))
    wait_for(lambda: rig.state("r1").is_terminal)
    state = rig.state("r1")
    assert (state.phase, state.survivors) == ("failed", ())
    assert state.failure is not None
    assert state.failure.kind == "supervisor"
    assert state.failure.message == "the supervisor failed: ValueError: something nobody thought of"
    assert not is_alive(child)
    wait_for(lambda: not is_alive(state.supervisor_pid or 0))


def test_results_that_cannot_be_named_or_are_links_stay_out_of_the_manifest(rig: Rig) -> None:
    body = "os.close(os.open(os.fsencode(RUN / 'result') + b'/\\xff', os.O_CREAT))\n"
    body += "(RUN / 'result/link').symlink_to('/etc/passwd'); (RUN / 'result/dïr').mkdir()\n"
    body += "(RUN / 'result/dïr/a b').write_text('x'); os.mkfifo(RUN / 'result/pipe')"
    frames = rig.launch(rig.spec("r1", python=rig.worker("w", body)), follow=True)
    assert of_kind(frames, "state")[-1].state.phase == "succeeded"
    assert [file.name for file in of_kind(frames, "manifest")[0].manifest.files] == ["dïr/a b"]
    assert [frame.name for frame in of_kind(frames, "file")] == ["dïr/a b"]
