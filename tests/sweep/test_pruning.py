"""What is proposed to be left out cannot win, whatever the truth is."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.sweep.pruning import MARGIN, Chain, propose, truncated_length

PLAIN_TOK_S = 90.0


def job(steps: int | None, **changes: Any) -> dict[str, Any]:
    value = {"draft": "/d", "num_steps": steps, "eagle_topk": 1, "num_draft_tokens": None, "concurrency": [1]}
    return {**value, **changes}


def walk(hits: list[list[bool]], steps: int) -> tuple[float, tuple[int, ...]]:
    """Accept length and histogram of a server of so many steps: draft, accept the leading hits, add one, jump."""
    histogram = [0] * (steps + 1)
    at = 0
    while at < len(hits):
        accepted = next((depth for depth in range(steps) if not hits[at][depth]), steps)
        histogram[accepted] += 1
        at += accepted + 1
    verifies = sum(histogram)
    return 1 + sum(i * n for i, n in enumerate(histogram)) / verifies, tuple(histogram)


def text(seed: int, easy: float, hard: float, length: int = 4000) -> list[list[bool]]:
    """Hits by position and depth; hard and easy passages alternate, so that chances are not independent."""
    chance = random.Random(seed)
    hits, is_easy = [], True
    for _ in range(length):
        is_easy = is_easy if chance.random() < 0.9 else not is_easy
        hits.append([chance.random() < (easy if is_easy else hard) for _ in range(6)])
    return hits


def measured(hits: list[list[bool]], steps: int, base: float, slope: float, **changes: Any) -> Chain:
    length, histogram = walk(hits, steps)
    speed = PLAIN_TOK_S * length / (base + slope * steps)
    return Chain(
        settings=job(steps, **changes), is_baseline=False, speed_tok_s=speed, accept_length=length, histogram=histogram
    )


def plain(**changes: Any) -> Chain:
    return Chain(settings=job(None, draft=None, eagle_topk=None, **changes), is_baseline=True, speed_tok_s=PLAIN_TOK_S)


@given(
    seed=st.integers(0, 10**6),
    easy=st.floats(0.3, 0.98),
    hard=st.floats(0.05, 0.9),
    base=st.floats(1.0, 2.5),
    slope=st.floats(0.01, 0.5),
    second=st.sampled_from([None, 2, 4]),
)
@settings(max_examples=40, deadline=None)
def test_what_is_proposed_to_be_left_out_cannot_win(
    seed: int, easy: float, hard: float, base: float, slope: float, second: int | None
) -> None:
    hits = text(seed, easy, hard)
    chains = [plain(), measured(hits, 6, base, slope)]
    chains += [] if second is None else [measured(hits, second, base, slope)]
    best = max(one.speed_tok_s for one in chains) / PLAIN_TOK_S
    left = {str(steps): job(steps) for steps in range(1, 6) if steps != second}
    for one in propose(chains, left):
        truth = measured(hits, int(one.point_id), base, slope).speed_tok_s / PLAIN_TOK_S
        assert truth <= one.most * (1 + MARGIN)
        assert truth < best


def test_a_shallow_chain_beside_a_good_deep_one_is_hopeless_and_says_why() -> None:
    hits = text(1, 0.95, 0.9)
    found = propose([plain(), measured(hits, 6, 1.0, 0.05)], {"one": job(1), "five": job(5)})
    (one,) = found
    assert one.point_id == "one"
    assert one.most < one.best
    assert one.likely_length is not None
    assert 1.8 < one.likely_length <= 2
    assert "cannot win: at most 1." in one.reason
    assert "accept length at most 2.00 from the chain of 6 steps, likely accept length 1.9" in one.reason


def test_nothing_is_said_of_trees_of_other_loads_of_other_drafters_and_of_deeper_chains() -> None:
    hits = text(1, 0.95, 0.9)
    known = [plain(), measured(hits, 3, 1.0, 0.05)]
    left = {
        "tree": job(1, eagle_topk=4),
        "load": job(1, concurrency=[8]),
        "drafter": job(1, draft="/other"),
        "deeper": job(5),
        "chosen by SGLang": job(None),
    }
    assert propose(known, left) == ()
    assert propose(known[1:], {"one": job(1)}) == ()  # no plain decoding, no speed-up
    # A step cheaper than a plain one: the baseline is in doubt, and with it every bound.
    assert propose([plain(), measured(hits, 3, 0.5, 0.01)], {"one": job(1)}) == ()
    assert len(propose(known, {"one": job(1)})) == 1


def test_a_truncated_histogram() -> None:
    assert truncated_length([11, 10, 0, 8], 1) == 1 + 18 / 29
    assert truncated_length([11, 10, 0, 8], 3) == 1 + 34 / 29
    assert truncated_length([], 2) is None
