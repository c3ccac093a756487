"""Held-out rows that are not what they claim to be: told as the measurement's fault, and no gap is judged on them."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.diagnosis.checks.gap import check as gap
from orchestrator.diagnosis.checks.heldout_rows import check
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.measured import Measured
from tests.diagnosis.decision.scenes import offline_of
from tests.support.made_measured import Rows, made_measured, sound_lint, sound_slots, sound_teacher

ROWS, WORSE = Rows(count=24), Rows(count=24, seed="held-out", lift=-0.3)


def held_out(slots: dict[int, dict[str, Any]] | None = None, **changes: Any) -> Measured:
    """A drafter that reads its training rows far better than its held-out ones, whose facts are changed."""
    measured = made_measured(rows=ROWS, heldout=WORSE)
    assert measured.result.heldout is not None
    made = tuple(replace(slot, **(slots or {}).get(slot.slot, {})) for slot in sound_slots())
    facts = replace(measured.result.heldout, slots=made, **changes)
    return replace(measured, result=replace(measured.result, heldout=facts))


EXCHANGED = {1: {"rms": 2.7, "lens_normed_hits": 280}, 2: {"rms": 2.2, "lens_normed_hits": 200}}


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (held_out(EXCHANGED), "states or labels are exchanged"),
        (held_out({1: {"rms": 2.7}, 2: {"rms": 2.2}}), "slot 1 is as large as slot 2 of the training rows"),
        (held_out({0: {"embedding_share": 0.0, "embedding_share_beside": (1.0, 0.0)}}), "stand one token too late"),
        (held_out({3: {"equals_slot": 2}}), "hold the same numbers"),
        (held_out(teacher=sound_teacher(agrees=20, shifted_agrees=(500, 25))), "answer the token at offset +0"),
    ],
    ids=["slots and answers", "slots alone", "a token late", "captured twice", "final states a token off"],
)
def test_on_held_out_rows_that_lie_no_gap_is_called_one(measured: Measured, words: str) -> None:
    found = [item for item in check(measured) if words in item.summary]
    assert [(item.severity, item.cause) for item in found] == [("minor", "data")]
    (judged,) = gap(measured)
    assert judged.outcome == "cannot_tell"
    assert "the held-out rows are not to be trusted" in judged.summary
    told = decide(Known(offline=offline_of(measured)))
    assert (told.causes, told.certain, told.place["heldout"], told.place["rows"]) == ((), False, "unfit", "sound")
    assert "heldout" in [run.step for run in told.next_runs]


def test_held_out_rows_that_are_right_keep_their_gap() -> None:
    measured = held_out({1: {"rms": 2.25}, 2: {"rms": 2.65}})
    assert check(measured) == ()
    assert decide(Known(offline=offline_of(measured))).causes == ("generalization",)
    assert check(made_measured()) == ()


def test_what_the_training_rows_have_as_well_is_told_once() -> None:
    same = held_out({3: {"equals_slot": 2}})
    assert same.result.heldout is not None
    rows = replace(same.result.rows, slots=same.result.heldout.slots)
    measured = replace(same, result=replace(same.result, rows=rows))
    assert check(measured) == ()
    assert gap(measured)[0].outcome == "cannot_tell"


def test_training_rows_given_as_held_out_ones_are_the_users_slip_and_no_fault_of_the_data() -> None:
    measured = made_measured(rows=ROWS, heldout=ROWS)
    assert measured.result.heldout is not None
    lint = sound_lint(also_in_train=24, prompts_in_train=24)
    facts = replace(measured.result.heldout, lint=lint, used=24)
    told = decide(Known(offline=offline_of(replace(measured, result=replace(measured.result, heldout=facts)))))
    assert (told.causes, told.place["rows"], told.place["heldout"]) == ((), "sound", "open")
    (item,) = [one for one in told.findings if one.check == "K20"]
    assert (item.severity, item.remedy) == (
        "minor",
        ("give rows that it was not trained on: `--heldout` names the training rows",),
    )
