"""`eagle3-remote import`: files of other tools become runs, once, and are compared."""

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from orchestrator.store import Store
from tests.cli.conftest import Eagle
from tests.cli.test_runs_baseline_diff import put_run
from tests.support.lasting import at_throughput

DATA = Path(__file__).parents[1] / "importers" / "data"
SERVING, VLLM = str(DATA / "sglang_serving_0.5.23.jsonl"), str(DATA / "vllm_serve_0.33.0.json")


def test_a_file_is_imported_once(store: Store, eagle: Eagle) -> None:
    first = eagle("import", SERVING, "--tag", "other", "--json")
    run_id = first.json["run_id"]
    assert first.json["new"] is True
    assert store.imported(run_id).tool == "sglang bench_serving"
    assert store.labels(run_id).tags == ("other",)
    again = eagle("import", SERVING, "--label", "again")
    assert f"already here: {run_id}" in again.out
    assert len(eagle("runs", "list", "--json").json["runs"]) == 1


def test_a_dry_run_keeps_nothing(store: Store, eagle: Eagle) -> None:
    told = eagle("import", SERVING, VLLM, "--dry-run")
    assert told.out.count("would import") == 2
    assert "the GPU, which prompts" in told.err.replace("\n", " ")
    for file in (SERVING, VLLM):  # each file's own, below its name
        alone = eagle("import", file, "--dry-run").err.splitlines()
        unknown = [f"  {line}" for line in alone if line.startswith("unknown: ")]
        assert unknown
        assert "\n".join([f"{file}:", *unknown]) in told.err
        warned = [line.replace("warning: ", f"warning: {file}: ") for line in alone if line.startswith("warning: ")]
        assert set(warned) <= set(told.err.splitlines())
    assert store.list() == ()


def test_nothing_is_kept_where_one_of_several_is_broken(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    broken = tmp_path / "cut.jsonl"
    broken.write_bytes(Path(VLLM).read_bytes()[:200])
    assert eagle("import", VLLM, str(broken)).code == 5
    assert eagle("import", str(tmp_path / "none.json")).code == 6
    assert eagle("import", VLLM, "--kind", "nothing").code == 2
    assert store.list() == ()


def test_what_is_no_result_is_told_before_it_is_read(eagle: Eagle, tmp_path: Path) -> None:
    sparse = tmp_path / "sparse.jsonl"
    sparse.touch()
    os.truncate(sparse, 201 << 20)
    told = eagle("import", str(sparse))
    assert (told.code, "expected at most 200 MB, found: 201 MB" in told.err) == (2, True)
    os.truncate(sparse, (200 << 20) + 1)
    assert "expected at most 200 MB, found: 201 MB" in eagle("import", str(sparse)).err
    os.truncate(sparse, 150 << 20)  # nothing but zeros
    told = eagle("import", str(sparse))
    assert (told.code, "found other bytes at 0" in told.err) == (5, True)
    empty = tmp_path / "empty"
    empty.mkdir()
    told = eagle("import", str(empty))
    assert (told.code, "expected the folder of a sweep with results in it" in told.err) == (2, True)
    (tmp_path / "pipe").unlink(missing_ok=True)
    os.mkfifo(tmp_path / "pipe")
    assert eagle("import", str(tmp_path / "pipe")).code == 2


def test_the_folder_of_a_sweep_is_one_run(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    shutil.copytree(DATA / "vllm_sweep_0.33.0", tmp_path / "exp")
    runs = tmp_path / "exp" / "BENCH--max_concurrency=1"
    failure = {
        "run_number": 2,
        "error_type": "TimeoutError",
        "error": "x",
        "serve_overrides": {},
        "bench_overrides": {},
    }
    (runs / "run=2.failure.json").write_text(json.dumps(failure, indent=2))
    found = eagle("import", str(tmp_path / "exp"), "--json")
    (one,) = store.imported(found.json["run_id"]).measurements
    assert next(item.y for item in one.series if item.metric == "output_throughput_tok_s") == pytest.approx(
        (3.341, 3.319), abs=1e-3
    )
    assert "run=2.failure.json" in str(store.imported(found.json["run_id"]).unknown)
    assert eagle("import", str(tmp_path / "exp"), "--json").json["new"] is False
    (runs / "run=1.json").write_text("{")
    broken = eagle("import", str(tmp_path / "exp"))
    assert broken.code == 5
    assert "exp/BENCH--max_concurrency=1/run=1.json: expected JSON" in broken.err.replace("\n", "")


def test_our_own_measurements_come_back_through_import(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    put_run(store, "run-a1", 0.7)
    eagle("runs", "export", "run-a1", str(tmp_path / "run.json"))
    eagle("runs", "export", "run-a1", str(tmp_path / "run.tar.gz"))
    eagle("diff", "run-a1", "run-a1")
    plain = tmp_path / "measurements.json"
    plain.write_bytes((store.run_dir("run-a1").path / "measurements.json").read_bytes())
    assert "already here: run-a1" in eagle("import", str(plain)).out
    for name in ("measurements.json", "run.json", "run.tar.gz"):
        store.remove("run-a1")
        assert "would import: run-a1" in eagle("import", str(tmp_path / name), "--dry-run").out
        assert "imported: run-a1" in eagle("import", str(tmp_path / name), "--tag", "back").out, name
        assert store.labels("run-a1").tags == ("back",)
    assert eagle("import", str(plain), "--label", "x").code == 2


def test_the_same_bytes_of_another_day_are_the_same_run(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(Path(SERVING).read_bytes())
    os.utime(path, (86_400, 86_400))
    assert eagle("import", str(path), "--json").json["run_id"].startswith("sglang-serving-19700102-")
    os.utime(path, (0, 0))
    assert "already here: sglang-serving-19700102-" in eagle("import", str(path)).out
    assert len(store.list()) == 1


def test_a_file_that_has_grown_names_the_run_of_its_beginning(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    """These tools append: the results of yesterday stand in today's file again, and are no new repeats."""
    lines = Path(SERVING).read_bytes().splitlines(keepends=True)
    file = tmp_path / "results.jsonl"
    ids = []
    for count in (1, 2):
        file.write_bytes(b"".join(lines[:count]))
        ids.append(eagle("import", str(file), "--json").json["run_id"])
    other = tmp_path / "other.jsonl"
    other.write_bytes(lines[1])
    assert "begins with" not in eagle("import", str(other)).err
    file.write_bytes(b"".join(lines))
    grown = eagle("import", str(file), "--json")
    told = grown.err
    for run_id in ids:
        assert f"warning: results.jsonl: it begins with the file of {run_id}, so their results are the same" in told
    assert len(store.list()) == 4
    shutil.rmtree(store.run_dir(ids[0]).path)  # also where the earlier state comes later
    file.write_bytes(lines[0])
    told = eagle("import", str(file)).err
    for run_id in (ids[1], grown.json["run_id"]):
        assert f"warning: results.jsonl: it is an earlier state of the file of {run_id}, which has its results" in told
    assert told.count("an earlier state") == 2


def test_a_file_that_contradicts_itself_is_kept_but_is_no_baseline(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    file = tmp_path / "serve.json"
    file.write_text(json.dumps({**json.loads(Path(VLLM).read_text()), "output_throughput": 238.0}))
    found = eagle("import", str(file), "--json")
    assert found.code == 0
    told = eagle("baseline", "set", "fast", found.json["run_id"])
    assert told.code == 5
    assert "`output_throughput` says 238, 128 output tokens / 53.692 s make 2.384" in " ".join(told.err.split())
    assert list(store.baselines()) == []
    assert eagle("baseline", "set", "fast", eagle("import", VLLM, "--json").json["run_id"]).code == 0


def test_a_date_to_come_and_a_packed_file_are_told(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    file = tmp_path / "serve.json"
    file.write_text(json.dumps({**json.loads(Path(VLLM).read_text()), "date": "20991231-000000"}))
    assert (
        "serve.json: it says that it was measured on 2099-12-31, which is still to come"
        in eagle("import", str(file), "--dry-run").err
    )
    assert "still to come" not in eagle("import", VLLM, "--dry-run").err
    packed = tmp_path / "results.jsonl.gz"
    packed.write_bytes(gzip.compress(Path(SERVING).read_bytes()))
    told = eagle("import", str(packed))
    assert (told.code, "hint: another tool's file is imported unpacked: gunzip it first" in told.err) == (5, True)
    log = tmp_path / "hello.log"
    log.write_text("hello\nworld\n")
    told = eagle("import", str(log))
    assert (told.code, "may be cut off" in told.err, "decode lines" in told.err) == (5, False, True)


def test_three_states_of_a_growing_file_are_one_run(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    """What two runs hold counts once: the same result three times is no three starts that agree."""
    line = json.loads(Path(SERVING).read_text().splitlines()[0])
    words = []
    for name, values in (("a", (120.4, 120.9, 120.6)), ("b", (126.1, 126.6, 126.4))):
        ids = []
        for count in (2, 1, 3):  # in whatever order they are imported and named
            file = tmp_path / f"{name}{count}.jsonl"
            told = [at_throughput(line, value) for value in values[:count]]
            file.write_text("".join(json.dumps(one) + "\n" for one in told))
            ids.append(eagle("import", str(file), "--json").json["run_id"])
        words.append(",".join(ids))
    found = eagle("diff", *words, "--metric", "output_throughput_tok_s", "--json").json["comparisons"][0]
    assert found["verdict"] == "single run"
    (row,) = found["cases"][0]["metrics"]
    assert (row["n_reference"], row["n_this"]) == (1, 1)
    two, one, three = words[0].split(",")
    assert {
        f"2 results of {two} stand in {three} as well: counted once",
        f"1 result of {one} stands in {three} as well: counted once",
    } <= set(found["notes"])
    judged = eagle("expect", words[0], "--that", "output_throughput_tok_s >= 120 tok/s")
    assert (judged.code, "3 repeats of 1 run" in " ".join(judged.out.split())) == (8, True)
    assert f"2 results of {two} stand in {three} as well" in " ".join(judged.err.split())
    against = eagle("diff", one, three, "--json").json["comparisons"][0]
    (tied,) = (note for note in against["notes"] if "on the other side, as well" in note)
    assert tied.startswith("1 result of ")


def test_a_file_with_a_secret_is_not_kept_itself(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    value = json.loads(Path(SERVING).read_text().splitlines()[0])
    value["server_info"]["api_key"] = "sk-123"
    path = tmp_path / "with.jsonl"
    path.write_text(json.dumps(value))
    found = eagle("import", str(path), "--json")
    assert "seems to hold a secret" in found.err
    kept = {item.name for item in store.run_dir(found.json["run_id"]).path.iterdir()}
    assert kept == {"measurements.json", "measurements.key"}


@pytest.mark.usefixtures("store")
def test_a_file_is_a_side_of_a_comparison(eagle: Eagle) -> None:
    same = eagle("diff", SERVING, SERVING)
    assert same.code in (0, 1), same.err
    assert eagle("diff", SERVING, VLLM).code == 4  # another tool's figures are no pair
