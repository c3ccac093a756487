"""The table: no cell without an answer, no row that cannot hold, and no fault from an axis that decides nothing."""

import itertools
import random

import pytest

from orchestrator.diagnosis.decision.axes import AXES, Signal
from orchestrator.diagnosis.decision.next_runs import _WHAT as RUNS
from orchestrator.diagnosis.decision.row import Row
from orchestrator.diagnosis.decision.table import TABLE, rows_at

DECIDED = {"as_trained", "as_predicted", "whole", "sound", "level", "as_asked", "pays"}
HEALTHY = {
    "files": "whole",
    "rows": "sound",
    "feeding": "as_trained",
    "computing": "as_trained",
    "heldout": "level",
    "served_train": "as_predicted",
    "served_heldout": "as_predicted",
    "fed": "as_trained",
    "rule": "agrees",
    "labels": "checked",
    "trainer": "agrees",
    "arguments": "as_asked",
    "pays": "pays",
}


def every_pair():
    """Every two axes at every two answers, all others healthy, and all others unknown."""
    for one, other in itertools.combinations(AXES, 2):
        for a, b in itertools.product(AXES[one], AXES[other]):
            yield {**HEALTHY, one: a, other: b}
            yield {**dict.fromkeys(AXES, "unknown"), one: a, other: b}


def any_places(count):
    draw = random.Random(11)
    for _ in range(count):
        yield {axis: draw.choice(list(answers)) for axis, answers in AXES.items()}


def test_every_cell_says_something_and_one_that_does_not_know_says_what_to_run():
    seen = set()
    for place in (*every_pair(), *any_places(8000)):
        rows = rows_at(place)
        assert rows, place
        seen |= {row.name for row in rows}
        kinds = {row.kind for row in rows}
        assert kinds & {"fault", "ask", "healthy"}, place
        if "healthy" in kinds:
            assert not any(row.kind == "fault" or row.essential or row.doubts for row in rows), [
                row.name for row in rows
            ]
    assert seen == {row.name for row in TABLE}, {row.name for row in TABLE} - seen


def test_only_one_place_is_healthy_and_an_unasked_server_is_no_hindrance():
    assert [row.name for row in rows_at(HEALTHY)] == ["healthy"]
    assert [row.name for row in rows_at({**HEALTHY, "fed": "unknown"})] == ["healthy"]
    spared = {
        ("heldout", "small_gap"),
        ("fed", "unknown"),
        ("fed", "changed"),  # in other numbers, and served as foretold
        ("fed", "source_right"),
        ("rule", "stale"),
        ("rule", "unknown"),
        ("labels", "unchecked"),  # of what is fed, offline and by the server, as it is read best
        ("labels", "doubtful"),
        ("labels", "unknown"),
        ("trainer", "unknown"),
        ("served_train", "unknown"),
        ("served_train", "untold"),
    }
    for axis, answers in AXES.items():
        for answer in answers:
            rows = rows_at({**HEALTHY, axis: answer})
            healthy = any(row.kind == "healthy" for row in rows)
            assert healthy == (answer == HEALTHY[axis] or (axis, answer) in spared), (axis, answer)


@pytest.mark.parametrize("row", [row for row in TABLE if row.kind == "fault"], ids=lambda row: row.name)
def test_a_fault_hangs_on_an_answer_that_names_it_and_says_what_it_tells(row):
    """Where every axis that it leads with decides nothing, no fault is named."""
    assert row.cause is not None
    assert row.tells
    lead = row.conditions[row.tells[0]]
    assert not lead & {"open", "untold", "unknown"}
    assert not lead & DECIDED
    for axis in AXES:
        for answer in {"open", "untold", "unknown"} & set(AXES[axis]):
            assert not any(one.kind == "fault" for one in rows_at({**HEALTHY, axis: answer})), axis


def test_several_faults_at_once_are_all_named():
    place = {
        **HEALTHY,
        "fed": "other",
        "heldout": "gap",
        "arguments": "changed",
        "pays": "loses",
        "served_train": "below",
    }
    causes = {row.cause for row in rows_at(place) if row.kind == "fault"}
    assert causes == {"wiring", "generalization", "parameters", "economics", "engine"}


def test_every_row_is_documented_once_and_every_step_can_be_run():
    assert len({row.name for row in TABLE}) == len(TABLE)
    for row in TABLE:
        assert len(row.why) > 20
        assert (row.cause is not None) == (row.kind == "fault")
        assert bool(row.asks) or row.kind != "ask"
        assert set(row.asks) <= set(RUNS)
    for answers in AXES.values():
        assert all(meaning for meaning in answers.values())


def test_where_proofs_contradict_nothing_is_certain_or_healthy():
    for row in TABLE:
        assert not row.bars_fix or row.doubts
        assert not (row.bars_fix and row.kind == "ask") or (row.essential and row.tells)


def test_a_condition_may_name_what_is_not_so():
    row = Row(name="x", kind="also", when="fed!=other|unlike", why="")
    assert row.conditions["fed"] == set(AXES["fed"]) - {"other", "unlike"}


@pytest.mark.parametrize("when", ["feeding=odd", "colour=red", "feeding", "feeding!=odd"])
def test_a_condition_that_does_not_exist_is_refused(when):
    row = Row(name="x", kind="also", when=when, why="")
    with pytest.raises(ValueError, match="no such condition"):
        _ = row.conditions


def test_an_answer_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="expected one of"):
        Signal(axis="fed", answer="mis_fed")


def test_wiring_that_broken_files_hide_is_said_to_be_not_judged():
    hidden = {**HEALTHY, "files": "broken", "feeding": "poor", "computing": "open", "trainer": "unknown"}
    for fed in ("open", "unknown"):
        (row,) = (row for row in rows_at({**hidden, "fed": fed}) if row.name == "poor beside broken files")
        assert "the wiring is not judged" in row.why
    assert "poor beside broken files" not in {row.name for row in rows_at({**hidden, "fed": "other"})}
