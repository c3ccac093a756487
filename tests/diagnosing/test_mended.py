"""Which reading of the replayed rows foretells what a fix is worth, and what is said where none does."""

import dataclasses

import pytest

from orchestrator.diagnosing.mended import NOT_ADDED, mended, unforetold
from orchestrator.diagnosis.decision.inputs import SPLITS
from orchestrator.diagnosis.decision.served_lengths import wiring_cost
from orchestrator.report.content import StandaloneReport, report_standalone
from remote_payload.schema.standalone import StandaloneResult
from tests.diagnosis.decision import scenes
from tests.support.made_measured import BEST, WORSE, Made, made_measured

NEAR = Made((0.80, 0.78, 0.77, 0.77), (0, 1, 3))
"""Of a few rows the states of a neighbouring layer may read better than those that it was trained on."""


def replayed(*readings: Made, **changes: object) -> StandaloneReport:
    measured = made_measured(readings, **changes)
    result: StandaloneResult = measured.result
    return report_standalone(result, (measured.train.rows, measured.train.hits))


def test_the_states_that_it_was_trained_on_stand_for_the_fix_and_not_the_best_of_a_few_rows() -> None:
    report = replayed(NEAR, BEST, WORSE)
    assert report.wiring.best.facts.states == (0, 2, 5)
    found = mended(report, (0, 2, 4))
    assert found is not None
    assert found.states == (0, 2, 4)
    alone = mended(report, None)
    assert (alone, unforetold(report, None)) == (report.wiring.best.facts, None)


def test_another_reading_foretells_nothing_of_states_that_were_not_measured() -> None:
    report = replayed(NEAR, WORSE)
    assert mended(report, (0, 2, 4)) is None
    assert unforetold(report, (0, 2, 4)) == "the states of the replayed rows were not measured on them"
    assert unforetold(report, (0, 2, 9)) == "the states of the replayed rows lack [layer 9]"
    why = f"{NOT_ADDED} to the rows: `scale_emb` of its config.json is 12"
    assert unforetold(replayed(NEAR, WORSE, warnings=("odd", why)), (0, 2, 4)) == why


@pytest.mark.parametrize("computed", [(), (0,)])
def test_what_a_fix_would_accept_is_told_split_by_split_with_its_definition(computed: tuple[int, ...]) -> None:
    """The mis-wired pair as a real server served it; on the same text the mended one has that server's own lengths."""
    known = scenes.story()
    foretold = tuple(dataclasses.replace(item, computed=computed) for item in known.predicted)
    told = {item.name: item for item in wiring_cost(dataclasses.replace(known, predicted=foretold))}
    how = ", with the embedding output computed from the target's own table" if computed else ""
    for split in SPLITS:
        best = known.foretold(split, "best")
        assert best is not None
        steps, tokens = (sum(item.verifies for item in best.requests), sum(item.accepted for item in best.requests))
        length = told[f"accept length foretold of the best reading ({split}, on the served text{how})"]
        assert length.value == pytest.approx(1 + tokens / steps)
        assert length.n == scenes.EACH
        assert f"accept length, served minus foretold of the best reading ({split}, by prompt{how})" in told
    (unknown,) = wiring_cost(dataclasses.replace(known, predicted=(), unforetold="no table"))
    assert unknown.value == "not known: no table"
