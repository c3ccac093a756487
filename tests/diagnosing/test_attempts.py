"""Whether a stage's end stands, and what of a budget is left."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator import pipeline
from orchestrator.config import Config, HostConfig
from orchestrator.diagnosing import budget
from orchestrator.diagnosing.attempts import attempts, is_attempt, is_cut_short
from orchestrator.diagnosing.budget import Budget
from orchestrator.diagnosing.lease import Lease
from orchestrator.store import Store
from orchestrator.updates import Update
from remote_payload.schema import RunState
from remote_payload.schema.run import RunPhase
from remote_payload.schema.waiting import Waiting
from tests.support.made_runs import made_run


@pytest.mark.parametrize(
    ("phase", "changes", "is_cut"),
    [
        ("succeeded", {}, False),
        ("failed", {}, False),
        ("failed", {"started_unix_s": None}, True),  # the GPUs were not free
        ("cancelled", {}, True),
        ("cancelled", {"started_unix_s": None}, True),
        ("lost", {}, True),
        ("killed", {"signal": "SIGKILL"}, True),
        ("killed", {"signal": "SIGTERM"}, True),
        ("killed", {"signal": "SIGSEGV"}, False),
        ("out_of_memory", {"signal": "SIGKILL"}, False),
    ],
)
def test_an_end_that_says_nothing_about_the_pair(phase: RunPhase, changes: dict[str, Any], is_cut: bool) -> None:
    state = RunState(run_id="d.serve", sequence=3, phase=phase, **{"started_unix_s": 5.0, **changes})
    assert is_cut_short(dataclasses.replace(made_run("d.serve"), state=state), None) == is_cut


@pytest.mark.parametrize(
    ("had_s", "allows_s", "is_cut"),
    [(60.0, None, True), (60.0, 7200.0, True), (7200.0, 7200.0, False)],  # of a budget; the host's own, again
)
def test_a_deadline_that_passed(had_s: float, allows_s: float | None, is_cut: bool) -> None:
    run = made_run("d.serve")
    state = RunState(run_id="d.serve", sequence=3, phase="timed_out", started_unix_s=5.0)
    spec = dataclasses.replace(run.spec, deadline_s=had_s)
    assert is_cut_short(dataclasses.replace(run, spec=spec, state=state), allows_s) == is_cut


def test_the_tries_of_a_stage_in_their_order(tmp_path: Any) -> None:
    store = Store(tmp_path / "store")
    for name in ("d.serve", "d.serve.2", "d.serve.4", "d.serve.3", "d.serve.x"):
        store.begin(made_run(name))
    assert [run.run_id for run in attempts(store, "d.serve")] == ["d.serve", "d.serve.2", "d.serve.3", "d.serve.4"]
    assert attempts(store, "d.offline") == []
    assert [is_attempt(name, "d.serve") for name in ("d.serve", "d.serve.2", "d.serve.x", "d.served", "d")] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_waiting_for_gpus_costs_nothing_of_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [5.0]
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    assert Budget().left_s is None
    bounded = Budget(100.0)
    with bounded.unspent():
        now_s[0] += 1000.0
    now_s[0] += 1.0
    assert bounded.left_s == 99.0


def test_on_a_host_with_slurm_every_stage_asks_for_itself(tmp_path: Any) -> None:
    settings = Config(hosts={"c1": HostConfig(ssh="c1", scheduler="slurm")})
    told: list[Update] = []
    session = pipeline.session("c1", settings, told.append, accept_new=False)
    with Lease("d", Waiting(gpus=2), Budget(), session, Store(tmp_path / "store"), told.append):
        pass
    assert "every stage is a job of its own" in str(told)
    told.clear()
    with Lease("d", None, Budget(), session, Store(tmp_path / "store"), told.append):
        pass
    assert told == []
