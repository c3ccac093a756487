"""`gc --local`: what goes of this laptop's runs, what never does."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.records import BaselineEntry
from orchestrator.store import Store
from orchestrator.store.making_room import make_room
from remote_payload.schema.housekeeping import GcRules
from tests.support.laptop import Laptop
from tests.support.made_runs import made_run

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
