"""What is proposed to be left out cannot win, whatever the truth is."""

import dataclasses
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.compare.stats import Estimate
from orchestrator.sweep.pruning import MARGIN, Chain, is_as_asked, nothing_said, propose, truncated_length

PLAIN_TOK_S = 90.0


def job(steps: int | None, **changes: Any) -> dict[str, Any]:
    value = {"draft": "/d", "num_steps": steps, "eagle_topk": 1, "num_draft_tokens": None, "concurrency": [1]}
    return {**value, "temperature": 0.0, **changes}


def within(value: float, share: float = 0.01) -> Estimate:
    """A figure whose interval is so much on either side."""
    return Estimate(value=value, low=value * (1 - share), high=value * (1 + share), rows=3)


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
    return chain(steps, speed, length, histogram=histogram, **changes)


def chain(
    steps: int, speed: float, length: float, share: float = 0.01, histogram: tuple[int, ...] = (), **changes: Any
) -> Chain:
    return Chain(
        settings=job(steps, **changes),
        is_baseline=False,
        speed_tok_s=within(speed, share),
        accept_length=within(length),
        histogram=histogram,
    )


def plain(share: float = 0.01, **changes: Any) -> Chain:
    speed = within(PLAIN_TOK_S, share)
    return Chain(settings=job(None, draft=None, eagle_topk=None, **changes), is_baseline=True, speed_tok_s=speed)


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
    best = max(one.speed_tok_s.value or 0.0 for one in chains)
    left = {str(steps): job(steps) for steps in range(1, 6) if steps != second}
    for one in propose(chains, left):
        truth = measured(hits, int(one.point_id), base, slope).speed_tok_s.value
        assert truth is not None
        assert truth <= one.most_tok_s * (1 + MARGIN)
        assert truth < best


def test_a_shallow_chain_beside_a_good_deep_one_is_hopeless_and_says_why() -> None:
    hits = text(1, 0.95, 0.9)
    found = propose([plain(), measured(hits, 6, 1.0, 0.05)], {"one": job(1), "five": job(5)})
    (one,) = found
    assert one.point_id == "one"
    assert one.most_tok_s < one.best_tok_s
    assert one.likely_length is not None
    assert 1.8 < one.likely_length <= 2
    assert one.reason.startswith("cannot win: at most 181.8 tok/s (accept length at most 2.00 by the chain of 6 steps")
    assert ", likely 1.9" in one.reason
    assert "; at most 90.9 verify steps a second, by plain decoding), and the best" in one.reason


def test_only_what_the_intervals_rule_out_is_left_out() -> None:
    deep = chain(3, 300.0, 3.5)
    assert len(propose([plain(), deep], {"one": job(1)})) == 1
    assert propose([plain(), chain(3, 300.0, 3.5, share=0.4)], {"one": job(1)}) == ()  # 300 [180, 420] against 182
    assert propose([plain(share=0.6), deep], {"one": job(1)}) == ()  # 2 * 144 against 297
    bare = dataclasses.replace(plain(), speed_tok_s=Estimate(value=PLAIN_TOK_S, rows=1))
    assert propose([bare, deep], {"one": job(1)}) == ()
    assert "no interval: measure three blocks" in nothing_said([bare, deep])
    slow = plain(share=0.99)  # and no deeper chain may lose to a plain decoding that nobody knows
    assert propose([slow, chain(3, 60.0, 2.0, share=0.9)], {"one": job(1)}) == ()


def test_the_cost_of_a_step_is_no_line() -> None:
    """AL / r of 3.0 / 1.8 at 3 steps and 3.1 / 1.9 at 5: a first step that costs 1.1 would be the best, at 1.73x."""
    both = [plain(), chain(3, PLAIN_TOK_S * 3.0 / 1.8, 3.0), chain(5, PLAIN_TOK_S * 3.1 / 1.9, 3.1)]
    assert propose(both, {"one": job(1), "two": job(2), "four": job(4)}) == ()
    best = chain(1, PLAIN_TOK_S * 1.9 / 1.0, 1.9)
    dear = chain(2, PLAIN_TOK_S * 2.0 / 1.6, 2.0)  # a third step is no cheaper, and five accept but 2.2
    (one,) = propose([plain(), best, dear, chain(5, 100.0, 2.2)], {"three": job(3)})
    assert "by the chain of 2 steps), and the best at this load has at least 169.3" in one.reason


def test_only_greedy_chains_are_judged() -> None:
    warm = {"temperature": 1.0}
    assert propose([plain(**warm), chain(3, 300.0, 3.5, **warm)], {"one": job(1, **warm)}) == ()


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


def test_two_depths_bracket_a_chain_by_the_ends_of_their_intervals() -> None:
    """Plain 90 [89.1, 90.9]; one step 160 [158.4, 161.6] at 1.9 [1.881, 1.919]: at most 161.6 / 1.881 verifies."""
    one, best = chain(1, 160.0, 1.9), chain(1, 200.0, 1.9, eagle_topk=4)  # a tree may be the best: at least 198
    (found,) = propose([plain(), one, chain(5, 100.0, 2.0), best], {"three": job(3)})
    assert round(found.most_tok_s, 1) == round(2.02 * 161.6 / 1.881, 1) == 173.5
    assert found.best_tok_s == 198.0
    # By 3 accepted tokens instead of 2.02 it may reach 257.7, and nothing is said.
    assert propose([plain(), one, chain(5, 100.0, 3.0), best], {"three": job(3)}) == ()
    # 5 % under the best is not enough: 2.24 * 1.01 * 85.91 = 194.4.
    assert propose([plain(), one, chain(5, 100.0, 2.24), best], {"three": job(3)}) == ()


def test_at_a_rate_of_requests_that_all_can_serve_nothing_is_ruled_out() -> None:
    """Everybody's tokens a second are those that were asked for."""
    rate = {"concurrency": [], "request_rate": [0.5]}
    shallow, deep = chain(1, PLAIN_TOK_S, 1.8, **rate), chain(5, PLAIN_TOK_S, 3.2, **rate)
    assert propose([plain(**rate), shallow, deep], {str(steps): job(steps, **rate) for steps in (2, 3, 4)}) == ()


def test_only_what_is_alike_is_a_rival_or_a_bound() -> None:
    known = [plain(), chain(6, 300.0, 3.5)]
    assert len(propose(known, {"one": job(1)})) == 1
    for changes in ({"seed": 2}, {"prompts": "/other"}, {"server_args": ["--tp", "2"]}, {"max_new_tokens": 8}):
        assert propose(known, {"one": job(1, **changes)}) == ()
    slow = [plain(), chain(6, 100.0, 3.5), chain(6, 300.0, 3.5, server_args=["--tp", "2"])]
    assert propose(slow, {"one": job(1)}) == ()  # two graphics cards are another race
    quantized = chain(6, 100.0, 3.5, draft_quantization="fp8")
    assert propose([plain(), quantized, chain(1, 300.0, 1.9, eagle_topk=8)], {"one": job(1)}) == ()


def test_a_server_that_drafted_otherwise_than_it_was_asked_to_bounds_nothing() -> None:
    asked = job(3)
    assert is_as_asked(asked, {})
    assert is_as_asked(asked, {"speculative_num_steps": "3", "speculative_eagle_topk": "1"})
    assert not is_as_asked(asked, {"speculative_num_steps": "1"})
    assert not is_as_asked(asked, {"speculative_num_steps": "2 / 3"})  # from block to block
    assert not is_as_asked(asked, {"speculative_eagle_topk": "4"})
    assert not is_as_asked(asked, {"speculative_num_steps": "3", "speculative_adaptive": "true"})
    assert is_as_asked(job(None), {"speculative_num_steps": "3"})


def test_a_truncated_histogram() -> None:
    assert truncated_length([11, 10, 0, 8], 1) == 1 + 18 / 29
    assert truncated_length([11, 10, 0, 8], 3) == 1 + 34 / 29
    assert truncated_length([], 2) is None
