"""`sweep run --dry-run`: several hosts, and what a drafter test foretells to be hopeless; no host is asked."""

import dataclasses
import json
from pathlib import Path

import pytest

from orchestrator.store import Store
from remote_payload.schema import StandaloneJob, SweepJob, to_json
from tests.cli.conftest import Eagle
from tests.support.made_results import made_declared, made_readings, made_result
from tests.support.made_runs import made_run, put_standalone

SWEEP = """\
[sweep]
job = "bench"
[sweep.base]
model = "/t"
eagle_topk = 1
[sweep.grid]
num_steps = [1, 2, 3]
concurrency = [1, 4]
[[sweep.derive]]
set = "num_draft_tokens"
to = "num_steps + 1"
"""


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sweep file in a working directory of its own."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    path = folder / "sweep.toml"
    path.write_text(SWEEP, encoding="utf-8")
    hosts = {"gpu1": "me@gpu1.example", "same": "me@gpu1.example:22", "gpu2": "me@gpu2.example"}
    tables = [f'[hosts.{name}]\nssh = "{place}"\n' for name, place in hosts.items()]
    (folder / "eagle3.toml").write_text("".join(tables), encoding="utf-8")
    return path


@pytest.fixture
def draft(store: Store) -> str:
    """The drafter of the finished test `run-a1`: half of its first tokens are right, so hardly any deep chain is."""
    rows, hits, readings = made_readings({((0, 1, 2), 1): 0.5})
    record = made_run("run-a1")
    job = StandaloneJob(draft="/srv/drafter", target="/t", rows="/srv/rows", states=(0, 2, 4, 5))
    record = dataclasses.replace(record, spec=dataclasses.replace(record.spec, job_json=to_json(job)))
    put_standalone(store, record, made_result(readings, made_declared((0, 2, 4), (0, 1, 2))), rows, hits)
    return job.draft


def test_a_drafter_test_prunes_the_chains_that_surely_lose_at_one_user(file: Path, draft: str, eagle: Eagle) -> None:
    asked = ("sweep", "run", str(file), "--host", "gpu1", "--draft", draft, "--dry-run", "--json", "--prune", "run-a1")
    found = eagle(*asked, "--step-cost", "0.4+0.7k")
    assert found.code == 0, found.err
    skipped = {(one["settings"]["num_steps"], one["settings"]["concurrency"]) for one in found.json["skipped"]}
    assert skipped == {(2, 1), (3, 1)}
    assert all("r = 0.4 + 0.7 k as --step-cost 0.4+0.7k says" in one["reason"] for one in found.json["skipped"])
    left = [one["settings"] for one in found.json["points"] if not one["baseline"]]
    assert [(one["num_steps"], one["concurrency"]) for one in left] == [(1, 1), (1, 4), (2, 4), (3, 4)]
    unpriced = eagle(*asked)
    assert (unpriced.code, "nobody what a speculative step costs" in unpriced.err) == (5, True)
    priced = (*asked, "--step-cost", "0.4+0.7k", "--host")
    assert eagle(*priced, "same").json == found.json  # one machine by another name
    elsewhere = eagle(*priced, "gpu2")
    assert (elsewhere.code, "was measured on gpu1 (me@gpu1.example:22)" in elsewhere.err) == (5, True), elsewhere.err
    other = eagle(*priced, "gpu1", "--model", "/quite-another-70b")
    assert (other.code, "for another target than any point serves: /t" in other.err) == (2, True), other.err
    alone = eagle(*asked[:-2], "--step-cost", "1.9")
    assert (alone.code, "--step-cost belongs to --prune RUN" in alone.err) == (2, True)
    file.write_text(SWEEP.replace("[1, 4]", "[1]"), encoding="utf-8")
    hopeless = eagle(*asked, "--step-cost", "2+1k")
    told = (
        "nothing is left to measure but plain decoding: every other point is skipped, the first because it cannot win"
    )
    assert (hopeless.code, told in hopeless.err) == (2, True), hopeless.err


def test_what_every_point_lacks_may_stand_in_the_file(file: Path, eagle: Eagle) -> None:
    file.write_text(SWEEP.replace('model = "/t"\n', ""), encoding="utf-8")
    lacking = eagle("sweep", "run", str(file), "--draft", "/d", "--dry-run", "--host", "gpu1")
    assert (lacking.code, "`--model` must name the target" in lacking.err) == (2, True), lacking.err
    assert "or a line under [sweep.base] of" in lacking.err


def test_several_hosts_share_the_points_once(file: Path, eagle: Eagle) -> None:
    asked = ("sweep", "run", str(file), "--draft", "/d", "--dry-run", "--json", "--host")
    plans = [json.loads(line) for line in eagle(*asked, "b,a").out.splitlines()]
    assert len(plans) == 2
    spread = [one["settings"] for plan in plans for one in plan["points"] if not one["baseline"]]
    assert sorted((one["num_steps"], one["concurrency"]) for one in spread) == [
        (n, c) for n in (1, 2, 3) for c in (1, 4)
    ]
    assert [sum(one["baseline"] for one in plan["points"]) for plan in plans] == [2, 2]  # each has its own
    assert [json.loads(line) for line in eagle(*asked, "a,b").out.splitlines()] == plans  # whatever order
    for wrong in ("a,,b", "a,a", ","):
        refused = eagle(*asked, wrong)
        assert (refused.code, "expected names with commas between them" in refused.err) == (2, True)


def test_of_a_start_at_a_time_it_is_said_whose_clock_is_meant(file: Path, eagle: Eagle) -> None:
    asked = ("sweep", "run", str(file), "--draft", "/d", "--dry-run", "--json", "--host")
    for hosts in ("gpu1", "gpu1,gpu2"):
        assert "starts at 23:59 by the host's clock and zone" in eagle(*asked, hosts, "--at", "23:59 host").err
        own = eagle(*asked, hosts, "--at", "2099-12-24 23:59 UTC").err
        assert ("starts at 2099-12-" in own, "by the host's" in own) == (True, False), own


def test_a_sweep_over_several_hosts_that_nobody_here_knows(eagle: Eagle) -> None:
    assert eagle("sweep", "report", "night").code == 6
    one = eagle("sweep", "resume", "night", "--host", "nowhere.invalid,b.invalid")
    assert one.code == 10, one.err  # they are asked whether they know it
    flags = eagle("sweep", "resume", "night", "--host-is-dead", "a")
    assert (flags.code, "for a sweep over several hosts" in flags.err) == (2, True)


def test_a_sweep_prunes_its_own_host_alone_and_says_when_it_skips_nothing(
    file: Path, store: Store, eagle: Eagle
) -> None:
    """Nothing of `night` is at home: it rules nothing out, on its own host; and another it says nothing about."""
    job = SweepJob(base_json="{}", units=(), points=())
    run = made_run("night")
    store.begin(dataclasses.replace(run, spec=dataclasses.replace(run.spec, job_json=to_json(job), job_kind="sweep")))
    asked = ("sweep", "run", str(file), "--draft", "/d", "--dry-run", "--prune", "night", "--host")
    silent = eagle(*asked, "gpu1")
    assert silent.code == 0, silent.err
    assert "--prune skips nothing: sweep `night` rules no point out, it has no sound served benchmark" in silent.err
    assert eagle(*asked, "same").code == 0
    other = eagle(*asked, "gpu2")
    assert (other.code, "was measured on gpu1" in other.err) == (5, True)
    moved = file.parent / "eagle3.toml"
    moved.write_text('[hosts.gpu1]\nssh = "me@gpu3.example"\n', encoding="utf-8")  # the name leads elsewhere now
    other = eagle(*asked, "gpu1")
    assert (other.code, "say nothing about gpu1 (me@gpu3.example:22)" in other.err) == (5, True), other.err
