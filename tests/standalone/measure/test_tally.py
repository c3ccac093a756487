"""Paired gains, and what an unfinished test keeps."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remote_payload.standalone.graph import Reading
from remote_payload.standalone.measure.acceptance import packed, unpacked
from remote_payload.standalone.measure.partial import Partial, take_over
from remote_payload.standalone.measure.profile import places
from remote_payload.standalone.measure.tally import RUN, gain
from remote_payload.standalone.measure.wirings import every, replaced, starts

READING = Reading(slots=(0, 1, 2), token_offset=1)


def slow_gain(ours, theirs):
    """The mean difference, and its error as the spread of what runs of positions, or rows, sum up to."""
    differences = [[a - b for a, b in zip(x.tolist(), y.tolist(), strict=True)] for x, y in zip(ours, theirs)]  # noqa: B905
    everything = [value for row in differences for value in row]
    mean = sum(everything) / len(everything)
    runs = [row[at : at + RUN] for row in differences for at in range(0, len(row), RUN)]
    errors = []
    for clusters in (runs, differences) if len(differences) >= 6 else (runs,):
        squares = sum((sum(cluster) - len(cluster) * mean) ** 2 for cluster in clusters)
        errors.append((squares * len(clusters) / (len(clusters) - 1)) ** 0.5 / len(everything))
    return mean, max(errors)


@pytest.mark.parametrize("rows", [2, 7])
def test_a_gain_is_what_the_slow_sum_says(rows):
    generator = torch.Generator().manual_seed(rows)
    ours, theirs = (
        [torch.randint(0, 5, (20 + 9 * row,), generator=generator) for row in range(rows)] for _ in range(2)
    )
    found = gain(ours, theirs)
    assert (found.mean, found.error) == pytest.approx(slow_gain(ours, theirs))
    assert gain(ours, ours) == gain([], []) != found
    assert (gain(ours, ours).mean, gain(ours, ours).error) == (0.0, 0.0)


def test_chance_is_rarely_taken_for_a_gain():
    """Of 400 equally good rivals, at most a few are ahead by 3.5 standard errors."""
    generator = torch.Generator().manual_seed(0)
    draw = lambda: [torch.randint(0, 5, (72,), generator=generator) for _ in range(10)]  # noqa: E731
    base = draw()
    found = [gain(draw(), base) for _ in range(400)]
    assert sum(one.mean > 3.5 * one.error for one in found) <= 2


@given(st.integers(1, 16), st.lists(st.integers(0, 2**16 - 1), max_size=20))
@settings(max_examples=25, derandomize=True, deadline=None)
def test_hits_are_packed_and_unpacked(steps, codes):
    hits = torch.tensor([[code >> step & 1 for step in range(steps)] for code in codes], dtype=torch.bool)
    hits = hits.view(len(codes), steps)
    assert torch.equal(unpacked(packed(hits), steps), hits)


def test_deep_hits_answer_for_shallow_ones_but_not_the_other_way(tmp_path):
    hits = torch.tensor([[True, False], [False, True]])
    with Partial(tmp_path / "partial.jsonl", {"steps": 2}) as partial:
        partial.keep_hits(0, READING.name, hits[:, :1])
        assert partial.hits(0, READING, 2) is None
        partial.keep_hits(0, READING.name, hits)
        assert torch.equal(partial.hits(0, READING, 2), hits)
        assert torch.equal(partial.hits(0, READING, 1), hits[:, :1])
        assert partial.hits(1, READING, 1) is None
    lines = take_over(tmp_path / "partial.jsonl", "first", {"steps": 2})
    assert [json.loads(json.dumps(line))["steps"] for line in lines] == [1, 2]


def test_zones_of_a_row():
    mask = torch.tensor([0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1])
    assert places(mask) == (
        ["prompt"] * 2 + ["before_response"] * 4 + ["first_token", "inside", "last_token"]
        + ["after_response"] * 2 + ["before_response"] * 4 + ["first_token"]
    )  # fmt: skip


def test_choices_of_many_states():
    begun = starts(61, 3, tuple(range(61)), (2, 30, 57))
    assert begun[0] == (2, 30, 57)
    assert {(1, 29, 56), (3, 31, 58), (2, 30, 57), (0, 2, 30), (1, 29, 56), (0, 1, 2), (58, 59, 60)} <= set(begun)
    assert len(begun) == len(set(begun)) < 150
    assert (5, 30, 57) in replaced((2, 30, 57), 0, 61)
    assert len(replaced((2, 30, 57), 0, 61)) == 59
    assert len(every(4, 3)) == 24
