"""The last resort: a broken supervisor still leaves a final state and no processes."""

import subprocess
from pathlib import Path

from remote_payload.detach import Report, start_detached
from remote_payload.schema import Manifest, ManifestFile, to_json
from remote_payload.supervisor import Origin, Supervisor
from tests.payload.rig import Rig, is_alive, of_kind, stream, wait_for


def test_a_supervisor_that_breaks_ends_the_tree_and_says_so(rig: Rig) -> None:
    run = rig.run("r1")
    run.result.mkdir(parents=True)
    spec = rig.spec("r1")

    def body(report: Report) -> None:
        supervisor = Supervisor(run, spec, Origin(archive=Path("payload.pyz")))
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


def test_a_link_in_the_place_of_the_result_is_not_followed(rig: Rig, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "private").write_text("x")
    manifest = to_json(Manifest(run_id="r1", files=(ManifestFile(name="private", size_bytes=1, sha256="0"),)))
    (elsewhere / "manifest.json").write_text(manifest)
    body = f"(RUN / 'result').rmdir(); (RUN / 'result').symlink_to({str(elsewhere)!r})"
    frames = rig.launch(rig.spec("r1", python=rig.worker("w", body)), follow=True)
    state = of_kind(frames, "state")[-1].state
    assert (state.phase, state.failure.kind) == ("failed", "machine")
    assert "a link stands in the place of the folder" in state.failure.message
    assert of_kind(frames, "manifest")[0].manifest is None
    assert of_kind(frames, "file") == []
    assert (elsewhere / "manifest.json").read_text() == manifest


def test_a_worker_starts_with_ordinary_signals_a_session_and_no_foreign_descriptors(rig: Rig) -> None:
    body = "status = Path('/proc/self/status').read_text()\n"
    body += "mask = {line.split()[0]: line.split()[1] for line in status.splitlines() if line.startswith('Sig')}\n"
    body += "fds = sorted(int(name) for name in os.listdir('/proc/self/fd'))\n"
    body += "print(int(mask['SigBlk:'], 16), os.getsid(0) == os.getpid(), fds[:4], os.getcwd() == str(RUN))\n"
    body += "print(int(mask['SigIgn:'], 16) & ~(1 << 12 | 1 << 24 | 3 << 31), os.environ['EAGLE3_RUN_ID'])"
    frames = rig.launch(rig.spec("r1", python=rig.worker("w", body)), follow=True)
    # ignored: only what Python itself ignores (SIGPIPE, SIGXFSZ), and 32 and 33 if whoever started the tests did so:
    # the C library keeps those two for itself and lets no program change them; descriptor 3 is the listing's own
    assert stream(frames, "stdout").decode().splitlines() == ["0 True [0, 1, 2, 3] True", "0 r1"]
