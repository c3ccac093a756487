"""A host's `notify_command`: run once when a run is over, bounded, and without any say in what became of the run."""

import json
import stat
from pathlib import Path

import pytest

from remote_payload import end_told
from remote_payload.rundir import RunDir
from remote_payload.schema import RunState, SelftestJob, to_json
from tests.payload.rig import Rig
from tests.support.patience import Within, wait_for


def script(folder: Path, body: str) -> str:
    path = folder / "tell"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def events(run: RunDir) -> list[str]:
    text = run.events.read_text() if run.events.exists() else ""
    return [event["message"] for event in map(json.loads, text.splitlines()) if event["name"] == "notify"]


def test_the_ending_comes_on_standard_input(rig: Rig, tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = script(tmp_path, f'cat > {told}.half; echo "$1" >> {told}.half; mv {told}.half {told}')
    words = (command, "$(touch /tmp/x); 'a b'")
    rig.launch(rig.spec("one", SelftestJob(fail=True), notify_command=words, told_as="cluster"))
    wait_for(told.exists)
    ending, argument = told.read_text().splitlines()
    found = json.loads(ending)
    assert argument == "$(touch /tmp/x); 'a b'"
    assert (found["run_id"], found["phase"], found["told_by"]) == ("one", "failed", "host")
    assert found["host"] == "cluster"  # as people know it, whichever node it ran on
    assert found["text"].startswith("selftest one on cluster: failed")
    assert rig.state("one").phase == "failed"


def test_one_that_fails_is_run_again_and_an_event(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_told, "PAUSES_S", (0.0, 0.0))
    run, tries = over(rig.root), tmp_path / "tries"
    spec = rig.spec("one", notify_command=(script(tmp_path, f"echo x >> {tries}; echo no route >&2; exit 3"),))
    run.spec.write_text(to_json(spec))
    end_told.tell_the_end(run, spec)
    assert tries.read_text() == "x\nx\nx\n"
    assert events(run) == ["`notify_command` of the host: exit code 3: no route (3 tries)"]
    assert rig.state("one").phase == "succeeded"
    (told,) = rig.status("one").states
    assert told.note == "its end was not told by `notify_command`: exit code 3: no route (3 tries)"


def test_one_that_tells_at_the_second_try_has_told_once(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(end_told, "PAUSES_S", (0.0, 0.0))
    run, told = over(tmp_path), tmp_path / "told"
    body = f"[ -e {told}.1 ] || {{ touch {told}.1; exit 1; }}; cat >> {told}"
    end_told.tell_the_end(run, rig.spec("one", notify_command=(script(tmp_path, body),)))
    assert len(told.read_text().splitlines()) == 1
    assert (events(run), end_told.untold(run)) == ([], None)


def over(root: Path) -> RunDir:
    run = RunDir(root / "runs" / "one")
    run.path.mkdir(parents=True)
    run.state.write_text(to_json(RunState(run_id="one", sequence=3, phase="succeeded", started_unix_s=1.0)))
    return run


def test_one_that_hangs_is_ended(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_told, "LONGEST_S", 0.3)
    run = over(tmp_path)
    with Within():
        end_told.tell_the_end(run, rig.spec("one", notify_command=(script(tmp_path, "sleep 60 & sleep 60"),)))
    assert events(run) == ["`notify_command` of the host: ended by force, for it took longer than 0 s"]


def test_one_that_is_not_there(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_told, "PAUSES_S", ())
    run = over(tmp_path)
    end_told.tell_the_end(run, rig.spec("one", notify_command=("/no/such/program",)))
    assert "it cannot be run: [Errno 2]" in events(run)[0]


def test_nothing_is_told_of_a_run_that_goes_on(rig: Rig, tmp_path: Path) -> None:
    run = RunDir(tmp_path / "one")
    run.path.mkdir()
    run.state.write_text(to_json(RunState(run_id="one", sequence=3, phase="running")))
    told = tmp_path / "told"
    end_told.tell_the_end(run, rig.spec("one", notify_command=(script(tmp_path, f"touch {told}"),)))
    assert not told.exists()


def test_it_is_told_once_whoever_settles_it(rig: Rig, tmp_path: Path) -> None:
    run, told = over(tmp_path), tmp_path / "told"
    spec = rig.spec("one", notify_command=(script(tmp_path, f"echo x >> {told}"),))
    run.spec.write_text(to_json(spec))
    end_told.tell_the_end(run, spec)
    end_told.tell_the_end(run, spec)
    end_told.tell_apart(run)
    (run.path / end_told.TOLD).unlink()
    end_told.tell_apart(run)
    wait_for(lambda: told.read_text() == "x\nx\n")
