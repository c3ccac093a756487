"""Served states found among known ones, and rows that a capture wrote read again."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from remote_payload.standalone.capture.identify import Identifier
from remote_payload.standalone.capture.served_rows import RowWriter, as_tensor
from remote_payload.standalone.rows.files import find_rows
from remote_payload.standalone.rows.row import Row, RowReader

WIDTH, LENGTH, VOCABULARY = 16, 60, 50


def made(seed: int, dtype: torch.dtype = torch.float32) -> Row:
    draw = torch.Generator().manual_seed(seed)
    states = torch.randn(LENGTH, 4, WIDTH, generator=draw).to(dtype)
    tokens = torch.randint(0, VOCABULARY, (LENGTH,), generator=draw)
    mask = torch.arange(LENGTH) > 20
    return Row(
        name=f"row {seed}", tokens=tokens, loss_mask=mask, states=states, final=None, prompt_tokens=21, source="x"
    )


def test_the_same_states_are_exact_and_others_far() -> None:
    finder = Identifier((0, 2, 4, 5), None)
    for seed in range(3):
        row = made(seed)
        finder.add(row.states[:, (1, 2, 3)], row)
    for place, slot in enumerate((1, 2, 3)):
        served = finder.found()[place]
        best, second = served.matches[:2]
        assert (best.slot, best.state, best.exact, best.tokens) == (slot, (0, 2, 4, 5)[slot], 180, 180)
        assert (best.error, best.token_offset) == (0.0, 0)
        assert second.error > 0.5


def test_rounding_is_told_from_another_state() -> None:
    row = made(1, torch.bfloat16)
    finder = Identifier(None, None)
    finder.add(row.states[:40].float() * 1.001, row)
    best = finder.found()[0].matches[0]
    assert (best.slot, best.tokens) == (0, 40)
    assert best.error == pytest.approx(0.001, rel=0.01)
    assert finder.rows == 1
    assert best.r2 is None  # one row: nothing to hold a fit against


@pytest.mark.parametrize("offset", [-1, 1])
def test_the_state_of_a_neighbour_is_named_as_such(offset: int) -> None:
    row = made(2)
    finder = Identifier(None, None)
    finder.add(torch.roll(row.states, -offset, dims=0), row)
    best = finder.found()[0].matches[0]
    assert (best.slot, best.token_offset, best.exact, best.tokens) == (0, offset, LENGTH - 1, LENGTH - 1)


def test_a_rotated_state_is_far_and_a_linear_function() -> None:
    basis = torch.linalg.qr(torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(9)))[0]
    finder = Identifier(None, None)
    for seed in range(4):
        row = made(seed)
        finder.add((row.states[:, 1] @ basis)[:, None], row)
    told = {match.slot: match for match in finder.found()[0].matches if match.token_offset == 0}
    assert told[1].error > 0.5
    assert told[1].r2 is not None
    assert told[1].r2 > 0.99
    assert told[0].r2 is not None
    assert told[0].r2 < 0.3


def test_what_was_made_of_a_state_is_taken_back() -> None:
    """By a factor, and through norms: with a weight, the other way round, and with another weight."""
    draw = torch.Generator().manual_seed(4)
    weight, lengths = torch.rand(WIDTH, generator=draw) + 0.5, torch.rand(LENGTH, 1, generator=draw) + 0.2

    def unit(states: torch.Tensor) -> torch.Tensor:
        return states / states.square().mean(dim=-1, keepdim=True).sqrt()

    made_of = {
        "scaled_error": lambda states: 0.9 * states,
        "normed_error": lambda states: weight * unit(states),
        "unnormed_error": lambda states: lengths * unit(states / weight),
        "channels_error": lambda states: weight * states,
        "turned_error": lambda states: lengths * states,
    }
    for figure, change in made_of.items():
        finder = Identifier(None, None)
        for seed in range(2):
            row = made(seed)
            if figure == "unnormed_error":  # the rows hold the norm's output
                row = replace(row, states=weight * unit(row.states))
            finder.add(change(row.states[:, 2])[:, None], row)
        told = {match.slot: match.change for match in finder.found()[0].matches if not match.token_offset}
        same, other = told[2], told[1]
        assert same is not None
        assert other is not None
        assert getattr(same, figure) < 1e-5, figure
        assert getattr(other, figure) > 0.5, figure
        if figure == "scaled_error":
            assert same.factor == pytest.approx(0.9, rel=1e-6)
    assert next(match.change for match in finder.found()[0].matches if match.token_offset) is None


def test_the_embedding_is_known_without_a_captured_one() -> None:
    table = torch.randn(VOCABULARY, WIDTH, generator=torch.Generator().manual_seed(3))
    row = made(5)
    finder = Identifier(None, table)
    finder.add(table[row.tokens][:, None], row)
    best = finder.found()[0].matches[0]
    assert (best.against, best.state, best.exact) == ("embedding", 0, LENGTH)


def test_states_keep_their_format_where_it_loses_nothing() -> None:
    fine = [[0.1, 0.2, 0.3, 0.4]]
    short = torch.tensor(fine).to(torch.bfloat16).float().tolist()
    assert as_tensor(short, 2).dtype == torch.bfloat16
    assert as_tensor(fine, 2).dtype == torch.float32
    assert as_tensor(fine, 2).shape == (1, 2, 2)


@pytest.mark.parametrize("states", [[[1.0, 2.0, 3.0]], [[float("nan"), 1.0]], [[]]])
def test_what_is_no_state_is_refused(states: list[list[float]]) -> None:
    with pytest.raises(ValueError, match=r"state|NaN"):
        as_tensor(states, 2)


def test_written_rows_are_read_as_rows_with_their_teacher(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path / "heldout")
    rows = [made(seed) for seed in range(2)]
    for row in rows:
        answers = [*row.tokens[1:].tolist(), -1]
        writer.write(row.states, row.tokens.tolist(), answers, row.prompt_tokens, "prompt greedy")
    folder = find_rows(tmp_path / "heldout", None, None)
    reader = RowReader(folder=folder, target_hidden_size=WIDTH, vocab_size=VOCABULARY, steps=3)
    for row, read in zip(rows, reader.rows(), strict=True):
        assert isinstance(read, Row)
        assert torch.equal(read.states, row.states)
        assert torch.equal(read.tokens, row.tokens)
        assert read.final is None
        assert read.answers is not None
        assert torch.equal(read.answers[:-1], row.tokens[1:])
        assert (read.prompt_tokens, read.source) == (21, "prompt greedy")
        assert read.dialect is not None
        assert read.dialect.name == "served"
    assert (writer.rows, writer.tokens) == (2, 2 * LENGTH)
