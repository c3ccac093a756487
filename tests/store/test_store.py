import json
import multiprocessing
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import ClaimedError, InvalidRunError, NotFoundError, StoreError, UsageError
from orchestrator.records import BaselineEntry, BaselineNumber
from orchestrator.store import Store
from tests.support.made_runs import made_run


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home")


def test_the_default_store_follows_the_environment_and_asking_creates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EAGLE3_REMOTE_HOME", str(tmp_path / "here"))
    store = Store.default()
    assert store.home == tmp_path / "here"
    assert store.list() == ()
    assert store.baselines() == ()
    assert not store.home.exists()
    monkeypatch.delenv("EAGLE3_REMOTE_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert Store.default().home.name == "eagle3-remote"


def test_a_begun_run_is_known_and_private(store: Store) -> None:
    record = made_run(phase=None)
    run = store.begin(record)
    assert store.load(record.run_id) == record
    assert json.loads(run.spec.read_text())["run_id"] == record.run_id
    assert stat.S_IMODE((run.path / "run.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(run.path.stat().st_mode) == 0o700
    (summary,) = store.list()
    assert (summary.phase, summary.host, summary.has_result) == ("unknown", "gpu1", False)


def test_begin_is_safe_to_repeat_and_refuses_another_spec(store: Store) -> None:
    record = made_run()
    assert store.begin(record) == store.begin(record)
    with pytest.raises(ClaimedError, match=record.run_id):
        store.begin(replace(record, spec=replace(record.spec, python="/other")))
    assert [path.name for path in (store.home / "runs").iterdir()] == [record.run_id]  # nothing half-made beside it


def test_update_never_goes_back_to_an_older_state(store: Store) -> None:
    newer, older = made_run(phase="succeeded", sequence=5), made_run(phase="running", sequence=4)
    store.begin(older)
    store.update(newer)
    store.update(older)
    store.update(made_run(phase=None))
    assert store.load(newer.run_id) == newer


def test_references_id_beginning_and_last(store: Store) -> None:
    first, second = made_run("run-a1", created_unix_s=10), made_run("run-b2", created_unix_s=20)
    store.begin(second)
    store.begin(first)
    assert store.load("run-a").run_id == "run-a1"
    assert store.load("last").run_id == "run-b2"
    assert [run.run_id for run in store.list()] == ["run-b2", "run-a1"]
    with pytest.raises(NotFoundError, match="run-a1, run-b2"):
        store.load("run-")
    with pytest.raises(NotFoundError) as missing:
        store.load("rum-a1")
    assert missing.value.hint == "did you mean: run-a1, run-b2"


def test_last_of_nothing_and_far_names_say_what_to_do(store: Store) -> None:
    with pytest.raises(NotFoundError, match="no run"):
        store.load("last")
    with pytest.raises(NotFoundError) as missing:
        store.load("zzz")
    assert missing.value.hint is not None
    assert "runs list" in missing.value.hint


@pytest.mark.parametrize("reference", ["", "../x", "a b", "A", "a;rm", "ü", "a\n", ".hidden", "-rf", "a/b", "x" * 101])
def test_strange_ids_are_refused_before_they_become_paths(store: Store, reference: str) -> None:
    with pytest.raises(UsageError, match="expected a run id"):
        store.load(reference)


@pytest.mark.parametrize("name", ["", "../x", "a b", "A", "a;rm", "ü", "a\n", ".hidden", "-rf", "a/b", "x" * 65])
def test_strange_baseline_names_are_refused(store: Store, name: str) -> None:
    with pytest.raises(UsageError, match="expected a baseline's name"):
        store.baseline(name)
    with pytest.raises(UsageError):
        store.set_baseline(name, BaselineEntry(run_id="r", set_at_unix_s=1))


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda text: text[:40], "expected JSON"),
        (lambda text: "", "expected JSON"),
        (lambda text: "[]", "spec"),
        (lambda text: text.replace('"job_kind":"standalone"', '"job_kind":7'), "job_kind"),
        (lambda text: text.replace('"phase":"succeeded"', '"phase":null'), "state.phase"),
        (lambda text: text.replace('"host"', '"hots"'), "host"),
        (lambda text: text.replace("run-a1", "run-b2"), "run-b2"),
        (lambda text: "\udcff", "expected UTF-8"),
    ],
)
def test_a_broken_run_is_named_and_never_breaks_the_listing(store: Store, damage, expected: str) -> None:  # type: ignore[no-untyped-def]
    run = store.begin(made_run("run-a1"))
    store.begin(made_run("good"))
    path = run.path / "run.json"
    path.write_bytes(damage(path.read_text()).encode(errors="surrogateescape"))
    good, broken = store.list()
    assert (good.run_id, good.phase) == ("good", "succeeded")
    assert (broken.run_id, broken.phase) == ("run-a1", "unreadable")
    assert broken.problem is not None
    assert expected in broken.problem
    with pytest.raises(StoreError) as failure:
        store.load("run-a1")
    assert str(path) in failure.value.message
    assert store.load("last").run_id == "good"
    store.remove("run-a1")
    assert [summary.run_id for summary in store.list()] == ["good"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"tags"', '"tgas"', "`tgas`: unknown key"),
        ('"sequence":3', '"sequence":"3"', "`state.sequence`: expected a valid integer, found: '3'"),
        ('"schema_version":1,"host"', '"schema_version":9,"host"', "written by a newer eagle3-remote: 9"),
    ],
)
def test_a_run_that_is_used_is_validated_whole(store: Store, old: str, new: str, expected: str) -> None:
    path = store.begin(made_run("run-a1")).path / "run.json"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(StoreError) as failure:
        store.load("run-a1")
    assert expected in failure.value.message


def test_a_folder_without_a_record_is_listed_as_unreadable(store: Store) -> None:
    (store.home / "runs" / "empty").mkdir(parents=True)
    (summary,) = store.list()
    assert summary.phase == "unreadable"


def test_a_baselines_run_cannot_be_removed(store: Store) -> None:
    record = made_run()
    store.begin(record)
    store.set_baseline("best", BaselineEntry(run_id=record.run_id, set_at_unix_s=1))
    with pytest.raises(InvalidRunError, match="best"):
        store.remove(record.run_id)
    store.names.remove("best")
    store.remove(record.run_id)
    assert store.list() == ()
    with pytest.raises(NotFoundError):
        store.remove(record.run_id)


def test_a_baseline_keeps_its_history(store: Store) -> None:
    first = BaselineEntry(run_id="run-a1", source="me@laptop", set_at_unix_s=1)
    number = BaselineNumber(metric="output_throughput_tok_s", value=90.0, unit="tok/s")
    second = BaselineEntry(numbers=(number,), note="no drafter", set_at_unix_s=2)
    store.set_baseline("plain", first)
    assert store.set_baseline("plain", second).current == second
    assert store.baseline("plain").history == (first, second)
    assert [baseline.name for baseline in store.baselines()] == ["plain"]
    waited = replace(first, set_at_unix_s=1.5)  # looked at the clock, then waited for the other's lock
    assert store.set_baseline("plain", waited).current.set_at_unix_s == 2
    turned_back = replace(first, set_at_unix_s=-1000.0)
    assert store.set_baseline("plain", turned_back).current == turned_back
    with pytest.raises(NotFoundError) as missing:
        store.baseline("plian")
    assert missing.value.hint == "did you mean: plain"


def test_a_broken_baseline_names_file_and_key(store: Store) -> None:
    store.set_baseline("plain", BaselineEntry(run_id="r", set_at_unix_s=1))
    path = store.home / "baselines" / "plain.json"
    path.write_text(path.read_text().replace('"run_id": "r"', '"run_id": null'))
    with pytest.raises(StoreError, match=r"plain\.json: `history\[0\]`: a baseline is either a run or typed numbers"):
        store.baseline("plain")


def test_host_notes_are_a_cache(store: Store) -> None:
    key = "me@gpu 1';\n:22"
    assert store.host_note(key) is None
    store.note_host(key, {"python": "/usr/bin/python3"})
    assert store.host_note(key) == {"python": "/usr/bin/python3"}
    assert store.host_note("other") is None
    for path in (store.home / "hosts").iterdir():
        path.write_text("{")
    assert store.host_note(key) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="Permission denied"):
        Store(tmp_path / "home").begin(made_run())


def test_a_store_below_a_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as failure:
        Store(tmp_path / "file" / "home").begin(made_run())
    assert failure.value.hint is not None
    assert "EAGLE3_REMOTE_HOME" in failure.value.hint


def _add_numbers(home: Path, first: int) -> None:
    store = Store(home)
    for value in range(first, first + 10):
        number = BaselineNumber(metric="m", value=float(value))
        store.set_baseline("shared", BaselineEntry(numbers=(number,), set_at_unix_s=float(value)))


def test_two_processes_lose_nothing_of_each_other(store: Store) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_add_numbers, args=(store.home, first)) for first in (0, 100)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert len(store.baseline("shared").history) == 20


def test_a_listing_starts_without_the_heavy_imports(store: Store) -> None:
    store.begin(made_run())
    code = (
        "import sys; from orchestrator.store import Store; runs = Store.default().list(); assert len(runs) == 1;"
        "heavy = ('pydantic', 'numpy', 'scipy', 'fabric', 'paramiko', 'rich', 'filelock', 'remote_payload.schema');"
        "print([name for name in heavy if name in sys.modules])"
    )
    environment = {**os.environ, "EAGLE3_REMOTE_HOME": str(store.home)}
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
