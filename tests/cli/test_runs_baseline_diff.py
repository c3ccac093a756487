import gzip
import shutil
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


def test_the_baseline_of_a_run(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7)
    done = eagle("baseline", "set", "best", "run-a", "--note", "from the paper")
    assert (done.code, done.out, done.err) == (0, "", "baseline best set\n")
    assert store.baseline("best").current.run_id == "run-a1"
    assert "run run-a1" in eagle("baseline", "list").out
    assert "from the paper" in eagle("baseline", "show", "best").out
    assert eagle("baseline", "show", "best", "--json").json["history"][0]["run_id"] == "run-a1"
    assert eagle("baseline", "list", "--json").json["baselines"][0]["name"] == "best"
    assert eagle("runs", "rm", "run-a1").code == 5
    assert eagle("baseline", "rm", "best").code == 0
    assert eagle("baseline", "show", "best").code == 6


def test_only_a_whole_succeeded_run_with_figures_is_a_baseline(store: Store, eagle: Eagle) -> None:
    store.begin(made_run("failed", phase="failed"))
    assert "is: failed" in eagle("baseline", "set", "b", "failed").err
    store.begin(made_run("bare"))
    assert "no manifest" in eagle("baseline", "set", "b", "bare").err
    put_run(store, "damaged", 0.7)
    (store.run_dir("damaged").result / "hits.jsonl.gz").write_bytes(b"")
    answer = eagle("baseline", "set", "b", "damaged")
    assert answer.code == 5
    assert "hits.jsonl.gz" in answer.err
    assert store.baselines() == ()


@pytest.mark.parametrize(
    "arguments",
    [
        ("set", "b"),
        ("set", "b", "run", "--metric", "m=1"),
        ("set", "b", "--metric", "m"),
        ("set", "b", "--metric", "m=x"),
        ("set", "b", "--metric", "m=nan"),
        ("set", "b", "--metric", "tok/s=1"),
        ("set", "b", "--metric", "m=1", "--metric", "m=2"),
        ("set", "b", "--metric", "declared.first_step_accuracy=71"),
        ("set", "b", "--metric", "best.step3_acceptance=-0.1"),
        ("set", "b", "--metric", "declared.accept_length_walk=0.9"),
        ("set", "b", "--metric", "best.accept_length_mean=18"),
    ],
)
def test_what_cannot_be_a_baseline_is_a_usage_error(store: Store, eagle: Eagle, arguments: tuple[str, ...]) -> None:
    answer = eagle("baseline", *arguments)
    assert answer.code == 2
    assert answer.err.startswith("error: ")
    assert store.baselines() == ()


def test_diff_regressed_equal_and_improved(store: Store, eagle: Eagle) -> None:
    put_run(store, "low", 0.55)
    put_run(store, "high", 0.8)
    eagle("baseline", "set", "high", "high")
    eagle("baseline", "set", "low", "low")
    worse = eagle("diff", "low", "--against", "high")
    assert worse.code == 1
    assert worse.out.startswith("Regressed: low against high")
    better = eagle("diff", "high", "--against", "low", "--json")
    assert better.code == 0
    assert better.json["verdict"] == "improved"
    same = eagle("diff", "high", "--against", "high", "--json")
    assert (same.code, same.json["verdict"]) == (0, "equivalent")


def test_diff_of_other_rows_is_unpaired_and_says_so(store: Store, eagle: Eagle) -> None:
    put_run(store, "low", 0.4, rows=10)
    put_run(store, "high", 0.8)
    eagle("baseline", "set", "high", "high")
    answer = eagle("diff", "low", "--against", "high")
    assert answer.code == 1
    assert "not measured on the same rows" in answer.out


def test_diff_of_too_few_rows_cannot_tell_and_is_no_alarm(store: Store, eagle: Eagle) -> None:
    put_run(store, "low", 0.4, rows=3)
    put_run(store, "high", 0.8, rows=3)
    eagle("baseline", "set", "high", "high")
    answer = eagle("diff", "low", "--against", "high", "--json")
    assert (answer.code, answer.json["verdict"]) == (0, "cannot tell")


def test_diff_with_a_number_the_run_does_not_have_is_not_comparable(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7)
    eagle("baseline", "set", "plain", "--metric", "output_throughput_tok_s=90", "--unit", "tok/s", "--note", "no draft")
    answer = eagle("diff", "run-a1", "--against", "plain")
    assert answer.code == 4
    assert "this run has no output_throughput_tok_s" in answer.out
    assert "unknown" in answer.out


def test_a_metric_that_no_run_reports_is_kept_and_said(store: Store, eagle: Eagle) -> None:
    typo = eagle("baseline", "set", "plain", "--metric", "declared.first_step_acuracy=0.7")
    assert typo.code == 0
    assert "no run reports `declared.first_step_acuracy` yet" in typo.err
    assert "first_step_accuracy, accept_length_walk" in typo.err
    assert eagle("baseline", "set", "known", "--metric", "best.step2_acceptance=0.7").err == "baseline known set\n"
    assert "accept_length_walk" in eagle("baseline", "set", "--help").out


def test_diff_with_a_number_the_run_has(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7)
    eagle("baseline", "set", "plain", "--metric", "declared.accept_length_walk=1.9")
    assert eagle("diff", "run-a1", "--against", "plain").code == 0
    eagle("baseline", "set", "plain", "--metric", "declared.accept_length_walk=3.9")
    assert eagle("diff", "run-a1", "--against", "plain").code == 1


def test_diff_needs_figures_and_known_names(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7)
    store.begin(made_run("bare"))
    eagle("baseline", "set", "best", "run-a1")
    assert eagle("diff", "bare", "--against", "best").code == 5
    missing = eagle("diff", "run-a1", "--against", "bets")
    assert missing.code == 6
    assert "hint: did you mean: best" in missing.err
    assert eagle("diff", "gone", "--against", "best").code == 6


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


@pytest.mark.parametrize("command", [("runs", "show", "run-a1"), ("diff", "run-a1", "--against", "numbers")])
def test_edited_results_are_never_reported_as_the_runs_own(
    store: Store, eagle: Eagle, command: tuple[str, ...]
) -> None:
    put_run(store, "run-a1", 0.7)
    eagle("baseline", "set", "numbers", "--metric", "best.accept_length_walk=1.9")
    result = store.run_dir("run-a1").result
    assert eagle(*command).code == 0
    whole = (result / "hits.jsonl.gz").read_bytes()
    text = gzip.decompress(whole).decode()
    (result / "hits.jsonl.gz").write_bytes(gzip.compress(text.replace('"hits":"', '"hits":"/', 1).encode()))
    edited = eagle(*command)
    assert (edited.code, edited.out) == (5, "")
    assert "`hits.jsonl.gz`: expected" in edited.err
    (result / "hits.jsonl.gz").write_bytes(whole)
    manifest = (result / "manifest.json").read_text()
    (result / "manifest.json").write_text("{}")
    hollow = eagle(*command)
    assert (hollow.code, hollow.out) == (40, "")
    assert "`files`: missing key of Manifest" in hollow.err
    (result / "manifest.json").write_text(manifest.replace("run-a1", "run-b2"))
    assert "expected the manifest of `run-a1`, found: run-b2" in eagle(*command).err


def test_a_baseline_never_means_another_run_whose_id_begins_alike(store: Store, eagle: Eagle) -> None:
    for run_id in ("sa", "sab"):
        put_run(store, run_id, 0.7)
    eagle("baseline", "set", "m", "sa")
    shutil.rmtree(store.run_dir("sa").path)
    answer = eagle("diff", "sab", "--against", "m")
    assert (answer.code, answer.out) == (6, "")
    assert "the baseline `m` means a run that is not on this laptop: sa" in answer.err


def test_a_broken_baseline_is_in_nobodys_way(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7)
    put_run(store, "run-b2", 0.7)
    eagle("baseline", "set", "good", "run-a1")
    eagle("baseline", "set", "broken", "run-b2")
    path = store.home / "baselines" / "broken.json"
    path.write_text(path.read_text().replace('"history"', '"hystory"'))
    listed = eagle("baseline", "list")
    assert listed.code == 0
    assert "run run-a1" in listed.out
    assert f"unreadable: broken: {path}: " in listed.out
    value = eagle("baseline", "list", "--json").json
    assert [item["name"] for item in value["baselines"]] == ["good"]
    assert [item["name"] for item in value["unreadable"]] == ["broken"]
    put_run(store, "run-c3", 0.7)
    assert eagle("runs", "rm", "run-c3").code == 0
    assert "baseline rm broken" in eagle("runs", "rm", "run-b2").err  # it may mean this one
    assert eagle("baseline", "rm", "broken").code == 0
    assert eagle("runs", "rm", "run-b2").code == 0
    assert eagle("baseline", "rm", "broken").code == 6


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
