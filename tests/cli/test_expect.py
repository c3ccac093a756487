import dataclasses
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from orchestrator import jobfile
from orchestrator.config import Config
from orchestrator.errors import JobFileError
from orchestrator.store import Store
from remote_payload.schema import Setting
from tests.cli.conftest import Eagle
from tests.cli.test_diff import put_served
from tests.cli.test_runs_baseline_diff import put_run

JOB = """kind = "standalone"
steps = 3
[expect]
declared.accept_length_walk = ">= 1.5"
best.first_step_accuracy = [">= 60 %", "<= 65 %"]
"""


def test_a_job_files_expectations_on_a_stored_run(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    put_run(store, "high", 0.8)
    job, xml = tmp_path / "job.toml", tmp_path / "out.xml"
    job.write_text(JOB)
    answer = eagle("expect", "high", "--job", str(job), "--junit", str(xml))
    assert answer.code == 8
    assert answer.out.startswith("2 of 3 expectations hold: high\n")
    assert "DOES NOT HOLD: best.first_step_accuracy <= 65 % at split=train: 80.2 %, 95 % interval" in " ".join(
        answer.out.split()
    )
    assert "error: 1 of 3 expectations do not hold" in answer.err
    assert ElementTree.fromstring(xml.read_bytes()).get("failures") == "1"
    job.write_text(JOB.replace("65 %", "90 %"))
    good = eagle("expect", "high", "--job", str(job), "--json")
    assert (good.code, good.json["hold"]) == (0, True)


def test_the_run_that_a_word_meant_is_named(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    put_run(store, "high", 0.8)
    xml = tmp_path / "out.xml"
    that = "best.first_step_accuracy >= 60 %"
    asked = ("expect", "last", "--that", that, "--that", f" {that} ", "--junit", str(xml))
    assert eagle(*asked).out.startswith("1 of 1 expectation holds: last (high)\n")
    suite = ElementTree.fromstring(xml.read_bytes())
    assert (suite.get("name"), suite.get("tests")) == ("eagle3-remote last (high)", "1")
    assert [one.get("value") for one in suite.iter("property")] == ["high"]
    assert [one.get("classname") for one in suite.iter("testcase")] == ["last (high)"]
    value = eagle("expect", "last", "--that", that, "--json").json
    assert (value["run"], value["runs"]) == ("last", ["high"])


def test_a_run_that_is_left_out_is_told_with_the_expectation(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    """Of `bench@main..` the baseline's own run is not judged against itself, and is by a bare number."""
    for at, name in enumerate(("bench-main", "bench-a", "bench-b", "bench-c")):
        put_served(store, name, created=float(at + 1), accept=0.6 + at / 20)
    assert eagle("baseline", "set", "main", "bench-main").code == 0
    xml = tmp_path / "out.xml"
    against = "accept_length_pooled >= 0.5 * baseline:main"
    asked = ("expect", "bench@main..", "--that", against, "--that", "accept_length_pooled >= 1")
    answer = eagle(*asked, "--junit", str(xml))
    assert " ".join(answer.out.split()).count("without bench-main, which it is compared with") == 1
    told = {one["condition"]: one["left_out"] for one in eagle(*asked, "--json").json["expectations"]}
    assert told == {">= 0.5 * baseline:main": ["bench-main"], ">= 1": []}
    first, second = ElementTree.fromstring(xml.read_bytes()).iter("system-out")
    assert "without bench-main" in (first.text or "")
    assert "without" not in (second.text or "")


def test_an_error_names_the_load_of_each_expectation(store: Store, eagle: Eagle) -> None:
    put_run(store, "high", 0.8)
    told = " ".join(eagle("expect", "high", "--that", "best.first_step_accuracy <= 65 %").err.split())
    assert "best.first_step_accuracy <= 65 % at split=train" in told


def test_expectations_said_on_the_command_line(store: Store, eagle: Eagle) -> None:
    put_served(store, "bench-a1")
    eagle("baseline", "set", "plain", "--metric", "output_throughput_tok_s=40", "--unit", "tok/s", "--note", "x")
    good = "output_throughput_tok_s >= 1.3 * baseline:plain"
    assert eagle("expect", "bench-a1", "--that", good).code == 0
    assert eagle("expect", "bench-a1", "--that", good.replace("1.3", "1.6")).code == 8
    said = " ".join(eagle("expect", "bench-a1", "--that", good).out.split())
    assert "holds: output_throughput_tok_s >= 1.3 * baseline:plain at side=spec concurrency=1: 1.42" in said
    assert "x, 95 % interval 1.39" in said  # how many times it, as was asked
    assert "56.79 tok/s against 40 tok/s" in said
    in_ms = eagle("expect", "bench-a1", "--that", "e2e_s<=500000ms", "--that", "accept_rate>=0.001").out
    assert re.search(r"e2e_s <=500000ms at .*: [0-9.]+ ms, 95 % interval [0-9.]+ ms", " ".join(in_ms.split()))
    assert re.search(r"accept_rate >=0.001 at .*: 0\.[0-9]{3}, 95 %", " ".join(in_ms.split()))
    missing = eagle("expect", "bench-a1", "--that", good.replace(":plain", ":plane"))
    assert missing.code == 8
    assert "CANNOT TELL" in missing.out
    assert "no baseline of that name: plane" in " ".join(missing.out.split())
    assert eagle("expect", "bench-a1", "--that", "output_throughput >= 1").code == 2
    assert eagle("expect", "bench-a1").code == 2
    assert eagle("expect", "gone", "--that", good).code == 6


def test_what_a_run_was_launched_with_counts_where_nothing_else_is_said(store: Store, eagle: Eagle) -> None:
    put_served(store, "bench-a1")
    record = store.load("bench-a1")
    told = Setting(key="expect.output_throughput_tok_s", value=json.dumps([">= 80"]), source="job.toml")
    spec = dataclasses.replace(record.spec, settings=(*record.spec.settings, told))
    path = store.run_dir("bench-a1").path / "run.json"
    path.write_text(json.dumps(dataclasses.asdict(dataclasses.replace(record, spec=spec))))
    answer = eagle("expect", "bench-a1", "--json")
    assert answer.code == 8
    assert answer.json["expectations"][0]["source"] == "job.toml"
    assert answer.json["expectations"][0]["unit"] == "tok/s"


def test_the_projects_expectations_count_for_an_earlier_run_that_has_none(
    store: Store, eagle: Eagle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put_served(store, "bench-a1")
    (tmp_path / "eagle3.toml").write_text('[jobs.bench.expect]\noutput_throughput_tok_s = ">= 20 tok/s"\n')
    answer = eagle("expect", "bench-a1", "--json")
    (only,) = answer.json["expectations"]
    assert (answer.code, only["source"]) == (0, f"{tmp_path / 'eagle3.toml'} [jobs.bench]")
    assert eagle("runs", "export", "bench-a1", "a.json").code == 0
    assert eagle("expect", "a.json").code == eagle("expect", "bench~1").code == 0
    put_run(store, "drafter", 0.7)
    assert eagle("expect", "drafter").code == 2  # nothing is expected of this kind
    assert "runs of one kind, found: bench, standalone" in eagle("expect", "drafter,bench-a1").err


def test_junit_says_why_nothing_was_judged(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    put_served(store, "bench-a1")
    xml = tmp_path / "out.xml"
    for words, code, told in (
        (("bench-a1",), 2, "nothing was expected of `bench-a1`; --that"),
        (("bench-b1", "--that", "ttft_s <= 1"), 6, "did you mean: bench-a1"),
        (("bench-a1", "--that", "ttft_s <= 900"), 2, "write `900 ms` or `900 s`"),
    ):
        xml.unlink(missing_ok=True)
        assert eagle("expect", *words, "--junit", str(xml)).code == code
        suite = ElementTree.fromstring(xml.read_bytes())
        assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
        assert told in (suite[0][0].get("message") or "")


def test_expectations_are_overlaid_metric_by_metric_and_travel_with_the_run(tmp_path: Path) -> None:
    own = tmp_path / "job.toml"
    own.write_text(JOB)
    overlay = {"expect": {"declared": {"accept_length_walk": ">= 1", "first_step_accuracy": ">= 0.5"}}}
    config = Config(path=tmp_path / "eagle3.toml", jobs={"standalone": overlay})
    planned = jobfile.plan("standalone", config, own, {"draft": "/d", "rows": "/r"})
    told = {item.key: (json.loads(item.value), item.source) for item in planned.settings if "expect" in item.key}
    assert told == {
        "expect.declared.accept_length_walk": ([">= 1.5"], str(own)),
        "expect.declared.first_step_accuracy": ([">= 0.5"], f"{tmp_path / 'eagle3.toml'} [jobs.standalone]"),
        "expect.best.first_step_accuracy": ([">= 60 %", "<= 65 %"], str(own)),
    }
    assert "expect" not in vars(planned.job)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("expect = 3", "`expect` must be a table"),
        ("[expect]\nttft_s = 3", "`expect.ttft_s`: expected a condition, found: 3"),
        ("[expect]\nttft_s = []", "`expect.ttft_s`: expected a condition"),
        ('[expect]\nttft_s = ["<= 1", 2]', "`expect.ttft_s`: expected a condition"),
        ("steps = 3", "expected a table [expect]"),
    ],
)
def test_tables_that_are_none_are_refused_by_name(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "job.toml"
    path.write_text(f'kind = "standalone"\n{text}\n')
    with pytest.raises(JobFileError) as caught:
        jobfile.expectations_in(path)
    assert words in caught.value.message
    assert str(path) in caught.value.message


def test_a_job_file_says_which_job_it_is(eagle: Eagle, tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    for text, found in (('[expect]\nttft_s = "<= 1"', "no such line"), ('kind = "nch"', "kind = 'nch'")):
        job.write_text(text)
        asked = ("run", "bench", "--host", "nowhere", "--job", str(job))
        for answer in (eagle(*asked), eagle("expect", "x", "--job", str(job))):
            assert answer.code == 2
            assert 'expected a line that says which job this is, `kind = "' in answer.err
            assert f"found: {found}" in answer.err


def test_a_mistaken_expectation_is_told_before_anything_is_launched(eagle: Eagle, tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text('kind = "standalone"\n[expect]\naccept_lenth_walk = ">= 2"\n')
    answer = eagle("run", "standalone", "--host", "nowhere", "--draft", "/d", "--rows", "/r", "--job", str(job))
    assert answer.code == 2
    assert "hint: did you mean `accept_length_walk`" in answer.err
