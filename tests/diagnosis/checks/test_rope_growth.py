"""A loss that grows with the position is weighed where rows are longest."""

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.compare.chains import Chains, Row
from orchestrator.compare.stats import CONFIDENCE
from orchestrator.diagnosis.checks.rope_growth import far_loss

ROWS, TOKENS = 8, 61


def chains(misses: range, *, salt: int = 0) -> Chains:
    """One step, 60 positions that all count; what is missed lies in `misses`, one position more in every third row."""
    every = np.ones(TOKENS, dtype=bool)
    row = Row(name=f"row {salt}", tokens=TOKENS, prompt_tokens=1, loss_mask=every, in_vocab=every, greedy=every)
    positions = np.arange(TOKENS - 1)
    hits = ~np.isin(positions, [*misses, *([50] if salt % 3 == 0 and misses else [])])
    return Chains(row=row, steps=1, positions=positions, hits=hits[:, None])


def many(misses: range) -> list[Chains]:
    return [chains(misses, salt=salt) for salt in range(ROWS)]


@pytest.mark.parametrize(
    ("misses", "lost"),
    [
        (range(0), 0.0),
        (range(20), 3 / (20 * ROWS)),  # near positions lose, the farthest third but for one place nothing
        (range(40, 50), 10 / 20 + 3 / (20 * ROWS)),
        (range(60), 1.0),
    ],
)
def test_the_farthest_third_alone_counts(misses: range, lost: float) -> None:
    begin, found = far_loss(many(range(0)), many(misses), CONFIDENCE)
    assert begin == 39
    assert found.value == pytest.approx(lost * 20 / 21 + (1 / 21 if 39 in misses else 0), abs=1e-9)
    assert found.rows == ROWS


def test_no_judged_position_is_no_loss() -> None:
    one = chains(range(0))
    unmarked = replace(one, row=replace(one.row, loss_mask=np.zeros(TOKENS, dtype=bool)))
    assert far_loss([unmarked], [unmarked], CONFIDENCE)[1].value is None
