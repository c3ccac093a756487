"""kill -9 at every step to the disk: nothing is lost but what was being written, and the next process goes on."""

import contextlib
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import NotFoundError
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series
from orchestrator.store import Store, folders, index
from orchestrator.store.archive import archived, run_files
from orchestrator.store.intake import take_in
from orchestrator.store.rebuild import reindex
from tests.support.made_runs import made_run, put_files

WRITES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "os.link", "os.symlink"}
NEVER = 10**9

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of itself")


def measured(run_id: str) -> MeasurementSet:
    series = Series(metric="tpot_s", unit="s", definition="d", level="prompt", keys=("a", "b"), y=(0.01, 0.02))
    case = (Fact(name="side", value="spec"),)
    return MeasurementSet(
        run_id=run_id,
        origin="imported",
        tool="t",
        job_kind="imported",
        measurements=(Measurement(case=case, series=(series,)),),
    )


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with runs, labels, baselines and an archive beside it."""
    folder = tmp_path_factory.mktemp("before")
    store = Store(folder / "home", folder / "project")
    for run_id in ("kept", "labelled", "updated", "removed"):
        put_files(store.begin(made_run(run_id)), {"a": b"b"})
    store.label("labelled", tags=["+old"])
    store.names.promote("main", measured("kept"), source="me", note="", now=1)
    store.names.promote("gone", measured("other"), source="me", note="", now=1)
    away = Store(folder / "away")
    put_files(away.begin(made_run("taken")), {"a": b"b"})
    (folder / "taken.tar.gz").write_bytes(archived("taken", run_files(away.run_dir("taken"))))
    return folder


def everything(folder: Path) -> None:
    """One of everything that writes."""
    store = Store(folder / "home", folder / "project")
    store.begin(made_run("begun"))
    store.update(replace(made_run("updated", sequence=7), state_seen_unix_s=9.0))
    store.label("labelled", tags=["+new"], note="said")
    store.keep_verdict("kept", "sound")
    store.add_imported(measured("imported"), b"raw")
    store.names.promote("main", measured("imported"), source="me", note="", now=2)
    store.names.remove("gone")
    take_in(store.home, folder / "taken.tar.gz")
    store.remove("removed")
    store.list()


def killed(folder: Path, at: int) -> tuple[bool, int]:
    """Do everything in a process of its own that is killed before its step `at`: whether it was, and its steps."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        steps = 0

        def step(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal steps
            opens = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if event in WRITES or opens:
                steps += 1
                if steps == at:
                    os.kill(os.getpid(), signal.SIGKILL)

        status = 1
        try:
            sys.addaudithook(step)
            everything(folder)
            status = 0
        finally:
            os.write(write_end, str(steps).encode())
            os._exit(status)
    os.close(write_end)
    said = os.read(read_end, 100)
    os.close(read_end)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True, at
    assert os.waitstatus_to_exitcode(status) == 0
    return False, int(said)


def check(folder: Path, before: Path) -> None:
    """What holds whatever was cut off."""
    store = Store(folder / "home", folder / "project")
    runs = {run.run_id: run for run in store.list()}
    assert [run for run in runs.values() if run.problem is not None] == []
    assert {"kept", "labelled", "updated"} <= set(runs)
    old = run_files(Store(before / "home").run_dir("kept"))
    assert {**run_files(store.run_dir("kept")), **old} == run_files(store.run_dir("kept"))
    assert store.labels("labelled").tags in (("old",), ("old", "new"))
    for run_id in runs:
        if run_id == "imported":
            assert store.imported(run_id) == measured("imported")
        else:
            assert store.load_exact(run_id).run_id == run_id
            assert store.verify(run_id) == () or run_id == "begun"
    assert store.names.unreadable() == ()
    main = store.baseline("main")
    assert [item.run_id for item in main.history] in (["kept"], ["kept", "imported"])
    for item in main.history:
        assert store.names.measured(item) is not None
    with contextlib.suppress(NotFoundError):  # it may be gone, but not half
        assert store.names.measured(store.baseline("gone").current) is not None


def test_killed_before_every_step(before: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "FEW", 0)  # also the index is written
    shutil.copytree(before, tmp_path / "whole")
    was_killed, steps = killed(tmp_path / "whole", NEVER)
    assert not was_killed
    assert steps > 40
    monkeypatch.setattr(folders, "LEFTOVER_AGE_S", -1.0)
    for at in range(1, steps + 1):
        folder = tmp_path / str(at)
        shutil.copytree(before, folder)
        assert killed(folder, at)[0]
        check(folder, before)
        if at % 5 == 0:
            store = Store(folder / "home", folder / "project")
            reindex(store.home, store.names.folders)
            assert [path for path in folder.rglob(".*") if path.name != ".lock"] == []
            check(folder, before)
        shutil.rmtree(folder)
