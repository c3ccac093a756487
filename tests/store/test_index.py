"""The index: never wrong, whatever happened to it or to the runs, and quick where there are many."""

import json
import multiprocessing
import os
import shutil
import time
from pathlib import Path

import pytest

from orchestrator.records import RunLabels, record_bytes
from orchestrator.store import Store, index
from orchestrator.store.summary import read_summary
from remote_payload.rundir import RunDir
from tests.support.made_runs import made_run, put_many

MANY = index.FEW + 4


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "home")
    put_many(store.home, MANY)
    return store


def fresh(store: Store) -> dict[str, object]:
    """What every run's files say now."""
    return {path.name: read_summary(RunDir(path)) for path in (store.home / "runs").iterdir() if path.name[0] != "."}


def by_id(store: Store) -> dict[str, object]:
    return {run.run_id: run for run in store.list()}


def test_a_listed_run_is_not_read_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = store.list()
    assert (store.home / index.NAME).is_file()

    def never(run: RunDir) -> None:
        raise AssertionError(f"read again: {run.path}")

    monkeypatch.setattr(index, "read_summary", never)
    assert store.list() == first


def test_few_runs_make_no_index(tmp_path: Path) -> None:
    store = Store(tmp_path / "home")
    put_many(store.home, index.FEW)
    assert len(store.list()) == index.FEW
    assert not (store.home / index.NAME).exists()


def test_every_change_of_a_run_is_seen(store: Store) -> None:
    store.list()
    store.update(made_run("run-000003", phase="failed", sequence=9, created_unix_s=1767323048.0))
    store.label("run-000004", tags=["+good"], note="fine")
    store.remove("run-000005")
    (store.run_dir("run-000006").path / "run.json").write_text("{")
    run = store.run_dir("run-000007")
    run.result.mkdir()
    run.manifest.write_text("{}")
    store.keep_verdict("run-000007", "sound")
    store.begin(made_run("new", created_unix_s=5.0))
    seen = by_id(store)
    assert seen == fresh(store)
    assert seen["run-000003"].phase == "failed"  # type: ignore[attr-defined]
    assert seen["run-000004"].tags == ("good",)  # type: ignore[attr-defined]
    assert "run-000005" not in seen
    assert seen["run-000006"].problem is not None  # type: ignore[attr-defined]
    assert seen["run-000007"].verdict == "sound"  # type: ignore[attr-defined]
    assert store.list()[-1].run_id in {"new", "run-000006"}


def test_a_change_in_the_same_moment_and_of_the_same_size_is_seen(store: Store) -> None:
    path = store.run_dir("run-000003").path / "run.json"
    for phase in ("failed", "killed") * 20:  # six letters each
        store.update(made_run("run-000003", phase=phase, sequence=9, created_unix_s=1767323048.0))  # type: ignore[arg-type]
        os.utime(path, ns=(1, 1))
        assert by_id(store)["run-000003"].phase == phase  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b"succeeded", b"failed..."),
        lambda data: data.replace(b'"version": 1', b'"version": 2'),
        lambda data: b"\xff" * 100,
        lambda data: b"[" * 100_000,
        lambda data: b"{}",
        lambda data: b"[]\n[]\n",
    ],
)
def test_a_damaged_index_costs_time_and_nothing_else(store: Store, damage) -> None:  # type: ignore[no-untyped-def]
    expected = store.list()
    path = store.home / index.NAME
    path.write_bytes(damage(path.read_bytes()))
    assert store.list() == expected
    json.loads(path.read_bytes().splitlines()[0])
    assert store.list() == expected


def test_an_index_in_a_place_that_cannot_be_written_is_done_without(store: Store) -> None:
    (store.home / index.NAME).mkdir()
    assert len(store.list()) == MANY


def _label_and_list(home: Path, first: int) -> None:
    store = Store(home)
    for number in range(first, first + 8):
        store.label(f"run-{number:06d}", tags=["+seen"])
        assert len(store.list()) == MANY


def test_two_processes_label_and_list_at_once(store: Store) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_label_and_list, args=(store.home, first)) for first in (0, 8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert by_id(store) == fresh(store)
    assert sum(run.tags == ("seen",) for run in store.list()) == 16


def test_three_thousand_runs_are_listed_at_once(store: Store) -> None:
    put_many(store.home, 3000, first=100)
    assert len(store.list()) == 3000 + MANY
    begun_s = time.process_time()
    assert len(store.list()) == 3000 + MANY
    assert time.process_time() - begun_s < 0.5  # 0.1 s on an idle machine
    shutil.rmtree(store.home / "runs")
    assert store.list() == ()


def test_labels_of_another_version_or_broken_do_not_hide_a_run(store: Store) -> None:
    path = store.run_dir("run-000003").path / "labels.json"
    path.write_bytes(record_bytes(RunLabels(tags=("a",), note="n")).replace(b'"n"', b"7"))
    seen = by_id(store)["run-000003"]
    assert (seen.phase, seen.tags, seen.note) == ("succeeded", ("a",), "")  # type: ignore[attr-defined]
