"""A killed test is taken up where it stood, and comes to the result it would have come to."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from remote_payload.failure import JobFailure
from remote_payload.schema import StandaloneJob, to_json
from remote_payload.standalone.resume import who_measured
from tests.standalone.running import DATA, run_job
from tests.standalone.test_job import BUNDLE
from tests.support.made_runs import made_run

KILLED = """
import json, os, signal, sys
from pathlib import Path
from remote_payload.schema import StandaloneJob
from remote_payload.standalone.job import run
from remote_payload.standalone.measure.partial import Partial
settings, out, method, after = json.loads(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
real, calls = getattr(Partial, method), 0
def until(self, *what):
    global calls
    real(self, *what)
    calls += 1
    if calls == after:
        os.kill(os.getpid(), signal.SIGKILL)
setattr(Partial, method, until)
run(StandaloneJob(threads=1, capture_rows=0, **settings), out, lambda event: None)
"""
SETTINGS = {**BUNDLE, "draft": DATA / "drafter_embed", "states": (0, 2, 4, 5), "search_rows": 2, "max_rows": 6}
BOTH = SETTINGS | {"heldout": BUNDLE["rows"]}


def killed(folder, method="keep_row", after=3, **settings):
    """Run a test in `folder`/out until it kills itself."""
    (folder / "out").mkdir(parents=True)
    texts = {key: value if isinstance(value, (int, tuple)) else str(value) for key, value in settings.items()}
    command = [sys.executable, "-c", KILLED, json.dumps(texts), str(folder / "out"), method, str(after)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=DATA.parents[2], env=environment)
    assert done.returncode == -signal.SIGKILL, done.stderr


def without_times(result):
    value = json.loads(json.dumps(result))
    for key in ("phases", "peak_memory_bytes", "resumed_from", "resumed_rows"):
        del value[key]
    for reading in [*value["readings"], *value["heldout_readings"]]:
        del reading["seconds"]
    return value


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The same test, never interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    run_job(folder / "out", **BOTH)
    return folder / "out"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A runs folder in which `first` was killed after three rows were measured."""
    folder = tmp_path_factory.mktemp("runs")
    killed(folder / "first", **BOTH)
    with (folder / "first" / "partial.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"row":1,"reading":"slots 0,1')  # a line that the killing tore
    return folder


def assert_as_whole(out, whole):
    for name in ("hits.jsonl.gz", "heldout.jsonl.gz"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    read = [json.loads((folder / "standalone.json").read_text(encoding="utf-8")) for folder in (out, whole)]
    assert without_times(read[0]) == without_times(read[1])


@pytest.mark.parametrize(("method", "after"), [("keep_hits", 70), ("keep_row", 8)], ids=["search", "heldout"])
def test_a_killed_test_is_resumed(tmp_path, whole, method, after):
    killed(tmp_path / "first", method, after, **BOTH)
    (tmp_path / "second").mkdir()
    run_job(tmp_path / "second" / "out", **BOTH, resume="first")
    assert_as_whole(tmp_path / "second" / "out", whole)


def test_what_was_searched_is_not_searched_again(runs, whole):
    (runs / "second").mkdir()
    result = run_job(runs / "second" / "out", **BOTH, resume="first").result
    assert_as_whole(runs / "second" / "out", whole)
    assert (result.resumed_from, result.resumed_rows) == ("first", 3)
    assert {reading.seconds for reading in result.readings if reading.stage != "full"} == {0.0}


def test_a_resumed_test_that_is_killed_again_keeps_everything(runs):
    killed(runs / "third", after=2, **BOTH, resume="first")
    lines = (runs / "third" / "partial.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["line"]["facts"]["row"] for line in lines if '"split"' in line] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["search", "full"])
def test_a_damaged_line_is_measured_again(runs, whole, kind):
    lines = (runs / "first" / "partial.jsonl").read_bytes().splitlines(keepends=True)
    at = next(
        index for index, line in enumerate(lines) if b'"hits":"' in line and (b'"split"' in line) == (kind == "full")
    )
    place = lines[at].index(b'"hits":"') + len(b'"hits":"')
    other = b"B" if lines[at][place : place + 1] == b"A" else b"A"
    lines[at] = lines[at][:place] + other + lines[at][place + 1 :]
    for name in (f"damaged_{kind}", f"after_{kind}"):
        (runs / name).mkdir()
    (runs / f"damaged_{kind}" / "partial.jsonl").write_bytes(b"".join(lines))
    run_job(runs / f"after_{kind}" / "out", **BOTH, resume=f"damaged_{kind}")
    assert_as_whole(runs / f"after_{kind}" / "out", whole)


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        ({"steps": 3, "max_rows": 5}, "steps, max_rows, row files"),
        ({"draft": DATA / "drafter_std"}, "draft, weights, config"),
        ({"sweep": "wiring"}, "sweep"),
    ],
    ids=["settings", "drafter", "sweep"],
)
def test_another_test_cannot_be_resumed(runs, other, differs):
    (runs / "other").mkdir(exist_ok=True)
    with pytest.raises(JobFailure, match=f"measured something else.*what differs: {differs}$") as caught:
        run_job(runs / "other" / "out", **(BOTH | other), resume="first")
    assert caught.value.failure.kind == "job"
    if "steps" in other:
        assert "steps: 4 then, 3 now" in caught.value.failure.details


def test_nothing_to_resume_from(tmp_path):
    (tmp_path / "second").mkdir()
    with pytest.raises(JobFailure, match="run `first` left nothing to resume from on this host") as caught:
        run_job(tmp_path / "second" / "out", **SETTINGS, resume="first")
    assert caught.value.failure.kind == "job"


def test_what_cannot_be_taken_over_is_measured_anew_where_that_is_asked_for(runs, tmp_path):
    """As a stage of a diagnosis asks: another version of the tool, or a run that measured nothing, stops nobody."""
    (runs / "anew").mkdir()
    small = SETTINGS | {"max_rows": 2, "sweep": "wiring"}
    out = run_job(runs / "anew" / "out", **small, resume="first", or_anew=True)
    assert (out.result.resumed_rows, out.result.rows.used) == (0, 2)
    assert any("measured anew" in event.message and "measured something else" in event.message for event in out.events)


@pytest.mark.parametrize(
    ("named", "found"),
    [("c", "a"), ("b", "a"), ("a", "a"), ("gone", "gone"), ("damaged", "damaged"), ("other", "other")],
)
def test_a_try_that_ended_before_it_measured_hands_on_what_it_was_to_take_over(tmp_path, named, found):
    before = {"a": None, "b": "a", "c": "b", "other": None}
    for run_id, resume in before.items():
        job = StandaloneJob(draft="/d", rows="/r", resume=resume, or_anew=resume is not None)
        spec = replace(made_run(run_id).spec, job_kind="standalone", job_json=to_json(job))
        (tmp_path / run_id).mkdir()
        (tmp_path / run_id / "spec.json").write_text(to_json(spec))
    (tmp_path / "a" / "partial.jsonl").touch()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "spec.json").write_text("{")
    assert who_measured(named, tmp_path) == found
