"""A store of every schema version, as that version wrote it: read, listed, judged and taken in by this one."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import Eagle3Error
from orchestrator.measurements import measurements_of
from orchestrator.records import read_record
from orchestrator.records import upgrade as upgrades
from orchestrator.records.measurement import MeasurementSet
from orchestrator.records.packed import unpacked
from orchestrator.review import review
from orchestrator.store import Store
from orchestrator.store.intake import take_in
from remote_payload.schema import SCHEMA_VERSION
from tests.support.make_store_golden import GOLDEN, imported

VERSIONS = sorted(GOLDEN.iterdir())


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(request.param, tmp_path / "golden"))


@pytest.fixture
def store(golden: Path) -> Store:
    return Store(golden / "home", golden / "project")


def test_no_version_is_missing() -> None:
    assert [path.name for path in VERSIONS] == [f"v{number}" for number in range(1, SCHEMA_VERSION + 1)]
    assert len(upgrades.STEPS) == SCHEMA_VERSION - 1


def test_every_run_is_listed_and_read(store: Store) -> None:
    runs = {run.run_id: run for run in store.list()}
    assert set(runs) == {"golden-run", "golden-failed", "golden-bench", "golden-imported"}
    assert [run.problem for run in runs.values()] == [None] * 4
    run = runs["golden-run"]
    assert (run.tags, run.note, run.verdict, run.has_result) == (("good",), "the first one", "sound", True)
    assert (runs["golden-imported"].model, runs["golden-imported"].phase) == ("Big-Model", "imported")
    assert store.imported("golden-imported") == imported()


@pytest.mark.parametrize("run_id", ["golden-run", "golden-bench"])
def test_a_result_is_judged_and_measured(store: Store, run_id: str) -> None:
    record = store.load(run_id)
    assert store.verify(run_id) == ()
    report = review(store, record)
    assert (report.standalone is not None) == (run_id == "golden-run")
    assert (report.bench is not None) == (run_id == "golden-bench")
    assert measurements_of(store, record).measurements


def test_baselines_of_both_forms_mean_what_they_meant(store: Store) -> None:
    assert store.names.unreadable() == ()
    main = store.baseline("main").current
    kept = store.names.measured(main)
    assert kept is not None
    assert kept.run_id == "golden-run"
    assert kept.measurements[0].series[0].y
    old = store.baseline("old").current
    assert (old.run_id, old.record_sha256, store.names.measured(old)) == ("golden-run", None, None)
    (number,) = store.baseline("plain").current.numbers
    assert (number.metric, number.value, number.unit) == ("output_throughput_tok_s", 90.0, "tok/s")


def test_an_archive_is_taken_in(golden: Path, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    assert take_in(other.home, golden / "golden-run.tar.gz") == ("golden-run", True)
    assert review(other, other.load("golden-run")).standalone is not None


def files_with_a_version(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.json") if b'"schema_version"' in path.read_bytes())


def problem_of_using(store: Store) -> str | None:
    """What is said where something of the store cannot be used."""
    try:
        for run_id in ("golden-run", "golden-bench"):
            review(store, store.load(run_id))
        store.imported("golden-imported")
        store.labels("golden-run")
        for name in ("main", "plain", "old"):
            store.names.measured(store.baseline(name).current)
    except Eagle3Error as error:
        return error.message
    return None


def test_what_a_future_version_wrote_is_refused_by_name(golden: Path, store: Store) -> None:
    """Each file alone is made one of the future."""
    future = SCHEMA_VERSION + 1
    seen = set()
    for path in files_with_a_version(golden):
        text = path.read_text()
        path.write_text(re.sub(r'"schema_version":( ?)\d+', rf'"schema_version":\g<1>{future}', text))
        problem = problem_of_using(store)
        if problem is not None:
            seen.add(path.name)
            assert "newer" in problem or "expected sha256" in problem or "bytes" in problem, path
        path.write_text(text)
    assert {"run.json", "measurements.json", "labels.json", "main.json", "golden-run.json"} <= seen


def test_a_step_a_version_brings_a_record_up() -> None:
    """The mechanism, with two versions that do not exist."""

    def second(name: str, value: dict[str, Any]) -> dict[str, Any]:
        return {"schema_version": 2, "label": f"{name} {value['title']}"}

    def third(_: str, value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "label": value["label"].upper()}

    old = {"schema_version": 1, "title": "x"}
    steps = (second, third)
    assert upgrades.upgraded(MeasurementSet, dict(old), steps, 3) == {
        "schema_version": 3,
        "label": "MEASUREMENTSET X",
    }
    newest = {"schema_version": 2, "label": "a"}
    assert upgrades.upgraded(MeasurementSet, newest, steps, 3) == {"schema_version": 3, "label": "A"}
    for other in (
        {"schema_version": 3},
        {"schema_version": 4},
        {"schema_version": True},
        {"schema_version": 0},
        {},
        [],
        7,
    ):
        assert upgrades.upgraded(MeasurementSet, other, steps, 3) == other


def test_a_record_is_brought_up_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (lambda name, value: {key: item for key, item in value.items() if key != "old_key"},)
    monkeypatch.setattr(upgrades.upgraded, "__defaults__", (steps, 2))
    monkeypatch.setattr("orchestrator.records.reading.SCHEMA_VERSION", 2)
    value = {"schema_version": 1, "run_id": "r", "origin": "imported", "tool": "t", "job_kind": "imported",
             "measurements": [], "old_key": 1}  # fmt: skip
    assert read_record(MeasurementSet, json.dumps(value)).schema_version == 2
    with pytest.raises(Eagle3Error, match="`old_key`: unknown key"):
        read_record(MeasurementSet, json.dumps({**value, "schema_version": 2}))


def test_a_packed_record_is_what_it_was(golden: Path) -> None:
    path = golden / "project" / "records" / "golden-run.json"
    measured, sha256 = unpacked(path.read_bytes(), where=str(path))
    assert sha256 == json.loads(path.read_text())["sha256"]
    assert unpacked(path.read_bytes().replace(b"\n", b"\r\n"), where="crlf") == (measured, sha256)
