"""`gc --local`: what goes of this laptop's runs, what never does."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.housekeeping import groups_at_home
from orchestrator.records import BaselineEntry
from orchestrator.records.group import GroupShare, SweepGroup
from orchestrator.report.housekeeping_text import gc_text
from orchestrator.store import Store
from orchestrator.store.groups import group_ids, keep_group
from orchestrator.store.homecoming import note_no_result
from orchestrator.store.making_room import make_room
from remote_payload.schema import PointOutcome, SweepAttempt, to_json
from remote_payload.schema.housekeeping import GcRules
from tests.support.laptop import Laptop
from tests.support.made_runs import made_run, put_files

DAY_S = 86400.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home")


def put(store: Store, run_id: str, days: float, *, phase: Any = "succeeded", **job: Any) -> None:
    record = made_run(run_id, phase=phase, created_unix_s=time.time() - days * DAY_S)
    if job:
        job = {"kind": "sweep", "base_json": "{}", "units": [], "points": [], **job}
        record = replace(record, spec=replace(record.spec, job_kind="sweep", job_json=json.dumps(job)))
    store.begin(record)


def reasons(store: Store, *, apply: bool = False, **rules: Any) -> dict[str, tuple[bool, str]]:
    items, _ = make_room(store, GcRules(**rules), apply=apply)
    assert all(item.removed == (item.goes and apply) for item in items)
    return {item.name: (item.goes, item.reason) for item in items}


def test_what_goes_by_age_number_and_size(store: Store) -> None:
    for days in (1, 2, 40):
        put(store, f"r{days}", days)
    assert reasons(store) == dict.fromkeys(("r1", "r2", "r40"), (False, "no limit was given"))
    assert [name for name, (goes, _) in reasons(store, older_than_s=30 * DAY_S).items() if goes] == ["r40"]
    assert [name for name, (goes, _) in reasons(store, keep_newest=1).items() if goes] == ["r2", "r40"]
    _, totals = make_room(store, GcRules(), apply=False)
    assert totals.before_bytes > 0
    assert reasons(store, max_bytes=totals.before_bytes - 1)["r40"] == (True, "the oldest, while there is too much")
    assert reasons(store, apply=True, max_bytes=totals.before_bytes - 1)["r2"] == (False, "within the limits")
    assert [run.run_id for run in store.list()] == ["r1", "r2"]


def test_what_never_goes(store: Store) -> None:
    for name in ("going", "noted", "tagged", "base", "damaged"):
        put(store, name, 100, phase="running" if name == "going" else "succeeded")
    store.label("noted", note="the good one")
    store.label("tagged", tags=("+candidate",))
    store.set_baseline("main", BaselineEntry(run_id="base", set_at_unix_s=1.0))
    (store.run_dir("damaged").path / "run.json").write_text("{")
    assert reasons(store, older_than_s=0.0) == {
        "going": (False, "is not over, by what was seen last"),
        "noted": (False, "carries a note or a tag"),
        "tagged": (False, "carries a note or a tag"),
        "base": (False, "a baseline means it"),
        "damaged": (False, "cannot be read"),
    }


def test_a_sweep_goes_with_its_units_and_not_while_another_goes_on_with_it(store: Store) -> None:
    done = [{"point_id": "p", "block": 0, "run_id": "night.u0001.0"}]
    put(store, "night", 50, skipped=[])
    put(store, "again", 10, done=done)
    for number in range(3):
        put(store, f"night.u000{number}.0", 50)
        store.label(f"night.u000{number}.0", tags=("+night",), note="num_steps 3")
    assert reasons(store, older_than_s=30 * DAY_S)["night"] == (False, "another sweep goes on with it")
    store.remove("again")
    items, _ = make_room(store, GcRules(older_than_s=30 * DAY_S), apply=True)
    assert [(item.name, item.kind, item.runs, item.removed) for item in items] == [("night", "sweep", 4, True)]
    assert store.list() == ()


def put_group(store: Store, group_id: str, days: float, *shares: GroupShare) -> None:
    created_s = time.time() - days * DAY_S
    keep_group(store.home, SweepGroup(group_id=group_id, created_unix_s=created_s, shares=shares))


def share(share_id: str, *, launched: bool = True, dead: bool = False) -> GroupShare:
    return GroupShare(
        share_id=share_id, number=1, host="a", destination="a", host_class="A", job_json="{}", is_launched=launched,
        is_dead=dead,
    )  # fmt: skip


def measured(store: Store, sweep_id: str, run_id: str) -> None:
    """What the host told of a sweep last: one unit of it, measured."""
    attempt = SweepAttempt(
        unit_id="u0000", attempt=0, run_id=run_id, block=0, phase="succeeded", started_unix_s=1.0,
        points=(PointOutcome(point_id="p", end="measured"),),
    )  # fmt: skip
    (store.run_dir(sweep_id).path / "attempts.jsonl").write_text(to_json(attempt) + "\n")


def test_a_sweep_over_several_hosts_goes_whole_and_only_once_all_of_it_is_at_home(store: Store) -> None:
    put_group(store, "night", 50, share("night.h1"), share("night.h2"), share("night.h3", launched=False))
    put_group(store, "planned", 50, share("planned.h1", launched=False))
    old = GcRules(older_than_s=30 * DAY_S)
    away = (False, "a share of it is not over, or not at home")
    assert reasons(store, older_than_s=30 * DAY_S) == {"night": away, "planned": (True, "ended too long ago")}
    put(store, "night.h1", 50, skipped=[])
    put_files(store.run_dir("night.h1"), {"units.jsonl": b""})
    put(store, "night.h2", 40, done=[{"point_id": "p", "block": 0, "run_id": "night.h1.u0000.0"}])
    note_no_result(store.run_dir("night.h2"))
    put(store, "night.h1.u0000.0", 50)
    store.label("night.h1.u0000.0", tags=("+night.h1", "+night"), note="num_steps 3")
    measured(store, "night.h1", "night.h1.u0000.0")
    assert reasons(store, older_than_s=30 * DAY_S)["night"] == away  # what the second left was not fetched
    put_files(store.run_dir("night.h2"), {"units.jsonl": b""})
    assert reasons(store, older_than_s=30 * DAY_S)["night"] == away  # nor the unit
    put_files(store.run_dir("night.h1.u0000.0"), {"result.json": b"{}"})
    store.label("night.h2", tags=("+candidate",))
    assert reasons(store, older_than_s=30 * DAY_S)["night"] == (False, "carries a note or a tag")
    store.label("night.h2", tags=("-candidate",))
    items, _ = make_room(store, old, apply=True)
    told = [(item.name, item.kind, item.runs, item.removed) for item in items]
    assert told == [("night", "sweep", 2, True), ("planned", "sweep", 1, True)]
    assert (store.list(), group_ids(store.home)) == ((), ())


def test_a_dead_hosts_share_is_not_waited_for_and_a_broken_record_stays(store: Store) -> None:
    put_group(store, "night", 50, share("night.h1", dead=True))
    put(store, "night.h2", 50, phase="running", skipped=[])
    put_group(store, "going", 50, share("going.h1"))
    put(store, "going.h1", 50, phase="running", skipped=[])
    put_group(store, "broken", 50, share("broken.h1"))
    (store.home / "groups" / "broken.json").write_text("{")
    assert reasons(store, older_than_s=0.0) == {
        "night": (True, "ended too long ago"),
        "night.h2": (False, "is not over, by what was seen last"),
        "going": (False, "is not over, by what was seen last"),
        "broken": (False, "cannot be read"),
    }
    # What a host is told of them at its own `gc`.
    assert {one.group_id: one.is_over for one in groups_at_home(store)} == {
        "night": True,
        "going": False,
        "broken": False,
    }


def test_the_stages_of_a_diagnosis_go_together_and_by_no_tag_of_their_own_stay(store: Store) -> None:
    for name, days in (("slow.offline", 50), ("slow.serve", 31), ("slow", 60)):
        put(store, name, days)
        if name != "slow":
            store.label(name, tags=("+slow",))
    assert set(reasons(store)) == {"slow.offline", "slow.serve", "slow"}  # a run of that very name: whose are they?
    store.remove("slow")
    assert reasons(store, older_than_s=40 * DAY_S) == {"slow": (False, "within the limits")}
    store.label("slow.serve", note="the one")
    assert reasons(store, older_than_s=0.0) == {"slow": (False, "carries a note or a tag")}
    store.label("slow.serve", note="")
    items, totals = make_room(store, GcRules(older_than_s=0.0), apply=True)
    assert [(item.name, item.kind, item.runs, item.removed) for item in items] == [("slow", "run", 2, True)]
    assert "diagnosis of 2 runs  slow" in gc_text("here", items, totals, applied=True, width=200)
    assert store.list() == ()


def test_from_the_command_line(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path)
    put(Store(laptop.store), "old", 100)
    for wrong in (
        (),
        ("--local", "--host", "gpu1"),
        ("--local", "--older-than", "30"),
        ("--local", "--max-size", "9999999TiB"),
    ):
        assert laptop.run("gc", *wrong).code == 2
    dry = laptop.run("gc", "--local", "--older-than", "30d")
    assert (dry.code, "would go" in dry.out, "this laptop: " in dry.out) == (0, True, True), dry.err
    done = laptop.run("gc", "--local", "--older-than", "30d", "--apply")
    assert (done.code, Store(laptop.store).list()) == (0, ()), done.err
