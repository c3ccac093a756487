"""Units whose element is over before they began, from Slurm's last answer as it lies on the disk; no Slurm is asked."""

import dataclasses
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from remote_payload.liveness import current_state
from remote_payload.rundir import RunDir
from remote_payload.runstate import advance, read_state
from remote_payload.schema import RunSpec, RunState, SweepAttempt, to_json
from remote_payload.schema.slurm import SlurmJob
from remote_payload.slurm.elements import keep, unbegun
from remote_payload.sweep.ledger import Ledger, read_ledger, unit_folder
from tests.payload.sweep.test_sweep import sweep_of

NOW_S = time.time()


@pytest.fixture
def sweep(tmp_path: Path) -> RunDir:
    """A sweep of six units in an array of three elements: u0, u3; u1, u4; u2, u5."""
    run = RunDir(tmp_path / "runs" / "s1")
    run.path.mkdir(parents=True)
    job = sweep_of(*({"duration_s": 0.1 + at} for at in range(6)))
    spec = RunSpec(
        run_id="s1",
        created_unix_s=NOW_S,
        job_kind="sweep",
        job_json=to_json(job),
        payload_sha256="0" * 64,
        python="python3",
        environment={},
        launched_by="me",
    )
    run.spec.write_text(to_json(spec))
    slurm = SlurmJob(job_id="7", submitted_unix_s=NOW_S - 900, poll_s=3600.0, answer_s=5.0, elements=3)
    advance(run, RunState(run_id="s1", sequence=0, phase="queued", slurm=slurm))
    return run


def answer(run: RunDir, *views: tuple[str, float], problem: str | None = None) -> RunState:
    """Slurm's answer of a moment ago, elements in these states for so many seconds; returns the sweep's state."""
    (run.path.parent.parent / "slurm").mkdir(exist_ok=True)
    jobs: dict[str, Any] = {
        f"7_{at}": {"view": {"state": state}, "since_unix_s": NOW_S - age_s, "asked_unix_s": NOW_S}
        for at, (state, age_s) in enumerate(views)
    }
    values = {"polled_unix_s": NOW_S, "problem": problem, "jobs": {"7": {**jobs["7_0"], "view": None}, **jobs}}
    (run.path.parent.parent / "slurm" / "jobs.json").write_text(json.dumps(values))
    state = read_state(run)
    assert state is not None
    return state


def told(run: RunDir, *views: tuple[str, float]) -> tuple[SweepAttempt, ...]:
    """What is made of it."""
    return unbegun(run, answer(run, *views), read_ledger(run))


def test_what_slurm_ended_before_it_began_is_told_while_others_wait(sweep: RunDir) -> None:
    found = told(sweep, ("CANCELLED", 70), ("PENDING", 70), ("NODE_FAIL", 70))
    assert [(one.unit_id, one.phase, one.points[0].end) for one in found] == [
        ("u0", "cancelled", "cancelled"),
        ("u2", "lost", "failed"),
        ("u3", "cancelled", "cancelled"),
        ("u5", "lost", "failed"),
    ]
    assert [one.run_id for one in found] == ["s1.u0.0", "s1.u2.0", "s1.u3.0", "s1.u5.0"]
    assert found[1].failure is not None
    assert found[1].failure.message == "Slurm ended its element 7_2 before it began: NODE_FAIL"


def test_a_word_that_has_not_stood_long_enough_is_not_taken(sweep: RunDir) -> None:
    assert told(sweep, ("CANCELLED", 59), ("COMPLETED", 59), ("RUNNING", 900)) == ()
    assert [one.unit_id for one in told(sweep, ("TIMEOUT", 61), ("RUNNING", 900), ("RUNNING", 900))] == ["u0", "u3"]


def test_one_that_is_missing_among_others_was_cancelled_and_where_all_are_missing_nobody_knows(sweep: RunDir) -> None:
    found = told(sweep, ("GONE", 61), ("PENDING", 900), ("PENDING", 900))
    assert [(one.unit_id, one.phase, one.points[0].end) for one in found] == [
        ("u0", "cancelled", "cancelled"),
        ("u3", "cancelled", "cancelled"),
    ]
    assert "its element 7_0 was cancelled while it waited" in (found[0].failure.message if found[0].failure else "")
    assert {one.phase for one in told(sweep, ("GONE", 61), ("GONE", 61), ("GONE", 61))} == {"lost"}


def test_what_began_is_its_own_runs_matter(sweep: RunDir) -> None:
    found = told(sweep, ("CANCELLED", 70), ("PENDING", 70), ("PENDING", 70))
    Ledger(unit_folder(sweep, "u0")).write(found[0], durable=False)
    assert [one.unit_id for one in told(sweep, ("CANCELLED", 70), ("PENDING", 70), ("PENDING", 70))] == ["u3"]


def test_of_a_cancelled_sweep_what_was_over_before(sweep: RunDir) -> None:
    sweep.cancel.write_text("{}")
    os.utime(sweep.cancel, (NOW_S - 100, NOW_S - 100))
    found = told(sweep, ("CANCELLED", 200), ("CANCELLED", 90), ("CANCELLED", 90))
    assert [one.unit_id for one in found] == ["u0", "u3"]
    keep(sweep, found)
    assert [one.unit_id for one in read_ledger(sweep)] == ["u0", "u3"]


def test_a_slurm_that_does_not_answer_is_told_with_what_the_folder_says(sweep: RunDir) -> None:
    answer(sweep, ("PENDING", 70), problem="Slurm did not answer")
    waits = current_state(sweep)
    assert waits is not None
    assert (waits.phase, waits.note) == ("queued", "Slurm did not answer; this is what the run's own folder says")
    unit_folder(sweep, "u0")  # an element has begun, though nobody wrote into the sweep's own state
    began = current_state(sweep)
    assert began is not None
    assert (began.phase, began.note) == ("running", waits.note)


def test_a_sweep_of_which_nothing_more_comes_says_why_it_is_not_whole(sweep: RunDir) -> None:
    views = (("COMPLETED", 70.0), ("GONE", 70.0), ("COMPLETED", 70.0))
    for at in (0, 2, 3, 5):
        begun = told(sweep, *views)[0]
        Ledger(unit_folder(sweep, f"u{at}")).write(
            dataclasses.replace(begun, unit_id=f"u{at}", run_id=f"s1.u{at}.0", phase="succeeded"), durable=False
        )
    answer(sweep, *views)
    state = current_state(sweep)
    assert state is not None
    assert state.failure is not None
    assert (state.phase, state.failure.kind) == ("failed", "supervisor")  # not the host's fault
    assert state.note == "Slurm: 2 COMPLETED, 1 no longer known"
    assert state.failure.message.startswith(
        "2 of 6 units never began; u1: its element 7_1 was cancelled while it waited"
    )
    assert [one.unit_id for one in read_ledger(sweep) if one.phase == "cancelled"] == ["u1", "u4"]
