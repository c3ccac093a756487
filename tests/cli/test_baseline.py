"""`eagle3-remote baseline`: what may be one, where it is kept, what it means later."""

import dataclasses
import gzip
import json
import shutil
from pathlib import Path

import pytest

from orchestrator.records import BaselineEntry
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series
from orchestrator.records.packed import packed
from orchestrator.store import Store
from remote_payload.schema import to_json
from tests.cli.conftest import Eagle
from tests.cli.test_runs_baseline_diff import put_run
from tests.support.made_bench import made_paired
from tests.support.made_runs import made_run, put_files
from tests.support.made_sets import put_bench as put_paired


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a folder of baselines, in which the commands are given."""
    folder = tmp_path / "project"
    (folder / "baselines").mkdir(parents=True)
    (folder / "eagle3.toml").write_text("")
    monkeypatch.chdir(folder)
    return folder


def imported(run_id: str = "imported-1", *, invalid: tuple[str, ...] = ()) -> MeasurementSet:
    series = Series(metric="output_throughput_tok_s", unit="tok/s", definition="d", level="run", keys=("1",), y=(90.0,))
    case = (Fact(name="concurrency", value="4"),)
    return MeasurementSet(
        run_id=run_id,
        origin="imported",
        tool="other tool 1",
        job_kind="imported",
        measurements=(Measurement(case=case, series=(series,), invalid=invalid),),
    )


@pytest.mark.parametrize(
    ("metric", "unit", "value", "expected"),
    [
        (
            "accept_length_pooled",
            "tokens",
            0.4,
            "`accept_length_pooled` cannot be 0.4: expected an accept length, 1 to 17",
        ),
        ("ttft_s", "s", -0.1, "`ttft_s` cannot be -0.1: expected no negative number of s"),
        ("accept_rate", "share", 1.5, "`accept_rate` cannot be 1.5: expected a share, 0 to 1"),
    ],
)
def test_what_cannot_be_is_not_promoted(
    store: Store, eagle: Eagle, metric: str, unit: str, value: float, expected: str
) -> None:
    """Also of a run that was imported before such figures were refused."""
    series = Series(metric=metric, unit=unit, definition="d", level="run", keys=("1",), y=(value,))
    one = imported()
    store.add_imported(dataclasses.replace(one, measurements=(Measurement(case=(), series=(series,)),)), b"raw")
    answer = eagle("baseline", "set", "b", "imported-1")
    assert (answer.code, store.baselines()) == (5, ())
    assert expected in " ".join(answer.err.split())


def test_what_was_imported_before_such_figures_were_refused_is_no_measurement_anywhere(
    store: Store, eagle: Eagle
) -> None:
    keys = ("1", "2", "3")
    series = Series(metric="output_throughput_tok_s", unit="tok/s", definition="d", level="run", keys=keys, y=(1, 2, 3))
    for name, values in (("old", (-1.0, 90.0, 91.0)), ("good", (89.0, 90.0, 91.0))):
        made = Measurement(case=(), series=(dataclasses.replace(series, y=values),))
        store.add_imported(dataclasses.replace(imported(name), measurements=(made,)), b"raw")
    why = "`output_throughput_tok_s` cannot be -1: expected no negative number of tok/s"
    for words in (("diff", "old", "good"), ("diff", "good", "old", "--force")):
        answer = eagle(*words)
        assert (answer.code, why in " ".join(answer.out.split())) == (5, True)
    judged = eagle("expect", "old", "--that", "output_throughput_tok_s >= 1", "--json")
    assert (judged.code, judged.json["expectations"][0]["reason"]) == (8, why)
    assert why in " ".join(eagle("runs", "show", "old").out.split())
    assert why in eagle("report", "old", "good", "--format", "csv").out


def test_the_baseline_of_a_run(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7)
    done = eagle("baseline", "set", "best", "run-a", "--note", "from the paper")
    assert (done.code, done.out, done.err) == (0, "", "baseline best set\n")
    assert store.baseline("best").current.run_id == "run-a1"
    assert "run run-a1" in eagle("baseline", "list").out
    shown = eagle("baseline", "show", "best").out
    assert "from the paper" in shown
    assert "declared.first_step_accuracy" in shown
    assert "12 prompts" in shown
    value = eagle("baseline", "show", "best", "--json").json
    assert value["history"][0]["run_id"] == "run-a1"
    assert value["measurements"]["origin"] == "own"
    assert eagle("baseline", "list", "--json").json["baselines"][0]["name"] == "best"
    assert "run run-a1" in eagle("baseline", "history", "best").out
    assert eagle("baseline", "history", "best", "--json").json["history"][0]["note"] == "from the paper"
    assert eagle("baseline", "rm", "best").err == "removed baseline best and the records of run-a1\n"
    assert eagle("baseline", "show", "best").code == 6
    assert not (store.home / "baselines" / "records" / "run-a1.json").exists()


def test_a_baseline_outlives_its_run(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7)
    put_run(store, "run-b2", 0.7)
    eagle("baseline", "set", "best", "run-a1")
    assert eagle("runs", "rm", "run-a1").code == 0
    assert eagle("diff", "run-b2", "--against", "best", "--json").json["verdict"] == "inconclusive"
    assert "12 prompts" in eagle("baseline", "show", "best").out


def test_a_baseline_of_the_time_before_records_needs_its_run(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7)
    store.set_baseline("old", BaselineEntry(run_id="run-a1", set_at_unix_s=1))
    assert "12 prompts" in eagle("baseline", "show", "old").out
    kept = eagle("runs", "rm", "run-a1")
    assert kept.code == 5
    assert "baseline rm old" in kept.err


def test_only_a_whole_valid_run_with_figures_is_a_baseline(store: Store, eagle: Eagle) -> None:
    store.begin(made_run("failed", phase="failed"))
    assert "is: failed" in eagle("baseline", "set", "b", "failed").err
    store.begin(made_run("bare"))
    assert "no manifest" in eagle("baseline", "set", "b", "bare").err
    put_run(store, "damaged", 0.7)
    (store.run_dir("damaged").result / "hits.jsonl.gz").write_bytes(b"")
    answer = eagle("baseline", "set", "b", "damaged")
    assert answer.code == 5
    assert "hits.jsonl.gz" in answer.err
    store.add_imported(imported("bad", invalid=("3 of 80 requests failed",)))
    answer = eagle("baseline", "set", "b", "bad")
    assert answer.code == 5
    assert "concurrency=4: 3 of 80 requests failed" in answer.err
    store.add_imported(
        MeasurementSet(run_id="empty", origin="imported", tool="t", job_kind="imported", measurements=())
    )
    assert "it has no figures" in eagle("baseline", "set", "b", "empty").err
    assert store.baselines() == ()
    assert not (store.home / "baselines").exists()  # not even a record


def test_an_imported_measurement_can_be_a_baseline(store: Store, eagle: Eagle) -> None:
    store.add_imported(imported())
    assert eagle("baseline", "set", "theirs", "imported-1").code == 0
    store.remove("imported-1")
    shown = eagle("baseline", "show", "theirs").out
    assert "measured by another tool (other tool 1)" in shown
    assert "90 tok/s" in shown


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("b",), "expected a run or --metric"),
        (("b", "run", "--metric", "m=1"), "expected a run or --metric"),
        (("b", "run", "--unit", "s"), "with --metric only"),
        (("b", "run", "--source", "x"), "with --metric only"),
        (("b", "--metric", "m"), "expected METRIC=VALUE"),
        (("b", "--metric", "m=x"), "expected a finite number"),
        (("b", "--metric", "m=nan"), "expected a finite number"),
        (("b", "--metric", "output_throughput_tok_s=9_0 tok/s"), "expected a finite number"),
        (("b", "--metric", "output_throughput_tok_s=\u0669\u0660 tok/s"), "expected a finite number"),
        (("b", "--metric", "output_throughput_tok_s=inf", "--unit", "tok/s"), "expected a finite number"),
        (("b", "--metric", "tok/s=1"), "expected METRIC=VALUE"),
        (("b", "--metric", "m=1", "--metric", "n=2", "--unit", ""), "expected a unit for `m`"),
        (("b", "--metric", "accept_lenth_pooled=2.4"), "did you mean: accept_length_pooled"),
        (("b", "--metric", "m=1 s", "--metric", "m=2 s"), "a metric must stand once"),
        (("b", "--metric", "declared.first_step_accuracy=71 share"), "a share of 71 % is written 0.71"),
        (("b", "--metric", "accept_rate=171 %"), "a share of 71 % is written 0.71"),
        (("b", "--metric", "best.step3_acceptance=-0.1 share"), "expected a share, 0 to 1"),
        (("b", "--metric", "declared.accept_length_walk=0.9 tokens"), "expected an accept length, 1 to 17"),
        (("b", "--metric", "best.accept_length_mean=18 tokens"), "expected an accept length, 1 to 17"),
        (("b", "--metric", "output_throughput_tok_s=90"), "`output_throughput_tok_s` is in `tok/s`"),
        (("b", "--metric", "tpot_s=9", "--unit", "us"), "expected `tpot_s` in `s` (`ms`), found the unit: 'us'"),
        (("b", "--metric", "declared.first_step_acuracy=0.7 share"), "did you mean: declared.first_step_accuracy"),
        (("b", "--metric", "output_throughput=90 tok/s"), "did you mean: output_throughput_tok_s?"),
        (("b", "--metric", "accept_length=2.4 tokens"), "did you mean: accept_length_"),
        (("b", "--metric", "ttft_p99=1 s"), "did you mean: ttft_s_p99"),
        (("b", "--metric", "tpot_s=0 s"), "expected a number of s above 0"),
        (("b", "--metric", "speedup=-1 ratio"), "expected a number of ratio above 0"),
    ],
)
def test_what_cannot_be_a_baseline_is_a_usage_error(
    store: Store, eagle: Eagle, arguments: tuple[str, ...], expected: str
) -> None:
    answer = eagle("baseline", "set", *arguments)
    assert answer.code == 2
    assert answer.err.startswith("error: ")
    assert expected in answer.err
    assert store.baselines() == ()


def test_typed_numbers_have_units_a_source_and_a_note(store: Store, eagle: Eagle) -> None:
    done = eagle(
        "baseline", "set", "plain", "--metric", "output_throughput_tok_s=90 tok/s", "--metric", "tpot_s=0.011s",
        "--source", "the dashboard", "--note", "no drafter",
    )  # fmt: skip
    assert (done.code, done.err) == (0, "baseline plain set\n")
    entry = store.baseline("plain").current
    assert [(item.metric, item.value, item.unit) for item in entry.numbers] == [
        ("output_throughput_tok_s", 90.0, "tok/s"),
        ("tpot_s", 0.011, "s"),
    ]
    assert (entry.source, entry.note) == ("the dashboard", "no drafter")
    shown = eagle("baseline", "show", "plain").out
    assert "typed by somebody" in shown
    assert "unknown" in shown  # its interval and its n


def test_a_typed_number_may_name_its_load_and_is_of_that_one_alone(store: Store, eagle: Eagle) -> None:
    typed = ("--metric", "output_throughput_tok_s=40 tok/s")
    assert eagle("baseline", "set", "one", *typed, "--load", "concurrency=1").code == 0
    assert eagle("baseline", "set", "four", *typed, "--load", "concurrency=4").code == 0
    assert eagle("baseline", "set", "plain", *typed, "--load", "concurrency=1", "--load", "side=plain").code == 0
    assert [fact.name for fact in store.baseline("plain").current.load] == ["side", "concurrency"]
    put_paired(store, "bench-a1", made_paired(repeats=5))
    assert eagle("diff", "bench-a1", "--against", "one").out.startswith(
        "Improved, if all else was alike: output_throughput_tok_s at side=spec"
    )
    assert eagle("diff", "bench-a1", "--against", "plain").out.startswith(
        "Improved, if all else was alike: output_throughput_tok_s at side=plain"
    )
    other = eagle("diff", "bench-a1", "--against", "four")
    assert (other.code, "no load is on both sides" in other.out) == (4, True)
    assert eagle("expect", "bench-a1", "--that", "output_throughput_tok_s >= 1.2 * baseline:one").code == 0
    told = eagle("expect", "bench-a1", "--that", "output_throughput_tok_s >= 1.2 * baseline:four")
    assert (told.code, "was measured at concurrency=4" in " ".join(told.out.split())) == (8, True)
    assert "output_throughput_tok_s=40 tok/s at concurrency=4" in " ".join(eagle("baseline", "list").out.split())


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        (("users=4",), "expected `side=spec|plain`, `concurrency=USERS`, "),
        (("concurrency=0",), "expected `concurrency=USERS`, found: 'concurrency=0'"),
        (("concurrency=1.5",), "expected `concurrency=USERS`"),
        (("request_rate=0.0",), "expected `request_rate=REQUESTS-A-SECOND`"),
        (("side=both",), "expected `side=spec|plain`"),
        (("concurrency",), "expected `concurrency=USERS`"),
        (("concurrency=1", "concurrency=4"), "expected `concurrency` once"),
        (("concurrency=1", "request_rate=2"), "expected `concurrency` or `request_rate`"),
        (("split=train", "side=spec"), "or `split` alone, found: split=train side=spec"),
    ],
)
def test_a_load_that_is_none_is_refused(store: Store, eagle: Eagle, loads: tuple[str, ...], expected: str) -> None:
    words = [word for one in loads for word in ("--load", one)]
    answer = eagle("baseline", "set", "b", "--metric", "output_throughput_tok_s=90 tok/s", *words)
    assert (answer.code, store.baselines()) == (2, ())
    assert expected in " ".join(answer.err.split())


def test_a_load_is_of_typed_numbers_and_written_as_runs_write_it(store: Store, eagle: Eagle) -> None:
    eagle("baseline", "set", "b", "--metric", "output_throughput_tok_s=90 tok/s", "--load", "request_rate=2.50")
    assert [fact.value for fact in store.baseline("b").current.load] == ["2.5"]
    put_run(store, "run-a1", 0.7)
    assert eagle("baseline", "set", "b", "run-a1", "--load", "concurrency=1").code == 2


def test_a_unit_that_an_expectation_may_have_is_brought_into_the_metrics_own(store: Store, eagle: Eagle) -> None:
    done = eagle("baseline", "set", "b", "--metric", "ttft_s=200ms", "--metric", "accept_rate=71 %")
    assert (done.code, done.err) == (0, "baseline b set\n")
    numbers = store.baseline("b").current.numbers
    assert [(one.metric, one.unit) for one in numbers] == [("ttft_s", "s"), ("accept_rate", "share")]
    assert [one.value for one in numbers] == pytest.approx([0.2, 0.71])
    assert eagle("baseline", "set", "b", "--metric", "output_tokens=300 tokens").code == 0  # no accept length


def test_a_metric_that_no_run_reports_is_kept_and_said(store: Store, eagle: Eagle) -> None:
    other = eagle("baseline", "set", "plain", "--metric", "power_per_token=0.7 J")
    assert other.code == 0
    assert "no run reports `power_per_token` yet" in other.err
    known = eagle("baseline", "set", "known", "--metric", "best.step2_acceptance=0.7", "--unit", "share")
    assert known.err == "baseline known set\n"
    assert "accept_length_walk" in eagle("baseline", "set", "--help").out


def test_all_that_is_said_of_baselines_fits_eighty_columns(
    store: Store, eagle: Eagle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for note in ("short", "a note of many words " * 8):
        eagle("baseline", "set", "plain", "--metric", "output_throughput_tok_s=90 tok/s", "--note", note)
    texts = [eagle("baseline", *words).out for words in (("list",), ("show", "plain"), ("history", "plain"))]
    texts += [eagle("baseline", "list", "--published").out, eagle("expect", "plain", "--help").out]
    texts.append(eagle("baseline", "show", "published:specbundle/kimi-k2-instruct/3-1-4/gsm8k").out)
    groups = [eagle(group, "--help").out for group in ("baseline", "runs", "hosts")]
    assert [line for text in (*texts, *groups) for line in text.splitlines() if len(line) > 80] == []
    assert [text for text in groups if "..." in text.replace("[ARGS]...", "")] == []  # told whole


def test_a_projects_baselines_lie_in_its_folder_and_go_with_it(store: Store, eagle: Eagle, project: Path) -> None:
    put_run(store, "run-a1", 0.7)
    store.set_baseline("own", BaselineEntry(run_id="run-a1", set_at_unix_s=1))
    eagle("baseline", "set", "main", "run-a1")
    assert sorted(path.name for path in (project / "baselines").iterdir()) == ["main.json", "records"]
    listed = eagle("baseline", "list").out
    assert "own +" in listed
    assert "main  " in listed
    (project / "eagle3.toml").write_text('[baselines]\ndirectory = "perf"\n')
    assert eagle("baseline", "show", "main").code == 6
    shutil.copytree(project / "baselines", project / "perf")
    shutil.rmtree(store.home)  # another laptop
    put_run(store, "run-b2", 0.7)
    assert eagle("diff", "run-b2", "--against", "main", "--json").json["verdict"] == "inconclusive"
    assert eagle("baseline", "list", "--json").json["folder"] == str(project / "perf")


def test_a_projects_name_hides_the_users_and_is_removed_first(store: Store, eagle: Eagle, project: Path) -> None:
    put_run(store, "run-a1", 0.7)
    put_run(store, "run-b2", 0.7)
    store.set_baseline("main", BaselineEntry(run_id="run-a1", set_at_unix_s=1))
    eagle("baseline", "set", "main", "run-b2")
    assert [entry["run_id"] for entry in eagle("baseline", "history", "main", "--json").json["history"]] == ["run-b2"]
    assert len(eagle("baseline", "list", "--json").json["baselines"]) == 1
    told = " ".join(eagle("baseline", "rm", "main").err.split())
    assert "`main` means another baseline from now on" in told
    assert str(store.home / "baselines") in told
    assert [entry["run_id"] for entry in eagle("baseline", "history", "main", "--json").json["history"]] == ["run-a1"]
    assert "from now on" not in eagle("baseline", "rm", "main").err


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda text: text.replace('"run-a1"', '"run-a2"'), "expected the content of sha256"),
        (lambda text: text[: len(text) // 2], "expected a record of measurements, found"),
        (lambda text: text.replace('"packed": "e', '"packed": "f'), "expected packed numbers"),
        (
            lambda text: text.replace('"schema_version": 1', '"schema_version": 7'),
            "written by a newer eagle3-remote: 7",
        ),
        (lambda text: "<<<<<<< HEAD\n" + text, "git left a merge conflict in it"),
    ],
)
def test_a_record_that_was_edited_or_cut_is_refused(
    store: Store,
    eagle: Eagle,
    project: Path,
    damage,
    expected: str,  # type: ignore[no-untyped-def]
) -> None:
    put_run(store, "run-a1", 0.7)
    eagle("baseline", "set", "main", "run-a1")
    path = project / "baselines" / "records" / "run-a1.json"
    path.write_text(damage(path.read_text()))
    for command in (("baseline", "show", "main"), ("diff", "run-a1", "--against", "main")):
        answer = eagle(*command)
        assert (answer.code, answer.out) == (40, "")
        assert str(path) in answer.err
        assert expected in answer.err


def test_a_record_with_another_ones_hash_is_not_what_the_name_means(store: Store, eagle: Eagle, project: Path) -> None:
    put_run(store, "run-a1", 0.7)
    eagle("baseline", "set", "main", "run-a1")
    path = project / "baselines" / "main.json"
    value = json.loads(path.read_text())
    value["history"][0]["record_sha256"] = "0" * 64
    path.write_text(json.dumps(value))
    answer = eagle("baseline", "show", "main")
    assert answer.code == 40
    assert f"names the record of sha256 {'0' * 64}" in answer.err
    (project / "baselines" / "records" / "run-a1.json").unlink()
    assert "expected the record of `run-a1`, found none" in eagle("baseline", "show", "main").err


def test_a_baseline_that_does_not_exist_offers_the_closest(store: Store, eagle: Eagle, project: Path) -> None:
    eagle("baseline", "set", "plain", "--metric", "speedup=1.2 ratio")
    for command in ("show", "history", "rm"):
        answer = eagle("baseline", command, "plian")
        assert answer.code == 6
        assert "did you mean: plain" in answer.err


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
    assert f"unreadable: broken: {path}: " in " ".join(listed.out.split())
    value = eagle("baseline", "list", "--json").json
    assert [item["name"] for item in value["baselines"]] == ["good"]
    assert [item["name"] for item in value["unreadable"]] == ["broken"]
    put_run(store, "run-c3", 0.7)
    assert eagle("runs", "rm", "run-c3").code == 0
    assert "baseline rm broken" in eagle("runs", "rm", "run-b2").err  # it may mean this one
    assert eagle("baseline", "rm", "broken").code == 0
    assert (store.home / "baselines" / "records" / "run-b2.json").exists()  # nobody knows who needs it
    assert eagle("runs", "rm", "run-b2").code == 0
    assert eagle("baseline", "rm", "broken").code == 6


def test_published_numbers_are_marked_and_found_by_model(eagle: Eagle, store: Store) -> None:
    listed = eagle("baseline", "list", "--published", "--model", "KIMI-K2-")
    assert "Published by others, not measured by this tool" in listed.out
    assert "specbundle/kimi-k2-instruct/3-1-4/gsm8k" in listed.out
    assert "Llama" not in listed.out
    points = eagle("baseline", "list", "--published", "--json").json
    assert points["origin"] == "published"
    assert all(point["source"] for point in points["points"])
    shown = eagle("baseline", "show", "published:specbundle/kimi-k2-instruct/3-1-4/gsm8k").out
    assert "published by others; not measured here" in shown
    assert "3.271 tokens" in shown
    assert eagle("baseline", "list", "--published", "--model", "nobody-has-it").out.startswith("nobody published")
    assert eagle("baseline", "list", "--model", "x").code == 2
    missing = eagle("baseline", "show", "published:specbundle/kimi-k3-instruct")
    assert missing.code == 6
    assert "did you mean: specbundle/kimi-k2-instruct" in missing.err
    assert "did you mean: cards/kimi-k2.5-eagle3" in eagle("baseline", "show", "published:Kimi-K2.5").err
    assert not store.home.exists()


def put_bench(store: Store, run_id: str, *, failing: int = 0, simulated: bool = False) -> None:
    """A served benchmark of three repeats at one user, so many of whose requests failed."""
    record = made_run(run_id)
    run = store.begin(dataclasses.replace(record, spec=dataclasses.replace(record.spec, job_kind="bench")))
    result, requests = made_paired(accept=(0.9, 0.8, 0.7))
    requests = (*(dataclasses.replace(item, error="refused") for item in requests[:failing]), *requests[failing:])
    result = dataclasses.replace(result, sglang=dataclasses.replace(result.sglang, simulates_acceptance=simulated))
    lines = "".join(f"{to_json(item)}\n" for item in requests)
    put_files(run, {"bench.json": to_json(result).encode(), "requests.jsonl.gz": gzip.compress(lines.encode())})


def test_a_served_benchmark_is_a_baseline_unless_requests_failed(store: Store, eagle: Eagle) -> None:
    put_bench(store, "served")
    put_bench(store, "failing", failing=1)
    put_bench(store, "dead", failing=1000)
    put_bench(store, "simulated", simulated=True)
    assert eagle("baseline", "set", "main", "served").code == 0
    shown = eagle("baseline", "show", "main").out
    assert "side=spec concurrency=1" in shown
    assert "3 server starts" in shown
    refused = eagle("baseline", "set", "main", "failing")
    assert refused.code == 5
    assert "a baseline must be a valid measurement, `failing` is none: side=spec concurrency=1: " in refused.err
    assert "requests failed" in eagle("baseline", "set", "main", "dead").err
    assert "acceptance is simulated" in eagle("baseline", "set", "main", "simulated").err
    assert len(store.baseline("main").history) == 1


def test_a_run_is_held_against_what_others_published(store: Store, eagle: Eagle) -> None:
    put_bench(store, "served")
    point = "published:specbundle/llama-3.1-8b-instruct/new/3-1-4/mtbench"
    barred = eagle("diff", "served", "--against", point)
    assert barred.code == 4
    assert "published, not measured here" in " ".join(barred.out.split())
    asked = ("--force", "--where", "side=spec", "--metric", "accept_length_per_verify", "--json")
    forced = eagle("diff", "served", "--against", point, *asked)
    assert (forced.code, forced.json["verdict"]) == (0, "improved")  # 3.18 [3.03, 3.35] against 2.90
    assert eagle("diff", "served", "--against", "published:nothing").code == 6


def test_a_record_of_another_version_stays_and_that_is_said(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7)
    eagle("baseline", "set", "one", "run-a1")
    (measured,) = (store.names.measured(store.baseline("one").current),)
    assert measured is not None
    path = store.names.folder / "records" / "run-a1.json"
    path.write_bytes(packed(dataclasses.replace(measured, tool="eagle3-remote 0.0.1")))
    eagle("baseline", "rm", "one")  # its name is gone, and so is the record that no name needs
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(packed(dataclasses.replace(measured, tool="eagle3-remote 0.0.1")))
    again = eagle("baseline", "set", "two", "run-a1")
    assert again.code == 0
    assert "`records/run-a1.json` was kept when this run was first promoted" in again.err
    assert "eagle3-remote 0.0.1" in eagle("baseline", "show", "two").out
