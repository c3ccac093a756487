"""Baselines on disk: records that never change, names whose history only grows, two processes at once."""

import base64
import json
import multiprocessing
import os
import stat
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import NotFoundError, StoreError
from orchestrator.records import BaselineEntry
from orchestrator.records import packed as packing
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series
from orchestrator.records.packed import packed, sha256_of, unpacked
from orchestrator.store import Store


def measured(run_id: str = "run-1", *, prompts: int = 3, value: float = 1.5) -> MeasurementSet:
    keys = tuple(f"prompt-{number}" for number in range(prompts))
    series = Series(
        metric="accept_length_pooled", unit="tokens", definition="d", level="prompt", keys=keys, y=(value,) * prompts,
        x=(1.0,) * prompts,
    )  # fmt: skip
    case = (Fact(name="side", value="spec"), Fact(name="note", value='"name": 1,\n "value": {'))
    return MeasurementSet(
        run_id=run_id, origin="own", tool="t", job_kind="bench",
        measurements=(Measurement(case=case, series=(series,), hard=(Fact(name="gpu", value=None),)),),
    )  # fmt: skip


def promoted(store: Store, name: str, one: MeasurementSet) -> BaselineEntry:
    """What the name then means."""
    return store.names.promote(name, one, source="me", note="", now=1.0).current


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home", tmp_path / "project")


def test_a_record_is_read_as_it_was_and_its_lines_can_be_compared() -> None:
    one, other = measured(), replace(measured(), tool="u")
    text = packed(one).decode()
    assert unpacked(text, where="f") == (one, sha256_of(one))
    assert '{"name": "side", "value": "spec"}' in text
    assert '{"name": "gpu", "value": null}' in text
    changed = [a for a, b in zip(text.splitlines(), packed(other).decode().splitlines(), strict=True) if a != b]
    assert [line.split('"')[1] for line in changed] == ["sha256", "tool"]
    assert packed(one) == packed(one)


def test_raw_numbers_are_packed() -> None:
    many = measured(prompts=10_000)
    text = packed(many)
    assert len(text) < 60_000
    assert unpacked(text, where="f")[0] == many


def test_whoever_formats_the_file_or_packs_it_anew_changes_nothing() -> None:
    value = json.loads(packed(measured()))
    assert unpacked(json.dumps(value, sort_keys=True), where="f")[0] == measured()
    series = value["content"]["measurements"][0]["series"][0]
    arrays = zlib.decompress(base64.b64decode(series["packed"]))
    series["packed"] = base64.b64encode(zlib.compress(arrays, 1)).decode()
    assert unpacked(json.dumps(value), where="f")[0] == measured()


@pytest.mark.parametrize(
    "hole",
    [
        "",
        "!",
        "AAAA",
        7,
        None,
        base64.b64encode(zlib.compress(b"{}")).decode(),
        base64.b64encode(zlib.compress(b"[")).decode(),
        base64.b64encode(zlib.compress(b'{"keys":[],"clusters":[],"y":[NaN],"x":[]}')).decode(),
    ],
)
def test_packed_numbers_that_are_none_are_refused_with_their_place(hole: object) -> None:
    value = json.loads(packed(measured()))
    value["content"]["measurements"][0]["series"][0]["packed"] = hole
    with pytest.raises(StoreError, match="some/file: series 1: expected packed"):
        unpacked(json.dumps(value), where="some/file")


@pytest.mark.parametrize(
    "content", [None, [], {}, {"measurements": 7}, {"measurements": [[]]}, {"measurements": [{"series": [1]}]}]
)
def test_other_content_is_refused(content: object) -> None:
    value = {"schema_version": 1, "sha256": "0", "content": content}
    with pytest.raises(StoreError, match="some/file"):
        unpacked(json.dumps(value), where="some/file")


@pytest.mark.parametrize(
    ("version", "words"),
    [(99, "some/file: .*written by a newer eagle3-remote: 99"), (0, "from 1, found: 0"), (True, "found: True")],
)
def test_a_record_of_the_future_is_said_to_be_one(version: object, words: str) -> None:
    value = {**json.loads(packed(measured())), "schema_version": version}
    with pytest.raises(StoreError, match=words):
        unpacked(json.dumps(value), where="some/file")


@pytest.mark.parametrize("keep", [0, 100, -3])
def test_a_cut_record_is_told_where_to_get_it_again(keep: int) -> None:
    with pytest.raises(StoreError, match="some/file") as told:
        unpacked(packed(measured())[:keep], where="some/file")
    assert "take it from git, or make it of its run again" in (told.value.hint or "")


def test_a_packed_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MAX_ARRAY_BYTES", 1000)
    with pytest.raises(StoreError, match="series 1: expected packed numbers, found: more than"):
        unpacked(packed(measured(prompts=1000)), where="f")


def test_a_record_that_is_there_stays(store: Store) -> None:
    first = promoted(store, "a", measured())
    assert first.record_sha256 == sha256_of(measured())
    assert promoted(store, "b", measured(value=2.0)) == first
    assert store.names.measured(first) == measured()


def test_a_broken_record_is_made_again_where_its_run_still_says_the_same(store: Store) -> None:
    first = promoted(store, "a", measured())
    path = store.names.folder / "records" / "run-1.json"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"bench"', b'"bunch"'))
    with pytest.raises(StoreError, match="expected the content of sha256") as broken:
        store.names.measured(first)
    assert "make it of its run again: baseline set" in (broken.value.hint or "")
    with pytest.raises(StoreError, match="expected the content of sha256") as other:
        promoted(store, "a", measured(value=2.0))
    assert "baseline rm a" in (other.value.hint or "")
    assert promoted(store, "b", measured()) == first
    assert path.read_bytes() == whole
    assert store.names.measured(first) == measured()


def test_a_projects_files_are_as_readable_as_its_other_ones(store: Store) -> None:
    old = os.umask(0o027)
    try:
        promoted(store, "a", measured())
        promoted(replace(store, project=None), "own", measured())
    finally:
        os.umask(old)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in sorted(store.names.folder.rglob("*"))}
    assert modes == {"a.json": 0o640, "records": 0o750, "run-1.json": 0o640}
    own = store.home / "baselines"
    assert {stat.S_IMODE(path.stat().st_mode) for path in (own / "own.json", own / "records" / "run-1.json")} == {0o600}


def test_what_a_merge_leaves_behind_is_told(store: Store) -> None:
    promoted(store, "a", measured("run-1"))
    promoted(store, "b", measured("run-2"))
    path = store.names.folder / "a.json"
    text = path.read_text()
    path.write_text(f"<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> theirs\n")
    with pytest.raises(StoreError, match="merge conflict") as conflict:
        store.baseline("a")
    assert "both entries of `history`, oldest first" in (conflict.value.hint or "")
    assert store.names.orphans() == ()  # an unreadable name may need anything
    path.unlink()
    assert [item.name for item in store.names.orphans()] == ["run-1.json"]
    record = store.names.folder / "records" / "run-2.json"
    record.write_text("<<<<<<< HEAD\n" + record.read_text())
    with pytest.raises(StoreError, match="merge conflict"):
        store.names.measured(store.baseline("b").current)


def test_a_record_goes_with_the_last_name_whose_history_needs_it(store: Store) -> None:
    for number, name in enumerate(("a", "a", "b")):
        run_id = f"run-{number}"
        promoted(store, name, measured(run_id))
    shared = promoted(store, "b", measured("run-0"))
    assert store.names.remove("a") == ("run-1",)
    assert store.names.measured(shared) == measured("run-0")
    assert store.names.remove("b") == ("run-0", "run-2")
    assert list((store.names.folder / "records").iterdir()) == []
    with pytest.raises(NotFoundError):
        store.names.remove("b")


@pytest.mark.parametrize("run_id", ["../../evil", "", "A", "a/b", ".x"])
def test_a_name_from_elsewhere_cannot_lead_out_of_the_folder(store: Store, run_id: str) -> None:
    path = store.names.folder / "main.json"
    path.parent.mkdir()
    entry = {"run_id": run_id, "record_sha256": "0" * 64, "set_at_unix_s": 1.0}
    path.write_text(json.dumps({"schema_version": 1, "name": "main", "history": [entry]}))
    with pytest.raises(StoreError, match="expected a run id"):
        store.baseline("main")


def test_a_name_must_be_its_files(store: Store) -> None:
    store.set_baseline("main", BaselineEntry(run_id="r", set_at_unix_s=1))
    (store.names.folder / "main.json").rename(store.names.folder / "other.json")
    with pytest.raises(StoreError, match="expected the baseline `other`, found: main"):
        store.baseline("other")


def _promote(home: Path, project: Path, first: int) -> None:
    store = Store(home, project)
    for number in range(first, first + 8):
        run_id = f"run-{number}"
        promoted(store, "shared", measured(run_id))
        store.add_imported(replace(measured(f"theirs-{number}"), origin="imported", job_kind="imported"))
        store.add_imported(replace(measured("same"), origin="imported", job_kind="imported"))


def test_two_processes_promote_and_import_at_once(store: Store) -> None:
    context = multiprocessing.get_context("spawn")
    assert store.project is not None
    workers = [context.Process(target=_promote, args=(store.home, store.project, first)) for first in (0, 100)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    history = store.baseline("shared").history
    assert len(history) == 16
    assert all(store.names.measured(entry) is not None for entry in history)
    assert len(store.list()) == 17
    assert [run for run in store.list() if run.problem] == []


def _name_and_forget(home: Path, project: Path, name: str) -> None:
    store = Store(home, project)
    for _ in range(12):
        store.names.promote(name, measured("shared-run"), source="me", note="", now=1.0)
        assert store.names.measured(store.baseline(name).current) is not None
        store.names.remove(name)
    store.names.promote(name, measured("shared-run"), source="me", note="", now=1.0)


def test_a_record_that_two_processes_need_is_never_removed_under_one(store: Store) -> None:
    context = multiprocessing.get_context("spawn")
    assert store.project is not None
    workers = [
        context.Process(target=_name_and_forget, args=(store.home, store.project, name)) for name in ("one", "two")
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert all(store.names.measured(store.baseline(name).current) is not None for name in ("one", "two"))
