"""`eagle3-remote runs list|tag|note|export|import|reindex`."""

import dataclasses
import json
import os
from pathlib import Path

import pytest

from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series
from orchestrator.store import Store
from tests.cli.conftest import Eagle
from tests.cli.test_runs_baseline_diff import put_run
from tests.support.made_runs import made_run


def imported(run_id: str = "other-1") -> MeasurementSet:
    series = Series(metric="tpot_s", unit="s", definition="d", level="prompt", keys=("a", "b"), y=(0.01, 0.02))
    return MeasurementSet(
        run_id=run_id,
        origin="imported",
        tool="other tool 1",
        job_kind="imported",
        created_unix_s=50.0,
        measurements=(
            Measurement(
                case=(),
                series=(series,),
                hard=(Fact(name="target", value="Big-Model"), Fact(name="draft", value=None)),
            ),
        ),
        unknown=("the seed",),
    )


def listed(eagle: Eagle, *filters: str) -> list[str]:
    return [run["run_id"] for run in eagle("runs", "list", "--json", *filters).json["runs"]]


def test_a_listing_shows_what_is_asked_for(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7, created=10.0)
    store.begin(made_run("run-b2", phase="failed", created_unix_s=1_700_000_000.0))
    store.add_imported(imported())
    eagle("runs", "tag", "run-a1", "+good", "nightly")
    eagle("runs", "tag", "run-b2", "+nightly")
    assert listed(eagle) == ["run-b2", "other-1", "run-a1"]
    assert listed(eagle, "--host", "gpu1") == ["run-b2", "run-a1"]
    assert listed(eagle, "--host", "gpu") == []
    assert listed(eagle, "--job", "imported") == ["other-1"]
    assert listed(eagle, "--tag", "nightly") == ["run-b2", "run-a1"]
    assert listed(eagle, "--tag", "nightly", "--tag", "good") == ["run-a1"]
    assert listed(eagle, "--model", "big-model") == ["other-1"]
    assert listed(eagle, "--model", "DRAFTER") == ["run-b2", "run-a1"]
    assert listed(eagle, "--since", "2023-11-14") == ["run-b2"]
    assert listed(eagle, "--since", "2023-11-15T00:00:00+00:00") == []
    assert listed(eagle, "--since", "7d") == []
    assert listed(eagle, "--limit", "2") == ["run-b2", "other-1"]
    assert eagle("runs", "list", "--tag", "none").out == "none of 3 runs fits\n"
    assert listed(eagle, "--job", "bench") == listed(eagle, "--verdict", "Mis_wired") == []
    unknown = eagle("runs", "list", "--job", "nope").err
    assert unknown.startswith("error: --job: expected one of bench, ")
    assert unknown.endswith("selftest, standalone, sweep, found: 'nope'\n")
    for words in (("--job", "nope"), ("--verdict", "slowest"), ("--verdict", "", "--json")):
        answer = eagle("runs", "list", *words)
        assert (answer.code, answer.out) == (2, "")
        assert "expected one of b" in answer.err
    forged = "bench\nrun-c3  bench  gpu1\x1b[2J\u202e"
    store.add_imported(dataclasses.replace(imported("evil"), job_kind=forged, host="a\nb"))
    text = eagle("runs", "list").out
    assert len(text.splitlines()) == 5
    assert "bench\\nrun-c3  bench  gpu1\\x1b[2J\\u202e" in text
    assert "good nightly" in text
    assert "imported" in text


@pytest.mark.parametrize("moment", ["yesterday", "", "7", "7y", "-1d", "2026-13-01", "9999999d", "+100000-01-01"])
def test_a_since_that_is_no_time_is_a_usage_error(store: Store, eagle: Eagle, moment: str) -> None:
    answer = eagle("runs", "list", "--since", moment)
    assert answer.code == 2
    assert "expected 30m, 12h, 7d, 2w" in answer.err


def test_a_verdict_is_listed_once_somebody_looked(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7)
    assert eagle("runs", "list", "--json").json["runs"][0]["verdict"] is None
    assert eagle("runs", "list").out.splitlines()[1].endswith("yes")
    eagle("runs", "show", "run-a1")
    assert eagle("runs", "list").out.splitlines()[1].endswith("sound")
    assert listed(eagle, "--verdict", "Sound") == ["run-a1"]
    assert listed(eagle, "--verdict", "mis-wired") == []
    store.keep_verdict("run-a1", "mis_wired")
    assert eagle("runs", "list").out.splitlines()[1].endswith("mis-wired")
    assert listed(eagle, "--verdict", "mis wired") == listed(eagle, "--verdict", "MIS_WIRED") == ["run-a1"]
    store.keep_verdict("run-a1", "no_difference")
    assert listed(eagle, "--verdict", "undecided") == ["run-a1"]
    manifest = store.run_dir("run-a1").manifest
    manifest.write_text(manifest.read_text() + " ")  # another result: the verdict is not of it
    assert listed(eagle, "--verdict", "sound") == []


def test_reindex_judges_what_nobody_looked_at_and_sweeps(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7)
    store.begin(made_run("broken"))
    (store.run_dir("broken").path / "run.json").write_text("{")
    old = store.home / "runs" / ".gone.123.removed"
    old.mkdir()
    (old / "x").write_text("x")
    half = store.home / "runs" / ".new.124.new"
    half.mkdir()
    os.utime(old, (1, 1))
    answer = eagle("runs", "reindex")
    assert (answer.code, answer.err) == (0, "2 runs, 1 unreadable; judged now: 1; leftovers swept: 1\n")
    assert not old.exists()
    assert half.exists()  # somebody may be filling it
    assert listed(eagle, "--verdict", "sound") == ["run-a1"]
    assert "judged now: 0" in eagle("runs", "reindex").err


def test_tags_and_notes_are_shown_with_the_run(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7)
    assert eagle("runs", "tag", "run-a").out == "run-a1: no tags\n"
    assert eagle("runs", "note", "run-a1").out == "run-a1: no note\n"
    assert eagle("runs", "tag", "run-a1", "+good", "+v2").err == "run-a1: good v2\n"
    assert eagle("runs", "tag", "run-a1", "-good", "+v3").err == "run-a1: v2 v3\n"
    assert eagle("runs", "note", "run-a1", "after the fix\nof the wiring").err == "run-a1: noted\n"
    shown = eagle("runs", "show", "run-a1").out
    assert "tags: v2 v3\nnote: after the fix\nof the wiring" in shown
    assert eagle("runs", "show", "run-a1", "--json").json["run"]["tags"] == ["v2", "v3"]
    assert eagle("runs", "list", "--json").json["runs"][0]["note"] == "after the fix\nof the wiring"
    assert eagle("runs", "note", "run-a1", "").err == "run-a1: no note any more\n"
    store.update(dataclasses.replace(store.load("run-a1")))  # a process that follows the run knows nothing of tags
    assert store.labels("run-a1").tags == ("v2", "v3")


@pytest.mark.parametrize("change", ["+A b", "+", "-", "-never", "../x", "+ü"])
def test_a_tag_that_is_none_changes_nothing(store: Store, eagle: Eagle, change: str) -> None:
    put_run(store, "run-a1", 0.7)
    answer = eagle("runs", "tag", "run-a1", "+fine", change)
    assert answer.code == 2
    assert answer.err.startswith("error: expected")
    assert store.labels("run-a1").tags == ()
    assert eagle("runs", "note", "run-a1", "x" * 5000).code == 2
    assert eagle("runs", "tag", "gone", "+fine").code == 6


def test_a_run_goes_to_another_laptop_as_one_file(
    store: Store, eagle: Eagle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_run(store, "run-a1", 0.7)
    eagle("runs", "tag", "run-a1", "+good")
    before = eagle("runs", "show", "run-a1", "--json").json
    file = tmp_path / "run.tar.gz"
    assert eagle("runs", "export", "run-a", str(file)).err == f"exported run-a1 to {file}\n"
    assert "there is one already" in eagle("runs", "export", "run-a", str(file)).err
    eagle("baseline", "set", "x", "run-a1")  # makes a copy of its measurements, which is no part of the run
    again = tmp_path / "again.tgz"
    eagle("runs", "export", "run-a1", str(again))
    assert again.read_bytes() == file.read_bytes()
    assert eagle("runs", "import", str(file)).err == "run-a1 is here already\n"
    monkeypatch.setenv("EAGLE3_REMOTE_HOME", str(tmp_path / "other"))
    assert eagle("runs", "import", str(file)).err == "imported run-a1\n"
    assert eagle("runs", "show", "run-a1", "--json").json == before
    assert listed(eagle, "--tag", "good", "--verdict", "sound") == ["run-a1"]
    eagle("runs", "tag", "run-a1", "+mine")
    assert eagle("runs", "import", str(file)).err == "run-a1 is here already\n"  # what is said here stays
    assert Store.default().labels("run-a1").tags == ("good", "mine")


def test_another_run_of_the_same_id_is_refused(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    put_run(store, "run-a1", 0.7)
    eagle("runs", "export", "run-a1", str(tmp_path / "a.tar.gz"))
    store.remove("run-a1")
    put_run(store, "run-a1", 0.5)
    answer = eagle("runs", "import", str(tmp_path / "a.tar.gz"))
    assert answer.code == 15
    assert "another run of this id is on this laptop: run-a1" in answer.err


def test_measurements_alone_are_a_smaller_file(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    put_run(store, "run-a1", 0.7)
    file, whole = tmp_path / "run.json", tmp_path / "run.tar.gz"
    assert eagle("runs", "export", "run-a1", str(file)).code == 0
    eagle("runs", "export", "run-a1", str(whole))
    assert json.loads(file.read_text())["content"]["origin"] == "own"
    assert eagle("runs", "import", str(file)).err == "run-a1 is here already\n"
    store.remove("run-a1")
    put_run(store, "run-a1", 0.5)
    other = eagle("runs", "import", str(file))
    assert (other.code, "another run of this id" in other.err) == (15, True)
    store.remove("run-a1")
    assert eagle("runs", "import", str(file)).err == "imported run-a1\n"
    assert eagle("runs", "import", str(file)).err == "run-a1 is here already\n"
    eagle("runs", "note", "run-a1", "only its figures came")
    assert "only its figures came" in eagle("report", "run-a1", "--format", "markdown").out
    assert store.is_imported("run-a1")
    assert eagle("runs", "import", str(whole)).err == "imported run-a1\n"  # the rest of it
    assert store.load("run-a1").phase == "succeeded"
    assert store.labels("run-a1").note == "only its figures came"
    assert {path.name for path in (store.home / "runs").iterdir()} == {"run-a1"}
    put_run(store, "run-b2", 0.7)
    assert eagle("diff", "run-a1", "run-b2", "--json").code == 0
    file.write_text(file.read_text().replace('"own"', '"imported"'))
    edited = eagle("runs", "import", str(file))
    assert edited.code == 5
    assert "expected the content of sha256" in edited.err


def test_an_imported_run_is_shown_tagged_exported_and_removed(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    assert store.add_imported(imported(), b"raw text")
    assert not store.add_imported(imported(), b"raw text")
    shown = eagle("runs", "show", "other").out
    assert "measured by another tool (other tool 1)" in shown
    assert "unknown: the seed" in shown
    assert eagle("runs", "show", "other-1", "--json").json["measurements"]["unknown"] == ["the seed"]
    eagle("runs", "tag", "other-1", "+theirs")
    eagle("runs", "export", "other-1", str(tmp_path / "o.tar.gz"))
    assert eagle("runs", "rm", "other-1").code == 0
    assert eagle("runs", "import", str(tmp_path / "o.tar.gz")).err == "imported other-1\n"
    assert store.imported("other-1") == imported()
    assert listed(eagle, "--tag", "theirs") == ["other-1"]
    for command in (("attach", "other-1"), ("logs", "other-1"), ("cancel", "other-1")):
        answer = eagle(*command)
        assert answer.code == 5
        assert "`other-1` was imported" in answer.err
    assert eagle("runs", "show", "last").code == 6  # the newest run of a host


def test_imported_measurements_that_were_edited_are_refused_by_name(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    store.add_imported(imported())
    file = tmp_path / "o.tar.gz"
    eagle("runs", "export", "other-1", str(file))
    path = store.run_dir("other-1").path / "measurements.json"
    path.write_text(path.read_text().replace("0.02", "0.01"))
    for command in (("runs", "show"), ("report",), ("baseline", "set", "main"), ("diff", "other-1")):
        answer = eagle(*command, "other-1")
        assert answer.code == 40
        assert f"{path}: expected the measurements of sha256 " in answer.err
    edited = tmp_path / "edited.tar.gz"
    eagle("runs", "export", "other-1", str(edited))
    assert eagle("runs", "rm", "other-1").code == 0
    refused = eagle("runs", "import", str(edited))
    assert (refused.code, "is not what was imported" in refused.err) == (5, True)
    assert eagle("runs", "import", str(file)).code == 0
    (store.run_dir("other-1").path / "measurements.key").unlink()  # as an earlier version kept it
    assert store.imported("other-1") == imported()
    assert eagle("runs", "import", str(file)).err == "other-1 is here already\n"


def test_what_cannot_be_exported_says_why(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    store.begin(made_run("run-a1", phase="running"))
    assert eagle("runs", "export", "run-a1", str(tmp_path / "a.tar.gz")).code == 5
    assert eagle("runs", "export", "run-a1", str(tmp_path / "a.json")).code == 5
    assert eagle("runs", "export", "run-a1", str(tmp_path / "a.zip")).code == 2
    store.begin(made_run("run-b2", phase="failed"))
    assert eagle("runs", "export", "run-b2", str(tmp_path / "none" / "a.tar.gz")).code == 2
    assert eagle("runs", "export", "run-b2", str(tmp_path / "b.tar.gz")).code == 0
    assert eagle("runs", "import", str(tmp_path)).code == 2
    assert eagle("runs", "import", str(tmp_path / "nothing.tar.gz")).code == 40
