from pathlib import Path

import pytest

from orchestrator.records import RunRecord
from orchestrator.store import Store
from tests.cli.conftest import Eagle
from tests.support.made_results import made_declared, made_readings, made_result
from tests.support.made_runs import made_run, put_files, put_standalone


def put_run(store: Store, run_id: str, share: float, *, rows: int = 12, created: float = 1.0) -> RunRecord:
    """A succeeded standalone run whose declared reading is the best and hits that share."""
    row_facts, hits, readings = made_readings({((0, 1, 2), 1): share, ((1, 2, 3), 1): 0.2}, rows=rows)
    result = made_result(readings, made_declared((0, 2, 4), (0, 1, 2)), rows=rows)
    return put_standalone(store, made_run(run_id, created_unix_s=created), result, row_facts, hits)


def test_an_empty_store_lists_nothing_and_creates_nothing(store: Store, eagle: Eagle) -> None:
    assert eagle("runs", "list").out == "no runs on this laptop yet\n"
    assert eagle("runs", "list", "--json").json == {"runs": []}
    assert "no baselines yet" in eagle("baseline", "list").out
    assert not store.home.exists()


def test_runs_are_listed_shown_and_removed(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7)
    listed = eagle("runs", "list")
    assert "run-a1" in listed.out
    assert listed.err == ""
    assert eagle("runs", "list", "--json").json["runs"][0]["phase"] == "succeeded"
    assert eagle("runs", "show", "run-a").out.startswith("Wiring is sound")
    assert eagle("runs", "show", "last", "--json").json["wiring"]["verdict"] == "sound"
    removed = eagle("runs", "rm", "run-a1")
    assert (removed.code, removed.out, removed.err) == (0, "", "removed run-a1\n")
    assert eagle("runs", "show", "run-a1").code == 6


def test_a_run_that_goes_on_is_not_forgotten_by_accident(store: Store, eagle: Eagle) -> None:
    store.begin(made_run("run-a1", phase="running"))
    refused = eagle("runs", "rm", "run-a1")
    assert refused.code == 5
    assert "hint: `eagle3-remote cancel run-a1`" in refused.err
    assert eagle("runs", "rm", "run-a1", "--force").code == 0


def test_a_run_without_a_result_is_shown_as_far_as_it_is_known(store: Store, eagle: Eagle) -> None:
    store.begin(made_run("run-a1", phase=None))
    shown = eagle("runs", "show", "run-a1")
    assert shown.code == 0
    assert "standalone, unknown" in shown.out


def test_an_unreadable_run_is_listed_and_removable(store: Store, eagle: Eagle) -> None:
    run = store.begin(made_run("run-a1"))
    (run.path / "run.json").write_text("{")
    assert "unreadable: run-a1: " in eagle("runs", "list").out
    assert eagle("runs", "show", "run-a1").code == 40
    assert eagle("runs", "rm", "run-a1").code == 0


@pytest.mark.parametrize("name", ["a b", "../x", "a;rm -rf", "ü", "A", "x\ny", "'", '"', "$(id)"])
def test_strange_names_end_in_a_usage_error(eagle: Eagle, name: str) -> None:
    for command in (
        ("runs", "show", name),
        ("runs", "rm", name),
        ("baseline", "show", name),
        ("baseline", "rm", name),
        ("baseline", "set", name, "--metric", "m=1"),
        ("diff", "last", "--against", name),
    ):
        answer = eagle(*command)
        assert answer.code == 2, command
        assert answer.err.startswith("error: expected"), command
        assert "\n\n" not in answer.err


def test_a_result_whose_hits_do_not_fit_is_an_error_with_a_name(store: Store, eagle: Eagle) -> None:
    row_facts, _, readings = made_readings({((0, 1, 2), 1): 0.5})
    result = made_result(readings, made_declared((0, 2, 4), (0, 1, 2)))
    put_standalone(store, made_run("run-a1"), result, row_facts, ())
    answer = eagle("runs", "show", "run-a1")
    assert answer.code == 5
    assert "expected hits of the reading" in answer.err


def test_control_sequences_of_a_host_never_reach_the_terminal(store: Store, eagle: Eagle) -> None:
    row_facts, hits, readings = made_readings({((0, 1, 2), 1): 0.7, ((1, 2, 3), 1): 0.2})
    evil = "\x1b]0;owned\x07\x1b[2Jü\u202e"
    result = made_result(readings, made_declared((0, 2, 4), (0, 1, 2)), warnings=(evil,))
    put_standalone(store, made_run("run-a1"), result, row_facts, hits)
    text = eagle("runs", "show", "run-a1").out
    assert "\\x1b]0;owned\\x07\\x1b[2Jü\\u202e" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("absurd", ["1e300", "-1e300", "NaN", "Infinity", "1" + "0" * 400])
def test_absurd_times_do_not_break_the_listing(store: Store, eagle: Eagle, absurd: str) -> None:
    put_run(store, "run-a1", 0.7)
    path = store.run_dir("run-a1").path / "run.json"
    put_run(store, "good", 0.7)
    path.write_text(path.read_text().replace('"created_unix_s":1.0', f'"created_unix_s":{absurd}'))
    listed = eagle("runs", "list")
    assert listed.code == 0
    assert "run-a1" in listed.out
    assert len(eagle("runs", "list", "--json").json["runs"]) == 2
    assert eagle("runs", "show", "run-a1").code in (0, 40)


def test_only_a_run_that_succeeded_has_a_result(store: Store, eagle: Eagle) -> None:
    put_files(store.begin(made_run("run-a1", phase="failed")), {"standalone.json": b"{}"})
    assert eagle("runs", "list").out.splitlines()[1].endswith("no")


@pytest.mark.parametrize("command", [("runs", "list"), ("baseline", "list"), ("runs", "show", "last")])
def test_a_store_that_is_no_folder_is_an_error_and_not_an_empty_one(
    tmp_path: Path, eagle: Eagle, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EAGLE3_REMOTE_HOME", str(tmp_path / "file"))
    answer = eagle(*command)
    assert (answer.code, answer.out) == (40, "")
    assert "Not a directory" in answer.err
    monkeypatch.setenv("EAGLE3_REMOTE_HOME", "~no-such-user-here/x")
    assert eagle(*command).code == 40


def test_a_selftest_has_no_figures(store: Store, eagle: Eagle) -> None:
    record = made_run("run-a1")
    spec = type(record.spec)(**{**vars(record.spec), "job_kind": "selftest", "job_json": '{"kind":"selftest"}'})
    run = store.begin(type(record)(host=record.host, spec=spec, state=record.state))
    put_files(run, {"selftest.json": b"{}"})
    assert eagle("runs", "show", "run-a1").code == 0
    assert "figures to compare" in eagle("baseline", "set", "b", "run-a1").err


def test_a_grace_that_is_no_number_is_a_usage_error(eagle: Eagle) -> None:
    for grace in ("nan", "-nan", "NaN", "inf", "x"):
        answer = eagle("cancel", "run-a1", "--grace-s", grace)
        assert answer.code == 2
        assert "--grace-s" in answer.err
