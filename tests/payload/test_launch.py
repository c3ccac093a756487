"""Launching twice, at once, again after a lost answer, and on hosts that do not take it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from remote_payload.rundir import write_atomically
from remote_payload.schema import RunSpec, SelftestJob, from_json, to_json
from tests.payload.rig import Rig, fill, frames_in, kill, of_kind, wait_for


@pytest.fixture
def counting(rig: Rig) -> str:
    """A worker that leaves one line for every time it is started."""
    started = rig.root.parent / "started"
    return rig.worker("w", f"open({str(started)!r}, 'a').write('x')\n(RUN / 'result/ok').write_text('x')")


def starts(rig: Rig) -> int:
    return len((rig.root.parent / "started").read_text())


def test_a_repeated_launch_adopts_the_run(rig: Rig, counting: str) -> None:
    spec = rig.spec("r1", python=counting)
    (first,) = of_kind(rig.launch(spec, follow=True), "launched")
    again = rig.launch(spec, follow=True)
    (second,) = of_kind(again, "launched")
    assert (first.adopted, second.adopted) == (False, True)
    assert second.state.phase == "succeeded"
    assert len(of_kind(again, "file")) == 1
    assert starts(rig) == 1


def test_another_spec_with_this_run_id_is_refused(rig: Rig, counting: str) -> None:
    rig.launch(rig.spec("r1", python=counting), follow=True)
    (frame,) = rig.launch(rig.spec("r1", python=counting, launched_by="another@laptop"), exit_code=1)
    assert frame.code == "claimed_by_other_spec"  # type: ignore[union-attr]
    assert starts(rig) == 1
    assert from_json(RunSpec, rig.run("r1").spec.read_text()).launched_by == "somebody@laptop"


def test_of_many_launches_at_once_one_starts_and_all_are_answered(rig: Rig, counting: str) -> None:
    request = rig.launch_request(rig.spec("r1", python=counting), follow=True)
    children = [rig.start("launch", request) for _ in range(6)]
    answers = [frames_in(child.communicate(timeout=60)[0]) for child in children]
    assert sorted(of_kind(frames, "launched")[0].adopted for frames in answers) == [False] + [True] * 5
    assert {of_kind(frames, "state")[-1].state.phase for frames in answers} == {"succeeded"}
    assert starts(rig) == 1


def test_of_two_specs_at_once_one_owns_the_run(rig: Rig, counting: str) -> None:
    specs = [rig.spec("r1", python=counting, launched_by=name) for name in ("one", "two")]
    children = [rig.start("launch", rig.launch_request(spec)) for spec in specs]
    answers = [frames_in(child.communicate(timeout=60)[0])[0] for child in children]
    assert sorted(frame.kind for frame in answers) == ["error", "launched"]
    rig.follow("r1")
    assert starts(rig) == 1


@pytest.mark.parametrize("moment", ["claim", "spec.json", "heartbeat", "state.json"])
def test_a_launcher_killed_at_any_moment_can_be_repeated(rig: Rig, counting: str, moment: str) -> None:
    spec = rig.spec("r1", python=counting)
    with rig.start("launch", rig.launch_request(spec)) as child:
        wait_for((rig.run("r1").path / moment).exists)
        kill(child.pid)
    frames = rig.launch(spec, follow=True)
    assert of_kind(frames, "state")[-1].state.phase == "succeeded"
    assert starts(rig) == 1


def test_a_claim_whose_launcher_died_is_taken_over(rig: Rig, counting: str) -> None:
    spec = rig.spec("r1", python=counting)
    rig.run("r1").path.mkdir(parents=True)
    (frame, *_) = rig.launch(spec, follow=True)
    assert (frame.kind, frame.adopted) == ("launched", False)  # type: ignore[union-attr]
    run = rig.run("r2")
    run.path.mkdir(parents=True)
    spec = rig.spec("r2", python=counting)
    write_atomically(run.spec, to_json(spec).encode())
    assert rig.status("r2").unreadable == ("r2: claimed, not started yet; launch it again if nothing follows",)
    frames = rig.launch(spec, follow=True)
    assert of_kind(frames, "launched")[0].adopted is False
    assert starts(rig) == 2


@pytest.mark.parametrize("name", ["with space", "quote'\"", "semi;colon&$(x)", "new\nline", "ünïcödé", "-dash"])
def test_roots_with_strange_names_work(tmp_path: Path, name: str) -> None:
    rig = Rig(tmp_path / name)
    frames = rig.launch(rig.spec("r1"), follow=True)
    assert of_kind(frames, "state")[-1].state.phase == "succeeded"


def test_a_root_behind_a_link_is_the_same_root(rig: Rig) -> None:
    link = rig.root.parent / "link"
    link.symlink_to(rig.root)
    rig.launch(rig.spec("r1", SelftestJob(duration_s=60)))
    rig.running("r1")
    request = f'{{"nonce": "nonce-0123456789", "root": "{link}", "run_id": "r1"}}'.encode()
    (frame,) = rig.call("cancel", request)
    assert frame.answer.state.phase == "cancelled"  # type: ignore[union-attr]
    assert rig.alive("r1") == ()


@pytest.mark.parametrize("root", ["relative/root", "", "~nobody-of-this-name/x", "nul\0byte"])
def test_a_root_that_is_no_absolute_path_is_refused(rig: Rig, root: str) -> None:
    request = rig.launch_request(rig.spec("r1"))
    (frame,) = rig.call("launch", to_json(type(request)(**{**vars(request), "root": root})).encode(), exit_code=1)
    assert frame.code == "bad_request"  # type: ignore[union-attr]


def test_a_file_in_the_way_is_a_root_that_cannot_be_written(rig: Rig) -> None:
    (rig.root / "runs").write_text("in the way")
    (frame,) = rig.launch(rig.spec("r1"), exit_code=1)
    assert frame.code == "root_not_writable"  # type: ignore[union-attr]
    assert "eagle3.toml" in (frame.hint or "")  # type: ignore[union-attr]


def test_a_root_of_another_user_cannot_be_written(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin")
    if python is None:
        pytest.skip("no system Python that another user can run")
    folder = tmp_path_factory.mktemp("others")
    for parent in (folder, *folder.parents[:-2]):
        parent.chmod(0o755)
    pyz = folder / rig.pyz.name
    shutil.copy(rig.pyz, pyz)
    root = folder / "root"
    root.mkdir(mode=0o755)
    request = rig.launch_request(rig.spec("r1"))
    text = to_json(type(request)(**{**vars(request), "root": str(root)}))
    command = [python, "-I", "-S", str(pyz), "launch"]
    answer = subprocess.run(command, input=text.encode(), capture_output=True, user=65534, check=False)
    (frame,) = frames_in(answer.stdout)
    assert frame.code == "root_not_writable"  # type: ignore[union-attr]
    assert list(root.iterdir()) == []


def test_a_full_disk_refuses_the_launch_and_keeps_nothing(small_disk: Path) -> None:
    rig = Rig(small_disk / "root")
    (rig.root / "runs").mkdir()
    fill(small_disk / "filler")
    (frame,) = rig.launch(rig.spec("r1"), exit_code=1)
    assert frame.code == "disk_full"  # type: ignore[union-attr]
    assert list((rig.root / "runs").iterdir()) == []


def test_a_disk_too_full_for_the_reserve_refuses_the_launch_and_keeps_nothing(small_disk: Path) -> None:
    rig = Rig(small_disk / "root")
    fill(small_disk / "filler", leave_bytes=48 * 1024)
    (frame,) = rig.launch(rig.spec("r1"), exit_code=1)
    assert frame.code == "disk_full"  # type: ignore[union-attr]
    assert list((rig.root / "runs").iterdir()) == []


@pytest.mark.parametrize("spare", range(1, 6))
def test_a_disk_without_room_for_more_files_keeps_nothing_either(small_disk: Path, spare: int) -> None:
    """`spare` files fit: the directory, or also the claim, the result folder, the spec, ..."""
    rig = Rig(small_disk / "root")
    (rig.root / "runs").mkdir()
    made: list[Path] = []
    with pytest.raises(OSError, match="No space"):
        fill_with_files(small_disk, made)
    for path in made[:spare]:
        path.unlink()
    (frame,) = rig.launch(rig.spec("r1"), exit_code=1)
    assert frame.code == "disk_full"  # type: ignore[union-attr]
    assert list((rig.root / "runs").iterdir()) == []


def fill_with_files(folder: Path, made: list[Path]) -> None:
    while True:
        path = folder / f"file-{len(made)}"
        path.touch()
        made.append(path)


@pytest.fixture
def disk_rig(small_disk: Path, tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(small_disk / "root")
    yield rig
    rig.clean_up()


def test_a_disk_filled_by_the_job_still_takes_the_final_state(disk_rig: Rig, tmp_path: Path) -> None:
    script = tmp_path / "filler"
    script.write_text('#!/bin/sh\nfor last; do :; done\ncat /dev/zero > "$last/result/big"\nexit 3\n')
    script.chmod(0o755)
    frames = disk_rig.launch(disk_rig.spec("r1", python=str(script)), follow=True)
    final = of_kind(frames, "state")[-1].state
    assert (final.phase, final.exit_code) == ("failed", 3)
    assert disk_rig.state("r1") == final
    assert [file.name for file in of_kind(frames, "manifest")[0].manifest.files] == ["big"]


def test_a_result_too_big_for_the_disk_is_a_full_disk(disk_rig: Rig) -> None:
    frames = disk_rig.launch(disk_rig.spec("r1", SelftestJob(result_bytes=2_000_000)), follow=True)
    final = of_kind(frames, "state")[-1].state
    assert (final.phase, final.failure.kind) == ("failed", "disk_full")


def test_a_disk_that_programs_cannot_be_run_from_will_do(disk_rig: Rig) -> None:
    frames = disk_rig.launch(disk_rig.spec("r1"), follow=True)
    assert of_kind(frames, "state")[-1].state.phase == "succeeded"


def test_folders_that_others_can_write_are_closed_to_them(rig: Rig) -> None:
    for folder in (rig.root / "runs", rig.root / "payloads", rig.root):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
    rig.launch(rig.spec("r1"), follow=True)
    modes = [folder.stat().st_mode & 0o777 for folder in (rig.root, rig.root / "runs", rig.root / "payloads")]
    assert modes == [0o755, 0o700, 0o700]


def test_a_home_for_another_python_does_not_reach_the_worker(rig: Rig) -> None:
    body = "(RUN / 'result/seen').write_text(f\"{os.environ.get('PYTHONHOME')} {os.environ['PYTHONPATH']}\")"
    request = rig.launch_request(rig.spec("r1", python=rig.worker("w", body)), follow=True)
    environment = {**os.environ, "PYTHONHOME": "/nowhere", "PYTHONPATH": "/some/packages"}
    frames = rig.call("launch", request, env=environment)
    assert of_kind(frames, "state")[-1].state.phase == "succeeded"
    assert (rig.run("r1").result / "seen").read_text() == "None /some/packages"


def test_an_environment_that_is_too_long_is_named(rig: Rig) -> None:
    frames = rig.launch(rig.spec("r1", environment={"LONG": "x" * 200_000}), follow=True)
    failure = of_kind(frames, "state")[-1].state.failure
    assert failure.kind == "job"
    assert failure.message.startswith("the job's environment is longer than this host takes")
    assert "128 KiB" in failure.hint
