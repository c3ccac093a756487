"""A run's whole life, by real detached processes started from the built payload file."""

import base64
import hashlib
import json
import subprocess
import sys
from typing import Any

import pytest

from remote_payload.follow import follow
from remote_payload.schema import Cursor, Event, FollowRequest, Frame, Manifest, SelftestJob, from_json, to_json
from tests.payload.rig import NONCE, Rig, command_lines, frames_in, is_alive, kill, of_kind, raw, stream, wait_for
from tests.support.patience import PATIENCE_S, Within


def test_a_run_from_launch_to_collected_result(rig: Rig) -> None:
    frames = rig.launch(rig.spec("r1", SelftestJob(result_bytes=3000)), follow=True)
    kinds = [frame.kind for frame in frames]
    assert (kinds[0], kinds[-1]) == ("launched", "end")
    assert kinds[-5:] == ["state", "manifest", "file", "file", "end"]
    states = [frame.state for frame in of_kind(frames, "state")]
    assert [state.sequence for state in states] == sorted(state.sequence for state in states)
    final = states[-1]
    assert (final.phase, final.exit_code, final.signal, final.failure) == ("succeeded", 0, None, None)
    assert final == rig.state("r1")
    assert final.resource_use.wall_s > 0
    assert final.resource_use.max_rss_bytes > 1_000_000
    assert stream(frames, "stdout") == b"selftest: 0 s, 3000 bytes\n" == rig.run("r1").stdout.read_bytes()
    events = [from_json(Event, line) for line in stream(frames, "events").decode().splitlines()]
    assert events[0].name == "selftest"


def test_the_manifest_and_the_inlined_files_agree_with_the_disk(rig: Rig) -> None:
    frames = rig.launch(rig.spec("r1", SelftestJob(result_bytes=3000)), follow=True)
    (manifest,) = of_kind(frames, "manifest")
    sent = {frame.name: base64.b64decode(frame.data_base64) for frame in of_kind(frames, "file")}
    assert set(sent) == {"selftest.json", "selftest.bin"} == {file.name for file in manifest.manifest.files}
    for file in manifest.manifest.files:
        assert file.size_bytes == len(sent[file.name])
        assert file.sha256 == hashlib.sha256(sent[file.name]).hexdigest()
        assert (rig.run("r1").result / file.name).read_bytes() == sent[file.name]
    assert from_json(Manifest, rig.run("r1").manifest.read_text()) == manifest.manifest


def test_everything_is_private_and_nothing_temporary_stays(rig: Rig) -> None:
    rig.launch(rig.spec("r1"), follow=True)
    run = rig.run("r1")
    assert {path.stat().st_mode & 0o777 for path in (rig.root / "runs", run.path, run.result)} == {0o700}
    files = {path.name: path.stat().st_mode & 0o777 for path in run.path.iterdir() if path.is_file()}
    assert set(files) == {"claim", "events.jsonl", "heartbeat", "spec.json", "state.json", "stderr.log", "stdout.log"}
    assert set(files.values()) == {0o600}


def test_files_beyond_the_inline_limit_are_left_to_another_way(rig: Rig) -> None:
    rig.launch(rig.spec("r1", SelftestJob(result_bytes=5000)), follow=True)
    frames = rig.follow("r1", inline_limit_bytes=1000)
    assert [frame.name for frame in of_kind(frames, "file")] == ["selftest.json"]
    assert len(of_kind(frames, "manifest")[0].manifest.files) == 2


def test_a_failing_job_says_why(rig: Rig) -> None:
    frames = rig.launch(rig.spec("r1", SelftestJob(fail=True)), follow=True)
    final = of_kind(frames, "state")[-1].state
    assert (final.phase, final.exit_code, final.failure.kind) == ("failed", 1, "job")
    assert final.failure.message == "selftest was asked to fail"


def test_a_python_without_torch_is_the_machines_failure(rig: Rig) -> None:
    python = rig.root.parent / "bare-python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    python.chmod(0o755)
    job_json = json.dumps({"kind": "standalone", "draft": "/nowhere", "rows": "/nowhere"})
    spec = rig.spec("r1", job_kind="standalone", job_json=job_json, python=str(python))
    final = of_kind(rig.launch(spec, follow=True), "state")[-1].state
    assert (final.phase, final.exit_code, final.failure.kind) == ("failed", 1, "machine")
    assert "No module named 'torch'" in final.failure.message
    assert "install torch" in final.failure.hint


def test_a_python_that_is_not_there_is_the_machines_failure(rig: Rig) -> None:
    final = of_kind(rig.launch(rig.spec("r1", python="/nowhere/python"), follow=True), "state")[-1].state
    assert (final.phase, final.failure.kind) == ("failed", "machine")
    assert final.failure.message.endswith("No such file or directory: /nowhere/python")


def test_a_worker_that_ends_well_without_a_result_did_not_succeed(rig: Rig) -> None:
    final = of_kind(rig.launch(rig.spec("r1", python="/bin/true"), follow=True), "state")[-1].state
    assert (final.phase, final.exit_code, final.failure.kind) == ("failed", 0, "bug")


def test_a_worker_without_a_word_is_quoted_by_its_stderr(rig: Rig) -> None:
    python = rig.worker("w", "sys.stderr.write('first\\nlast words\\n'); sys.exit(9)")
    final = of_kind(rig.launch(rig.spec("r1", python=python), follow=True), "state")[-1].state
    assert (final.phase, final.exit_code) == ("failed", 9)
    assert final.failure.details == ("first", "last words")


def test_a_killed_worker_is_told_from_a_failed_one(rig: Rig) -> None:
    rig.launch(rig.spec("r1", SelftestJob(duration_s=60)))
    kill(rig.running("r1").worker_pid)
    final = of_kind(rig.follow("r1"), "state")[-1].state
    assert (final.phase, final.signal, final.exit_code) == ("killed", "SIGKILL", None)


def test_the_deadline_ends_the_worker(rig: Rig) -> None:
    spec = rig.spec("r1", SelftestJob(duration_s=60), deadline_s=0.3)
    with Within():
        final = of_kind(rig.launch(spec, follow=True), "state")[-1].state
    assert (final.phase, final.note) == ("timed_out", "the deadline of 0.3 s passed")
    assert not is_alive(final.worker_pid)


def test_a_flood_of_output_arrives_whole_and_in_order(rig: Rig) -> None:
    python = rig.worker("w", "for n in range(20000): print(f'{n:0100d}')\n(RUN / 'result/ok').write_text('x')")
    frames = rig.launch(rig.spec("r1", python=python), follow=True)
    assert stream(frames, "stdout") == b"".join(b"%0100d\n" % n for n in range(20000))
    assert max(len(frame.data_base64) for frame in of_kind(frames, "chunk")) <= 4 * 64 * 1024 // 3 + 4


def test_following_resumes_at_the_cursor(rig: Rig) -> None:
    body = "print('one'); print('bad', file=sys.stderr); (RUN / 'go').touch()\n"
    body += "while not (RUN / 'on').exists(): time.sleep(0.01)\nprint('two'); (RUN / 'result/ok').write_text('x')"
    rig.launch(rig.spec("r1", python=rig.worker("w", body)))
    wait_for((rig.run("r1").path / "go").exists)
    before = rig.follow("r1", wait=False)
    assert (stream(before, "stdout"), stream(before, "stderr")) == (b"one\n", b"bad\n")
    assert before[-1].kind == "end"
    assert not of_kind(before, "manifest")
    (rig.run("r1").path / "on").touch()
    after = rig.follow("r1", cursor=Cursor(stdout=2, stderr=4))
    assert (stream(after, "stdout", 2), stream(after, "stderr", 4)) == (b"e\ntwo\n", b"")


def test_silence_is_filled_with_pulses(rig: Rig) -> None:
    rig.launch(rig.spec("r1", python=rig.worker("w", "while not (RUN / 'on').exists(): time.sleep(0.01)")))
    request = FollowRequest(nonce=NONCE, root=str(rig.root), run_id="r1", cursor=Cursor(), pulse_s=0.2)
    ages: list[float] = []
    with rig.start("follow", request) as child:
        assert child.stdout is not None
        for line in child.stdout:
            ages += [frame.heartbeat_age_s for frame in of_kind(frames_in(line), "pulse")]
            if len(ages) == 2:
                (rig.run("r1").path / "on").touch()
    assert len(ages) >= 2
    assert all(0 <= age <= PATIENCE_S for age in ages)


def test_the_end_of_a_quiet_run_is_noticed_at_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the supervisor's end itself: the next look at the files is a minute away."""
    monkeypatch.setattr("remote_payload.follow.FIRST_PAUSE_S", PATIENCE_S)
    rig.launch(rig.spec("r1", python=rig.worker("w", "time.sleep(0.5); (RUN / 'result/ok').write_text('x')")))
    frames: list[Frame] = []
    with Within():
        follow(FollowRequest(nonce=NONCE, root=str(rig.root), run_id="r1", cursor=Cursor()), frames.append)
    assert of_kind(frames, "state")[-1].state.phase == "succeeded"


def test_a_banner_without_a_newline_swallows_no_frame(rig: Rig) -> None:
    request = to_json(rig.launch_request(rig.spec("r1"), follow=True)).encode()
    shell = 'printf "welcome"; exec "$0" -I -S "$1" launch'
    answer = subprocess.run(
        ["sh", "-c", shell, sys.executable, str(rig.pyz)], input=request, capture_output=True, check=True
    )
    assert answer.stdout.startswith(b"welcome")
    assert [frames_in(answer.stdout)[0].kind, frames_in(answer.stdout)[-1].kind] == ["launched", "end"]


def test_a_laptop_that_hangs_up_ends_the_follower_and_not_the_run(rig: Rig) -> None:
    request = rig.launch_request(rig.spec("r1", SelftestJob(duration_s=1.0)), follow=True)
    with rig.start("launch", request) as child:
        assert child.stdout
        assert child.stderr
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 0
    assert of_kind(rig.follow("r1"), "state")[-1].state.phase == "succeeded"


def test_secrets_reach_the_worker_and_no_file_and_no_command_line(rig: Rig) -> None:
    body = "import hashlib; (RUN / 'result/seen').write_text(hashlib.sha256(os.environb[b'TOKEN']).hexdigest())\n"
    body += "while not (RUN / 'on').exists(): time.sleep(0.01)"
    secret = "s3cret-very-much-9f8e7d"
    spec = rig.spec("r1", python=rig.worker("w", body), secret_names=("TOKEN",), environment={"PLAIN": "x"})
    frames = rig.launch(spec, secrets={"TOKEN": secret})
    wait_for((rig.run("r1").result / "seen").exists)
    assert not [line for line in command_lines() if secret.encode() in line]
    (rig.run("r1").path / "on").touch()
    frames += rig.follow("r1")
    assert (rig.run("r1").result / "seen").read_text() == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in "".join(to_json(frame) for frame in frames)
    files = [path for path in rig.root.rglob("*") if path.is_file()]
    assert not [path for path in files if secret.encode() in path.read_bytes()]


@pytest.mark.parametrize("run_id", ["../up", "a b", "a;b", "a\nb", "ü", "", "A", ".hidden", "a" * 101, "a/b", None, 7])
def test_run_ids_that_are_no_file_names_are_refused(rig: Rig, run_id: object) -> None:
    request = rig.launch_request(rig.spec("r1"))
    spec = {**json.loads(to_json(request))["spec"], "run_id": run_id}
    (frame,) = rig.call("launch", raw(request, spec=spec), exit_code=1)
    assert frame.code == "bad_request"  # type: ignore[union-attr]
    assert "$.spec" in frame.message  # type: ignore[union-attr]
    assert not (rig.root / "runs").exists()


def test_unknown_keys_are_refused_by_name(rig: Rig) -> None:
    (frame,) = rig.call("launch", raw(rig.launch_request(rig.spec("r1")), folow=True), exit_code=1)
    assert "$.folow: unknown key" in frame.message  # type: ignore[union-attr]


@pytest.mark.parametrize("request_bytes", [b"", b"{", b"[]", b'{"nonce": "a b c d e f g"}', b'{"nonce": 7}', b"\xff"])
def test_what_is_no_request_gets_no_frame(rig: Rig, request_bytes: bytes) -> None:
    with rig.start("launch", request_bytes) as child:
        stdout, stderr = child.communicate()
    assert (child.returncode, stdout) == (2, b"")
    assert stderr.startswith(b"$")
    assert b"Traceback" not in stderr


def test_a_job_that_does_not_match_its_kind_is_refused(rig: Rig) -> None:
    for changes in ({"job_kind": "standalone"}, {"job_json": "{"}, {"job_json": '{"kind": "tea"}'}):
        (frame,) = rig.launch(rig.spec("r1", **changes), exit_code=1)
        assert frame.code == "bad_request"  # type: ignore[union-attr]
    assert not (rig.root / "runs").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"environment": {"": "x"}},
        {"environment": {"A=B": "x"}},
        {"environment": {"A": "nul\0"}},
        {"environment": {"A": "\ud800"}},
        {"python": "/usr/bin/python3\0"},
        {"payload_sha256": "0" * 64},
    ],
)
def test_what_no_worker_can_be_started_with_is_refused(rig: Rig, changes: dict[str, Any]) -> None:
    (frame,) = rig.launch(rig.spec("r1", **changes), exit_code=1)
    assert frame.code == "bad_request"  # type: ignore[union-attr]
    assert not (rig.root / "runs").exists()


def test_secrets_other_than_named_are_refused(rig: Rig) -> None:
    (frame,) = rig.launch(rig.spec("r1"), secrets={"TOKEN": "value-of-it"}, exit_code=1)
    assert "$.secrets" in frame.message  # type: ignore[union-attr]
    assert "value-of-it" not in frame.message  # type: ignore[union-attr]


def test_a_run_nobody_claimed_is_said_to_be_unknown(rig: Rig) -> None:
    request = f'{{"nonce": "{NONCE}", "root": "{rig.root}", "run_id": "nope"}}'.encode()
    for verb in ("follow", "status", "cancel"):
        (frame,) = rig.call(verb, request, exit_code=1)
        assert frame.code == "no_such_run"  # type: ignore[union-attr]
