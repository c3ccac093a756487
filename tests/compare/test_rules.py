"""Each party's own figures, against the rules worded slowly, an index at a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.compare.rules import Logged, logged, simulated_length
from tests.support.made_results import judged_positions, made_hits, made_row

STEPS = 3


def figures(mask: list[int], table: dict[tuple[int, int], bool], pruned: dict[tuple[int, int], bool] | None):
    hits = made_hits(
        "r",
        0,
        mask,
        STEPS,
        lambda j, s: table[j, s],
        in_vocab=None if pruned is None else lambda j, s: pruned[j, s],
    )
    return {item.figure: item for item in logged("r", [made_row(0, mask)], [hits])}


def counts(item: Logged) -> list[tuple[int, int]]:
    return [(share.hits, share.n) for share in item.steps]


@given(data=st.data())
def test_every_figure_equals_its_slow_wording(data: st.DataObject) -> None:
    mask = data.draw(st.lists(st.integers(0, 1), min_size=4, max_size=16))
    tokens = len(mask)
    places = [(j, s) for j in range(tokens) for s in range(STEPS)]
    bits = data.draw(st.lists(st.booleans(), min_size=len(places), max_size=len(places)))
    more = data.draw(st.lists(st.booleans(), min_size=len(places), max_size=len(places)))
    table = dict(zip(places, bits, strict=True))
    pruned = {place: table[place] or other for place, other in zip(places, more, strict=True)}
    found = figures(mask, table, pruned)
    trained = [*mask[:-1], 0]
    for s in range(STEPS):
        # SpecForge: position j of step s aims at token j+1+s; its mask, unshifted, was shifted left s times
        js = [j for j in range(tokens) if j + 1 + s < tokens and trained[j + s]]
        assert counts(found["acc_s"])[s] == (sum(table[j, s] for j in js), len(js))
        # SafeAILab: the same with the last position, whose answer is beyond the row
        js = [j for j in range(tokens) if j + s < tokens and mask[j + s]]
        assert counts(found["acces[s]"])[s] == (sum(table[j, s] for j in js if j + 1 + s < tokens), len(js))
        # speculators: x_0 dropped first, so position j has the mask of token j+1
        js = [j for j in range(tokens - 1 - s) if mask[j + 1 + s]]
        alive = [j for j in range(tokens - 1 - s) if mask[j + 1] and all(pruned[j, i] for i in range(s))]
        right = sum(pruned[j, s] and bool(mask[j + 1 + s]) for j in alive)
        assert counts(found["full_acc_s"])[s] == (right, len(js))
        assert counts(found["cond_acc_s"])[s] == (right, len(alive))
    assert len(judged_positions(mask, STEPS)) >= sum(mask)


def test_a_result_without_hits_in_the_draft_vocabulary_says_so() -> None:
    mask = [0, 0, 1, 1, 1, 1]
    table = {(j, s): True for j in range(6) for s in range(STEPS)}
    found = figures(mask, table, None)
    assert found["full_acc_s"].steps == ()
    assert found["full_acc_s"].unknown_because is not None
    assert found["acc_s"].unknown_because is None


@pytest.mark.parametrize(
    ("accuracies", "length"),
    [
        # SpecForge's own evaluation of a small drafter, as it printed it
        ((0.6467136150234741, 0.6467136150234741, 0.6161971830985915, 0.6109154929577465), 1.4801130439466033),
        ((0.4213615023474178, 0.47183098591549294, 0.5123239436619719, 0.5475352112676056), 0.7777984254328173),
        ((1.0, 1.0), 2.0),
        ((), 0.0),
    ],
)
def test_the_simulated_accept_length_has_no_bonus(accuracies: tuple[float, ...], length: float) -> None:
    assert simulated_length(accuracies) == pytest.approx(length, abs=1e-12)


def test_an_unknown_accuracy_makes_an_unknown_length() -> None:
    assert simulated_length((0.5, None)) is None
