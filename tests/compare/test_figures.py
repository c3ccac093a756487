from dataclasses import replace

import pytest

from orchestrator.compare.figures import coverage, first_step_difference, reading_figures, same_rows
from orchestrator.errors import InvalidRunError
from tests.support.made_results import leading, made_hits, made_row

MASK = [0] * 4 + [1] * 8
TWO_TURNS = [0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0]


def test_figures_of_two_rows_by_hand() -> None:
    rows = [made_row(0, MASK), made_row(1, TWO_TURNS)]
    hits = [
        made_hits("r", 1, TWO_TURNS, 2, leading({0: 2, 5: 1, 7: 2})),
        made_hits("r", 0, MASK, 2, leading({3: 2, 6: 1, 8: 0, 9: 2})),
    ]
    figures = reading_figures("r", rows, hits)
    assert [row.row for row in figures.counts] == ["data_0.ckpt", "data_1.ckpt"]  # row order, not file order
    assert (figures.first_step.hits, figures.first_step.n) == (3 + 3, 8 + 7)
    # row 0: at 3 (2 hits), 6 (1), 8 (0), 9 (2): 12 tokens end it; row 1: 0 (2 hits) ends its turn, then 5 (1), 7 (2)
    assert figures.walk.histogram == (1, 2, 4)
    assert figures.accept_length_walk.value == pytest.approx(1 + 10 / 7)
    assert figures.accept_length_walk.low is None  # two rows


def test_coverage_counts_response_tokens_that_follow_something() -> None:
    in_vocab = [1] * 12
    in_vocab[5] = in_vocab[2] = 0  # the second lies in the prompt
    sampled = [1] * 6 + [0] + [1] * 4 + [0]
    found = coverage([made_row(0, MASK, in_vocab=in_vocab), made_row(1, MASK, greedy=sampled), made_row(2, [1] * 5)])
    assert (found.response_tokens, found.out_of_vocabulary) == (8 + 8 + 4, 1)
    assert (found.greedy_rows, found.rows) == (2, 3)


def test_hits_that_do_not_fit_are_refused() -> None:
    rows = [made_row(0, MASK)]
    hits = made_hits("r", 0, MASK, 2, leading({}))
    with pytest.raises(InvalidRunError, match="found none"):
        reading_figures("other", rows, [hits])
    with pytest.raises(InvalidRunError, match="known row"):
        reading_figures("r", rows, [hits, replace(hits, row=7)])
    for twice in ((rows, [hits, hits]), ([*rows, *rows], [hits])):
        with pytest.raises(InvalidRunError, match="found one twice"):
            reading_figures("r", *twice)
    for steps in (0, -1, 17):
        with pytest.raises(InvalidRunError, match=f"expected 1..16 steps, found: {steps}"):
            reading_figures("r", rows, [replace(hits, steps=steps)])


def test_an_accept_length_lies_between_1_and_all_steps_and_the_bonus_token() -> None:
    rows = [made_row(row, MASK) for row in range(5)]
    for unlike, others, bound in ((0, 4, "high"), (4, 0, "low")):  # the interval over rows is wide
        lengths = [unlike, others, others, others, others]
        hits = [
            made_hits("r", row, MASK, 4, lambda j, s, lengths=lengths, row=row: s < lengths[row]) for row in range(5)
        ]
        figures = reading_figures("r", rows, hits)
        for estimate in (figures.accept_length_mean, figures.accept_length_walk):
            assert getattr(estimate, bound) == {"low": 1, "high": 5}[bound]
            assert 1 <= estimate.low < estimate.value < estimate.high <= 5  # type: ignore[operator]


def test_rows_are_the_same_only_with_the_same_positions() -> None:
    rows = [made_row(row, MASK) for row in range(6)]
    hits = [made_hits("a", row, MASK, 2, leading({3: 1})) for row in range(6)]
    a = reading_figures("a", rows, hits)
    assert same_rows(a, a)
    assert not same_rows(a, reading_figures("a", rows[:5], hits[:5]))
    other = [made_row(row, [0] * 5 + [1] * 7) for row in range(6)]
    shorter = reading_figures("a", other, [made_hits("a", row, [0] * 5 + [1] * 7, 2, leading({})) for row in range(6)])
    assert not same_rows(a, shorter)
    assert first_step_difference(a, a, 0.95).high == 0.0
