"""`eagle3-remote report` on runs in a store, in every format."""

import base64
import csv
import dataclasses
import gzip
import io
import json
import re
from pathlib import Path

import pytest

from orchestrator.store import Store
from tests.cli.conftest import Eagle
from tests.support.made_bench import made_paired, made_server
from tests.support.made_results import made_declared, made_readings, made_result
from tests.support.made_runs import made_run, put_files, put_standalone
from tests.support.made_sets import put_bench


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def put_drafter(store: Store, run_id: str = "drafter-1") -> None:
    rows, hits, readings = made_readings({((0, 1, 2), 1): 0.75, ((1, 2, 3), 1): 0.3}, rows=12)
    result = made_result(readings, made_declared((2, 4, 5), (1, 2, 3), config_ids=(1, 3, 4)), rows=12)
    put_standalone(store, made_run(run_id), result, rows, hits)


def data_of(page: str) -> dict:  # type: ignore[type-arg]
    """What the page's download link holds."""
    kind, text = re.search(r'href="data:application/([a-z]+);base64,([^"]+)"', page).groups()  # type: ignore[union-attr]
    data = base64.b64decode(text)
    return json.loads(gzip.decompress(data) if kind == "gzip" else data)  # type: ignore[no-any-return]


def test_a_served_run_becomes_one_file_named_after_it(eagle: Eagle, store: Store, tmp_path: Path) -> None:
    put_bench(store, "bench-a1", made_paired(repeats=3))
    answer = eagle("report", "last")
    assert (answer.code, answer.out, answer.err) == (0, "report-bench-a1.html\n", "")
    page = (tmp_path / "report-bench-a1.html").read_text(encoding="utf-8")
    assert '<p class="verdict bad">Slower than plain decoding at 1 user: 56.8 against 90.0 tok/s (0.63x)' in page
    assert "r = 3.0" in page  # 1.90 / 0.631
    run = data_of(page)["runs"][0]
    spec = next(case for case in run["cases"] if case["case"]["side"] == "spec")
    throughput = next(one for one in spec["series"] if one["metric"] == "output_throughput_tok_s")
    assert throughput["value"] == pytest.approx(56.8 * (0.99 * 1.01) ** (1 / 3))  # geometric, as changes are ratios
    assert throughput["low"] < 56.8 < throughput["high"]
    assert throughput["n"] == 3
    assert run["report"]["diagnosis"]["verdict"] == "slower"


def test_starts_that_ran_with_the_same_are_told_once(eagle: Eagle, store: Store) -> None:
    result, requests = made_paired(repeats=3)
    servers = tuple(
        dataclasses.replace(
            made_server(one.side, runs={"port": 30000 + number, "page_size": 64 if number == 2 else 1}), start=number
        )
        for number, one in enumerate(result.servers)
    )
    put_bench(store, "bench-a1", (dataclasses.replace(result, servers=servers), requests))
    told = eagle("report", "last", "--format", "markdown").out
    names = re.findall(r"((?:spec|plain) server, starts? [0-9, ]+): [0-9]+ of", told)
    assert names == ["spec server, starts 1, 5", "plain server, starts 2, 4, 6", "spec server, start 3"]


def test_the_same_report_is_the_same_file(eagle: Eagle, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put_bench(store, "bench-a1", made_paired(repeats=3))
    monkeypatch.setattr("time.time", lambda: 1767323045.0)
    first = eagle("report", "last", "--out", "-").out
    assert first.startswith("<!doctype html>")
    assert eagle("report", "last", "--out", "-").out == first


def test_a_drafter_test_has_its_readings_ranked(eagle: Eagle, store: Store) -> None:
    put_drafter(store)
    text = eagle("report", "drafter-1", "--format", "markdown").out
    assert "## Wirings, ranked" in text
    first, second = re.findall(r"^\| [12] \| (slots \S+)", text, flags=re.MULTILINE)
    assert (first, second) == ("slots 0,1,2", "slots 1,2,3")
    assert text.index("**Mis-wired") < text.index("## What to do, and why") < text.index("## Wirings, ranked")


def test_two_runs_are_compared_and_the_verdict_is_on_top(eagle: Eagle, store: Store) -> None:
    put_bench(store, "bench-a1", made_paired(repeats=5))
    put_bench(store, "bench-b1", made_paired(repeats=5, spec_tok_s=75.0))
    text = eagle("report", "bench-a1", "bench-b1", "--format", "markdown").out
    assert text.splitlines()[2].startswith("**Improved")
    assert "bench-b1" in text.splitlines()[2]
    assert "## Compared" in text
    value = eagle("report", "bench-a1", "bench-b1", "--format", "json").json
    assert [run["run_id"] for run in value["runs"]] == ["bench-a1", "bench-b1"]
    assert value["comparisons"][0]["verdict"] == "improved"


def test_csv_has_a_line_a_figure_and_a_line_a_change(eagle: Eagle, store: Store) -> None:
    put_bench(store, "bench-a1", made_paired(repeats=5))
    put_bench(store, "bench-b1", made_paired(repeats=5, spec_tok_s=75.0))
    rows = list(csv.DictReader(io.StringIO(eagle("report", "bench-a1", "bench-b1", "--format", "csv").out)))
    chosen = [row for row in rows if row["metric"] == "output_throughput_tok_s" and row["case"] == "spec, 1 user"]
    assert [(row["kind"], row["run"], row["n"]) for row in chosen] == [
        ("figure", "bench-a1", "5"),
        ("figure", "bench-b1", "5"),
        ("change", "bench-b1", "5"),
    ]
    geometric = (0.98 * 0.99 * 1.01 * 1.02) ** (1 / 5)
    assert float(chosen[1]["value"]) == pytest.approx(75.0 * geometric)
    assert float(chosen[1]["value"]) / float(chosen[0]["value"]) - 1 == pytest.approx(float(chosen[2]["value"]))
    assert float(chosen[2]["value"]) == pytest.approx(75 / 56.8 - 1)
    assert chosen[2]["verdict"] == "improved"


def test_a_baseline_is_what_runs_are_held_against(eagle: Eagle, store: Store) -> None:
    put_bench(store, "bench-a1", made_paired(repeats=5))
    put_bench(store, "bench-b1", made_paired(repeats=5, spec_tok_s=45.0))
    assert eagle("baseline", "set", "main", "bench-a1").code == 0
    text = eagle("report", "bench-b1", "--baseline", "main", "--format", "markdown").out
    assert text.splitlines()[2].startswith("**Regressed")
    assert "Baseline moves, newest first" in text
    assert eagle("baseline", "set", "main", "bench-b1").code == 0
    alone = eagle("report", "--baseline", "main", "--format", "markdown").out
    assert alone.splitlines()[0] == "# bench-a1 and bench-b1"
    path = store.home / "baselines" / "main.json"
    history = json.loads(path.read_text())
    history["history"][1]["set_at_unix_s"] = 5.0  # by a clock that was set back
    path.write_text(json.dumps(history))
    moves = eagle("report", "--baseline", "main", "--format", "json").json["baseline_moves"]
    assert [move["run_id"] for move in moves] == ["bench-a1", "bench-b1"]
    assert eagle("baseline", "set", "main", "bench-a1").code == 0  # back to the first
    back = eagle("report", "--baseline", "main", "--format", "json").json
    (compared,) = back["comparisons"]
    assert (compared["ours"], compared["theirs"], compared["verdict"]) == ("bench-a1", "bench-b1", "improved")
    assert alone.splitlines()[2].startswith("**Regressed")


def test_a_file_or_a_baseline_that_came_by_git_needs_no_run(eagle: Eagle, store: Store, tmp_path: Path) -> None:
    put_bench(store, "bench-a1", made_paired(repeats=5))
    (tmp_path / "baselines").mkdir()
    (tmp_path / "eagle3.toml").touch()
    assert eagle("baseline", "set", "main", "bench-a1").code == 0
    eagle("runs", "export", "bench-a1", "a.json")
    eagle("runs", "export", "bench-a1", "a.tar.gz")
    eagle("runs", "note", "bench-a1", "of this laptop")
    assert "of this laptop" in eagle("report", "a.json", "--format", "markdown").out
    here = eagle("report", "a.json", "--format", "json").json["runs"][0]
    assert here["report"]["diagnosis"]["verdict"] == "slower"
    eagle("runs", "rm", "bench-a1")
    put_bench(store, "bench-b1", made_paired(repeats=5, spec_tok_s=45.0))
    for words in (["a.json"], ["a.tar.gz"], ["--baseline", "main"], ["baseline:main"]):
        answer = eagle("report", *words, "--format", "json")
        assert answer.code == 0, answer.err
        (only,) = answer.json["runs"]
        assert (only["run_id"], only["report"]) == ("bench-a1", None)
        assert only["cases"][0]["series"]
    against = eagle("report", "bench-b1", "--baseline", "main", "--format", "markdown")
    assert against.out.splitlines()[2].startswith("**Regressed")
    put_bench(store, "bench-a1", made_paired(repeats=5, spec_tok_s=77.0))  # another run of the same id
    assert eagle("report", "a.json", "--format", "json").json["runs"][0]["report"] is None
    both = eagle("report", "bench-a1", "a.json")
    assert both.code == 5
    assert "expected one run of each id, found two different ones: bench-a1" in both.err


def test_published_numbers_are_held_against_and_never_called_ours(eagle: Eagle, store: Store) -> None:
    put_bench(store, "bench-a1", made_paired(repeats=5))
    name = "published:specbundle/qwen3-30b-a3b-instruct-2507/3-1-4/gsm8k"
    held = eagle("report", "bench-a1", "--baseline", name, "--format", "json")
    assert held.code == 0, held.err
    (compared,) = held.json["comparisons"]
    assert compared["ours"] == "bench-a1"
    assert "published" in compared["theirs"]
    assert [run["run_id"] for run in held.json["runs"]] == ["bench-a1"]
    alone = eagle("report", "--baseline", name, "--format", "markdown")
    assert "published: no measurement of ours" in alone.out


def test_a_sweep_is_every_run_with_a_tag_and_says_what_it_left_out(eagle: Eagle, store: Store) -> None:
    for number in range(3):
        put_bench(store, f"bench-{number}", made_paired(repeats=3, spec_tok_s=50.0 + number))
        assert eagle("runs", "tag", f"bench-{number}", "+grid").code == 0
    store.begin(made_run("bench-broken", phase="failed"))
    assert eagle("runs", "tag", "bench-broken", "+grid").code == 0
    text = eagle("report", "--sweep", "grid", "--format", "markdown").out
    assert text.startswith("# 3 runs\n")
    assert "## Trend over runs" in text
    assert "Left out" in text
    assert "bench-broken" in text
    nothing = eagle("report", "--sweep", "gird")
    assert nothing.code == 6
    assert "tags: grid" in nothing.err


def test_a_run_that_failed_says_so(eagle: Eagle, store: Store) -> None:
    store.begin(made_run("drafter-1", phase="failed"))
    text = eagle("report", "drafter-1", "--format", "markdown").out
    assert "**No figures: the run is failed." in text


def test_what_cannot_be_meant_is_refused(eagle: Eagle, store: Store, tmp_path: Path) -> None:
    assert eagle("report").code == 2
    assert eagle("report", "nobody").code == 6
    assert eagle("report", "last", "--baseline", "main").code == 6
    put_bench(store, "bench-a1", made_paired(repeats=3))
    assert eagle("report", "last", "--format", "pdf").code == 2
    costly = eagle("report", "last", "--step-cost", "1.2")
    assert (costly.code, "--step-cost: expected a drafter test" in costly.err, "found: bench" in costly.err) == (
        2,
        True,
        True,
    )
    folder = tmp_path / "folder"
    folder.mkdir()
    refused = eagle("report", "last", "--out", str(folder))
    assert refused.code == 2
    assert "there is something else" in refused.err
    missing = eagle("report", "last", "--out", str(tmp_path / "none" / "x.html"))
    assert missing.code == 2
    assert "a folder that exists" in missing.err
    assert list(tmp_path.glob("**/*.half")) == []


def test_a_result_that_was_changed_is_refused(eagle: Eagle, store: Store) -> None:
    put_bench(store, "bench-a1", made_paired(repeats=3))
    run = store.run_dir("bench-a1")
    (run.result / "bench.json").write_bytes((run.result / "bench.json").read_bytes() + b" ")
    assert eagle("report", "bench-a1").code == 5


def test_a_standalone_run_without_its_hits_is_refused(eagle: Eagle, store: Store) -> None:
    put_drafter(store)
    run = store.run_dir("drafter-1")
    put_files(run, {"standalone.json": (run.result / "standalone.json").read_bytes()})
    assert eagle("report", "drafter-1").code in (5, 40)
