import dataclasses
import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestrator.store import Store
from tests.cli.conftest import Eagle
from tests.cli.test_runs_baseline_diff import put_run
from tests.support.made_bench import made_bench, made_paired, made_point, made_request, made_server
from tests.support.made_runs import made_run
from tests.support.made_sets import put_bench


def put_served(store: Store, run_id: str, *, accept: float = 0.7, created: float = 1.0, **more: object) -> None:
    put_bench(store, run_id, made_paired(repeats=5, accept=(accept,), **more), created=created)  # type: ignore[arg-type]


def spec(eagle: Eagle, *arguments: str) -> object:
    return eagle("diff", *arguments, "--json").json["comparisons"][0]["cases"][0]


def test_a_regression_and_an_improvement_and_their_exit_codes(store: Store, eagle: Eagle) -> None:
    put_run(store, "low", 0.55)
    put_run(store, "high", 0.8)
    eagle("baseline", "set", "high", "high")
    worse = eagle("diff", "low", "--against", "high")
    assert worse.code == eagle("diff", "low", "--against", "baseline:high").code == 1
    assert worse.out.startswith("Regressed: declared.accept_length_walk at split=train: ")
    assert "95 % interval" in worse.out
    assert "12 pairs" in worse.out
    assert "margin 2 %" in worse.out
    better = eagle("diff", "low", "high", "--json")
    assert (better.code, better.json["verdict"]) == (0, "improved")
    same = eagle("diff", "high", "--against", "high", "--json")
    assert (same.code, same.json["verdict"]) == (0, "the same run")


def test_the_report_fits_eighty_columns(store: Store, eagle: Eagle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    put_run(store, "low", 0.55)
    put_run(store, "high", 0.8)
    put_served(store, "bench-a1")
    put_served(store, "bench-b2", accept=0.9, created=2.0)
    for words in (("low", "high"), ("bench-a1", "bench-b2"), ("bench-a1", "bench-b2", "bench-a1", "--by", "side")):
        out = eagle("diff", *words).out
        assert max(map(len, out.splitlines())) <= 80, out


def test_depths_histograms_and_arguments_stand_side_by_side(store: Store, eagle: Eagle) -> None:
    put_served(store, "old", servers=(made_server("spec"), made_server("plain")))
    changed = (made_server("spec", runs={"page_size": 64}), made_server("plain"))
    put_served(store, "new", accept=0.9, servers=changed)
    out = eagle("diff", "old", "new").out
    assert "reference, n=1200  27.9 %  72.1 %" in out
    assert "this, n=1200       9.6 %   90.4 %" in out
    assert "runs with: page_size: unknown -> 64" in out
    both = (made_server("spec", runs={"page_size": 1}), made_server("plain"))
    put_served(store, "older", servers=both)
    assert "runs with: page_size: 1 -> 64" in eagle("diff", "older", "new").out


def test_rows_of_another_set_are_not_comparable_unless_they_are_under_test(store: Store, eagle: Eagle) -> None:
    put_run(store, "low", 0.4, rows=10)
    put_run(store, "high", 0.8)
    refused = eagle("diff", "high", "low")
    assert refused.code == 4
    assert refused.out.startswith("Not comparable: low against high: prompts_sha256: ")
    assert "--vary prompts_sha256" in refused.out
    assert eagle("diff", "high", "low", "--vary", "prompts").code == 1
    forced = eagle("diff", "high", "low", "--force")
    assert forced.code == 1
    assert forced.out.startswith("Forced: regressed: ")
    assert "forced: the sides are not comparable" in forced.out
    many = eagle("diff", "high", "low", "high", "--force")
    assert many.out.startswith("Forced: regressed: 2 sides against high")
    assert eagle("diff", "high", "low", "--force", "--json").json["comparisons"][0]["sentence"].startswith("Forced: ")


def test_too_few_samples_are_no_alarm_unless_certainty_is_asked_for(store: Store, eagle: Eagle) -> None:
    put_run(store, "low", 0.4, rows=3)
    put_run(store, "high", 0.8, rows=3)
    answer = eagle("diff", "high", "low", "--json")
    assert (answer.code, answer.json["verdict"]) == (0, "inconclusive")
    strict = eagle("diff", "high", "low", "--strict")
    assert (strict.code, strict.out.split(":")[0]) == (3, "Inconclusive")


def test_failed_requests_are_invalid(store: Store, eagle: Eagle) -> None:
    put_served(store, "good")
    result, requests = made_paired(repeats=5, accept=(0.7,))
    points = (dataclasses.replace(result.points[0], failed=1), *result.points[1:])
    broken = (dataclasses.replace(requests[0], error="timed out"), *requests[1:])
    put_bench(store, "bad", (dataclasses.replace(result, points=points), broken))
    answer = eagle("diff", "good", "bad")
    assert answer.code == 5
    assert "1 of 40 requests failed" in answer.out
    forced = eagle("diff", "good", "bad", "--force")
    assert (forced.code, forced.out.split(":")[0]) == (5, "Invalid")
    assert eagle("diff", "good", "bad", "good", "--force").code == 5
    assert eagle("diff", "good", "bad", "--by", "side", "--force").code == 5


def test_a_typed_number_is_compared_where_the_run_has_it(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7)
    put_served(store, "bench-a1")
    for name, value in (("plain", "90"), ("slow", "40")):
        eagle("baseline", "set", name, "--metric", f"output_throughput_tok_s={value}", "--unit", "tok/s", "--note", "x")
    none = eagle("diff", "run-a1", "--against", "plain")
    assert none.code == 4
    assert "this side has no output_throughput_tok_s" in none.out
    assert eagle("diff", "bench-a1", "--against", "plain").code == 1
    better = eagle("diff", "bench-a1", "--against", "slow")
    assert better.code == 0
    assert "a typed number" in better.out
    assert "how theirs was counted is not told" in better.out


def test_published_numbers_are_never_taken_for_own_ones(store: Store, eagle: Eagle) -> None:
    put_served(store, "bench-a1")
    words = ("bench-a1", "--against", "published:specbundle/kimi-k2-instruct/3-1-4/gsm8k")
    assert eagle("diff", *words).code == 4
    answer = eagle("diff", *words, "--vary", "concurrency")
    assert (answer.code, answer.out.split(":")[0]) == (4, "Not comparable")
    assert "published, not measured here" in " ".join(answer.out.split())
    forced = eagle("diff", *words, "--vary", "concurrency", "--force")
    assert (forced.code, "forced: the sides are not comparable: target" in forced.out) == (1, True)


def test_names_that_mean_nothing_are_told_with_the_closest(store: Store, eagle: Eagle) -> None:
    put_run(store, "run-a1", 0.7)
    store.begin(made_run("bare"))
    eagle("baseline", "set", "best", "run-a1")
    assert eagle("diff", "bare", "--against", "best").code == 5
    for words in (("run-a1", "--against", "bets"), ("run-a1", "baseline:bets")):
        missing = eagle("diff", *words)
        assert missing.code == 6
        assert "hint: did you mean: best" in missing.err
    assert eagle("diff", "gone", "--against", "best").code == 6
    assert eagle("diff", "run-a1").code == 2
    assert eagle("diff", "run-a1", "run-a1", "--where", "users").code == 2


def test_loads_that_no_side_has_are_told_with_those_there_are(store: Store, eagle: Eagle) -> None:
    put_served(store, "old")
    put_served(store, "new", created=2.0)
    for more in ((), ("--by", "side")):
        answer = eagle("diff", "old", "new", "--where", "concurrency=5", *more)
        assert (answer.code, answer.out) == (2, "")
        assert "--where: no load of any side has concurrency=5" in answer.err
        assert "hint: there are: 1" in answer.err
    assert "there are: spec, plain" in " ".join(eagle("diff", "old", "new", "--where", "side=draft").err.split())
    assert eagle("diff", "old", "new", "--where", "concurrency=1", "--where", "side=spec").code == 0


def test_sets_of_runs_by_number_tag_and_baseline(store: Store, eagle: Eagle) -> None:
    for number in range(6):
        made = made_paired(repeats=1, spec_tok_s=50 + number)
        put_bench(store, f"bench-{number}", made, created=float(number), tags=("nightly",) if number > 3 else ())
    eagle("baseline", "set", "main", "bench-3")

    def runs(word: str) -> list[str]:
        told = eagle("diff", "bench-0", word, "--json").json["comparisons"][0]["this"]
        return [run["run_id"] for run in told["runs"]]

    assert runs("bench~2") == ["bench-5", "bench-4"]
    assert runs("bench@nightly") == ["bench-5", "bench-4"]
    assert runs("bench@nightly~1") == ["bench-5"]
    assert runs("bench@main..") == ["bench-5", "bench-4", "bench-3"]
    assert runs("bench@main~2..") == ["bench-5", "bench-4"]
    assert runs("bench-1,bench-2,bench-1") == ["bench-1", "bench-2"]
    for words in (("bench@main..",), ("bench@main..", "--against", "main"), ("bench-3", "bench@main~5..")):
        told = eagle("diff", *words, "--json").json["comparisons"][0]
        assert [run["run_id"] for run in told["reference"]["runs"]] == ["bench-3"]
        assert [run["run_id"] for run in told["this"]["runs"]] == ["bench-5", "bench-4"]  # never its own
        assert told["notes"] == ["bench-3 is what is compared with: left out of the other side"]
    for words in (("bench@main..,bench-1",), ("bench@main..,bench-1", "--against", "main")):
        told = eagle("diff", *words, "--json").json["comparisons"][0]
        assert [run["run_id"] for run in told["this"]["runs"]] == ["bench-5", "bench-4", "bench-1"]
        assert told["notes"] == ["bench-3 is what is compared with: left out of the other side"]
    page = eagle("report", "bench@main..,bench-1", "--baseline", "main", "--format", "json").json
    assert "left out of the other side" in json.dumps(page)
    that = ("--that", "output_throughput_tok_s >= 0.5 * baseline:main")
    judged = eagle("expect", "bench@main..,bench-1", *that, "--json").json["expectations"][0]
    assert judged["comparison"]["n_ours"] == 3
    assert eagle("diff", "bench@main~1..", "--json").json["comparisons"][0]["this"]["label"] == "bench-5"
    alone = eagle("diff", "bench@main..", "--by", "side", "--json").json["tables"][0]
    assert alone["columns"] == ["bench@main.."]
    eagle("baseline", "set", "newest", "bench-5")
    nothing = eagle("diff", "bench@newest..")
    assert (nothing.code, "no valid run is newer than the one to compare with" in nothing.err) == (6, True)
    bare = eagle("diff", "bench~3")
    assert (bare.code, "diff bench~3 --against NAME" in " ".join(bare.err.split())) == (2, True)
    none = eagle("diff", "bench-0", "standalone~3")
    assert (none.code, "no valid run on this laptop is meant by: standalone~3" in none.err) == (6, True)
    assert "tags of bench runs: nightly" in eagle("diff", "bench-0", "bench@weekly").err
    assert eagle("diff", "bench-0", "bench@mane..").code == 6
    assert eagle("diff", "bench-0", "bench~2..").code == 2


def test_a_table_of_a_run_and_itself_says_that_it_is_the_same_run(store: Store, eagle: Eagle) -> None:
    put_served(store, "one")
    put_served(store, "other", accept=0.6)
    again = eagle("diff", "one", "one", "other", "--by", "side", "--json")
    cells = again.json["tables"][0]["rows"][-1]["cells"]
    assert cells[0]["comparison"] is None
    assert (cells[1]["comparison"]["verdict"], cells[1]["comparison"]["change"]["value"]) == ("the same run", None)
    assert cells[2]["comparison"]["verdict"] != "the same run"
    shown = eagle("diff", "one", "one", "--by", "side")
    assert (shown.code, "the same run" in shown.out, "inconclusive" in shown.out) == (0, True, False)


def test_one_run_of_three_starts_is_enough_to_judge_its_speed(store: Store, eagle: Eagle) -> None:
    for name, tok_s, starts in (("old", 50.0, 3), ("new", 70.0, 3), ("single", 70.0, 1)):
        points, requests = [], []
        for number in range(6):
            some = [
                made_request(number, i, sent_s=i * 64 / tok_s, seconds=(64 + number // 2 + i % 2) / tok_s)
                for i in range(8)
            ]
            points.append(made_point(number, some, start=number // 2 if starts == 3 else 0, repeat=number))
            requests += some
        put_bench(store, name, (made_bench([made_server()], points, repeats=6, planned=6), requests))
    told = eagle("diff", "old", "new", "--metric", "output_throughput_tok_s", "--json").json["comparisons"][0]
    (line,) = told["cases"][0]["metrics"]
    assert (told["verdict"], line["n_this"], line["n_reference"]) == ("improved", 3, 3)
    alone = eagle("diff", "old", "single", "--metric", "output_throughput_tok_s", "--json").json["comparisons"][0]
    assert alone["verdict"] == "single run"
    assert eagle("expect", "new", "--that", "output_throughput_tok_s >= 60").code == 0
    few = eagle("expect", "single", "--that", "output_throughput_tok_s >= 60")
    assert (few.code, "measure with `--starts 3`" in " ".join(few.out.split())) == (8, True)


def test_what_is_to_be_said_of_many_metrics_is_said_once(store: Store, eagle: Eagle) -> None:
    put_served(store, "old")
    put_bench(store, "one", made_paired(repeats=1, spec_tok_s=60, accept=(0.7,)), created=2.0)
    out = " ".join(eagle("diff", "old", "one", "--where", "side=spec").out.split())
    assert out.count("it takes 2 more runs of ours") == 1
    assert out.count("our one run is outside") == 7  # its own numbers each; not of the speed-up, which never differed


def test_one_reason_of_many_metrics_is_one_reason(store: Store, eagle: Eagle) -> None:
    put_served(store, "short", accept=0.0)
    put_served(store, "long", accept=1.0, created=2.0)
    out = " ".join(eagle("diff", "short", "long", "long", "--where", "side=plain").out.split())
    told = (
        "output_throughput_tok_s, total_throughput_tok_s, request_throughput_req_s, ttft_s and 3 more: our outputs are"
    )
    assert out.count(told) == 1


def test_a_set_leaves_out_what_is_not_valid(store: Store, eagle: Eagle) -> None:
    put_served(store, "good")
    result, requests = made_paired(repeats=5)
    part = dataclasses.replace(result, whole=False, planned=20, repeats=10)
    put_bench(store, "part", (part, requests), created=2.0)
    store.begin(made_run("bare", created_unix_s=3.0))
    told = eagle("diff", "good", "bench~5", "--json").json["comparisons"][0]["this"]
    assert [run["run_id"] for run in told["runs"]] == ["good"]


def test_many_runs_are_a_table_against_the_first(store: Store, eagle: Eagle) -> None:
    for number, speed in enumerate((56.0, 57.0, 70.0, 40.0)):
        put_served(store, f"bench-{number}", spec_tok_s=speed)
    answer = eagle("diff", *(f"bench-{number}" for number in range(4)))
    assert answer.code == 1
    assert answer.out.startswith("Regressed: 3 sides against bench-0: 1 inconclusive, 1 improved, 1 regressed")
    assert "reference" in answer.out
    lines = [line for line in answer.out.splitlines() if line.strip().startswith("bench-3")]
    assert lines
    assert lines[0].endswith("regressed")
    value = eagle("diff", *(f"bench-{number}" for number in range(4)), "--json").json
    assert [one["verdict"] for one in value["comparisons"]] == ["inconclusive", "improved", "regressed"]


def test_sides_that_cannot_be_compared_are_named_together(store: Store, eagle: Eagle) -> None:
    put_served(store, "old")
    other = (made_server("spec", runs={"tp_size": 2}), made_server("plain", runs={"tp_size": 2}))
    for number in range(10):
        put_served(store, f"new-{number}", servers=other)
    answer = eagle("diff", "old", *(f"new-{number}" for number in range(10)))
    assert answer.code == 4
    assert "\nNot comparable, new-0, new-1" in answer.out
    assert "new-7 and 2 more: tp: 2 against 1" in " ".join(answer.out.split())
    assert answer.out.count("tp: 2 against 1") == 1


def test_a_pivot_has_a_line_a_value_and_side(store: Store, eagle: Eagle) -> None:
    for steps, speed in ((3, 56.0), (5, 60.0)):
        runs = dict(zip(("speculative_num_steps", "speculative_num_draft_tokens"), (steps, steps + 1), strict=True))
        servers = (made_server("spec", runs=runs), made_server("plain"))
        put_served(store, f"steps-{steps}", spec_tok_s=speed, servers=servers)
    answer = eagle("diff", "steps-3,steps-5", "--by", "num_steps", "--where", "side=spec")
    assert answer.code == 0
    assert answer.out.startswith("output_throughput_tok_s by num_steps, side=spec concurrency=1")
    rows = {row["value"]: row["cells"][0] for row in _tables(eagle, "num_steps")[0]["rows"]}
    assert rows["3"]["comparison"] is None
    assert rows["5"]["comparison"]["verdict"] == "improved"
    assert rows["5"]["comparison"]["correction"] == "Benjamini-Hochberg"
    apart = eagle("diff", "steps-3", "steps-5", "--by", "num_steps")
    told = "nothing was compared (side=spec concurrency=1): no value of num_steps is on two sides"
    assert told in " ".join(apart.out.split())
    assert "diff steps-3,steps-5 --by num_steps" in " ".join(apart.out.split())
    assert "nothing was compared" not in answer.out
    side = eagle("diff", "steps-3", "steps-5", "--by", "side", "--vary", "num_steps")
    lengths = side.out.partition("accept_length_pooled by side")[2]
    assert "plain: steps-3 " in side.out.partition("accept_length_pooled by side")[0]
    assert "spec: steps-3 " in lengths
    assert "plain: steps-3 " not in lengths  # it has none on either side
    alone = _tables(eagle, "side", where=())
    length = next(table for table in alone if table["metric"] == "accept_length_pooled")
    plain, drafted = (row["cells"][0] for row in length["rows"])  # only the drafter's side has one
    assert (plain, drafted["comparison"]["verdict"]) == (None, "not comparable")
    assert drafted["figure"]["value"] > 1
    assert drafted["barred"] == ["the reference has no accept_length_pooled"]
    assert eagle("diff", "steps-3", "--by", "num_stps").code == 2


def _tables(eagle: Eagle, key: str, where: tuple[str, ...] = ("--where", "side=spec")) -> list[dict[str, Any]]:
    tables: list[dict[str, Any]] = eagle("diff", "steps-3,steps-5", "--by", key, *where, "--json").json["tables"]
    return tables


def test_margins_of_the_project_are_used_and_mistakes_in_them_told(
    store: Store, eagle: Eagle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put_run(store, "low", 0.55)
    put_run(store, "high", 0.8)
    toml = tmp_path / "eagle3.toml"
    toml.write_text("[margins]\naccept_length_walk = 0.9\n")
    assert eagle("diff", "low", "high", "--json").json["verdict"] == "equivalent"
    for text, words in (
        ("accept_length_wlk = 0.1", "`margins.accept_length_wlk`: no such metric (did you mean `accept_length_walk`?)"),
        ("accept_length_walk = 2", "expected a number above 0 and below 1"),
        ('accept_length_walk = "2 %"', "expected a number above 0 and below 1"),
        ("accept_length_walk = nan", "expected a number above 0 and below 1"),
    ):
        toml.write_text(f"[margins]\n{text}\n")
        answer = eagle("diff", "low", "high")
        assert answer.code == 2
        assert words in answer.err


def test_markdown_cannot_be_broken_by_what_a_run_brought(store: Store, eagle: Eagle) -> None:
    evil = "a|b\n# x <img src=x> [y](javascript:z) `"
    put_served(store, "old")
    result, requests = made_paired(repeats=5)
    workload = dataclasses.replace(result.workload, source=evil)
    put_bench(store, "new", (dataclasses.replace(result, workload=workload), requests))
    out = eagle("diff", "old", "new", "--markdown").out
    assert out.startswith("**")
    assert "<img" not in out.replace("\\<", "")
    assert "\n# x" not in out
    rows = [line for line in out.splitlines() if line.startswith("| ")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {8}


@pytest.mark.parametrize("damage", ["edited", "manifest"])
def test_edited_results_are_never_compared_as_the_runs_own(store: Store, eagle: Eagle, damage: str) -> None:
    put_run(store, "run-a1", 0.7)
    result = store.run_dir("run-a1").result
    assert eagle("diff", "run-a1", "run-a1").code == 0
    if damage == "edited":
        text = gzip.decompress((result / "hits.jsonl.gz").read_bytes()).decode()
        (result / "hits.jsonl.gz").write_bytes(gzip.compress(text.replace('"hits":"', '"hits":"/', 1).encode()))
    else:
        (result / "manifest.json").write_text("{}")
    edited = eagle("diff", "run-a1", "run-a1")
    assert (edited.code, edited.out) == (5 if damage == "edited" else 40, "")


def test_a_baseline_from_before_there_were_records_never_means_another_run(store: Store, eagle: Eagle) -> None:
    for run_id in ("sa", "sab"):
        put_run(store, run_id, 0.7)
    eagle("baseline", "set", "m", "sa")
    path = store.names.folder / "m.json"
    entry = json.loads(path.read_text())
    entry["history"][0]["record_sha256"] = None
    path.write_text(json.dumps(entry))
    shutil.rmtree(store.run_dir("sa").path)
    answer = eagle("diff", "sab", "--against", "m")
    assert (answer.code, answer.out) == (6, "")
    assert "the baseline `m` means a run that is not on this laptop: sa" in answer.err
