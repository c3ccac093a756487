import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.compare.chains import Chains, unpack_hits, unpack_row
from orchestrator.compare.walk import serving_walks, total
from orchestrator.errors import InvalidRunError
from tests.support.made_results import leading, made_hits, made_row


def chains(mask: list[int], lengths: dict[int, int], steps: int = 3, greedy: list[int] | None = None) -> Chains:
    row = unpack_row(made_row(0, mask, greedy=greedy))
    return unpack_hits(made_hits("r", 0, mask, steps, leading(lengths)), row)


def test_a_request_walked_by_hand() -> None:
    # prompt of 3; drafts at 2 (2 accepted), 5 (none), 6 (3 accepted), 10 (1 accepted), 12: reaches beyond token 14
    mask = [0] * 3 + [1] * 12
    (walk,) = serving_walks(chains(mask, {2: 2, 5: 0, 6: 3, 10: 1, 12: 3, 3: 3, 4: 3}))
    assert walk.histogram == (1, 1, 1, 1)
    assert (walk.verifies, walk.accepted) == (4, 6)
    assert walk.tokens == 1 + 4 + 6


def test_the_last_draft_of_a_request_is_judged_whole_and_its_surplus_not_given_out() -> None:
    mask = [0] * 3 + [1] * 12
    lengths = {2: 2, 5: 2, 8: 2}
    (walk,) = serving_walks(chains(mask, lengths), max_new_tokens=5)
    # 1 from the prefill, 3 by the first draft, 3 by the second: 7 came out, 5 were asked for
    assert walk.histogram == (0, 0, 2, 0)
    assert walk.tokens == 5


def test_a_request_that_is_full_after_the_prefill_drafts_nothing() -> None:
    (walk,) = serving_walks(chains([0, 1, 1, 1, 1, 1], {}), max_new_tokens=1)
    assert walk.verifies == 0
    assert walk.tokens == 1


def test_a_shallower_server_accepts_at_most_its_depth() -> None:
    mask = [0] * 3 + [1] * 12
    (walk,) = serving_walks(chains(mask, dict.fromkeys(range(15), 3)), depth=1)
    assert walk.histogram == (0, 6)  # at 2, 4, 6, 8, 10, 12
    with pytest.raises(ValueError, match=r"1\.\.3"):
        serving_walks(chains(mask, {}), depth=4)


def test_every_turn_is_a_walk_of_its_own_and_stays_in_it() -> None:
    mask = [0, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0]
    first, second = serving_walks(chains(mask, {1: 1, 3: 2, 8: 0, 9: 3}))
    assert first.histogram == (0, 1, 1, 0)  # at 1 and 3; at 6 the draft would leave the turn
    assert second.histogram == (1, 0, 0, 1)  # at 8 and 9
    both = total((first, second), 3)
    assert both.histogram == (1, 1, 1, 1)
    assert both.tokens == first.tokens + second.tokens


def test_a_walk_is_exact_only_where_the_row_is_the_targets_own_choice() -> None:
    mask = [0] * 3 + [1] * 12
    greedy = [1] * 14 + [0]
    assert serving_walks(chains(mask, {2: 2}, greedy=greedy))[0].greedy
    sampled = [1] * 6 + [0] + [1] * 7 + [0]
    assert not serving_walks(chains(mask, {2: 2}, greedy=sampled))[0].greedy
    prompt_differs = [0, 0] + [1] * 12 + [0]
    assert serving_walks(chains(mask, {2: 2}, greedy=prompt_differs))[0].greedy


def test_missing_positions_are_an_error_not_a_miss() -> None:
    row = unpack_row(made_row(0, [0] * 3 + [1] * 12))
    short = unpack_hits(made_hits("r", 0, [0] * 12 + [1] * 3, 3, leading({})), row)
    with pytest.raises(InvalidRunError, match="found none at: 2"):
        serving_walks(short)


def test_a_row_without_a_response_has_no_walk() -> None:
    assert serving_walks(chains([0] * 8, {})) == ()
    assert total((), 3).verifies == 0


@given(
    prompt=st.integers(1, 4),
    response=st.integers(1, 30),
    lengths=st.lists(st.integers(0, 3), min_size=40, max_size=40),
    limit=st.none() | st.integers(1, 20),
)
def test_the_walk_equals_a_server_played_token_by_token(
    prompt: int, response: int, lengths: list[int], limit: int | None
) -> None:
    mask = [0] * prompt + [1] * response
    tokens = len(mask)
    (walk,) = serving_walks(chains(mask, dict(enumerate(lengths))), max_new_tokens=limit)
    out, at, histogram = 1, prompt - 1, [0, 0, 0, 0]
    while (limit is None or out < limit) and at + 3 < tokens:
        accepted = min(lengths[at], 3)
        histogram[accepted] += 1
        for _ in range(accepted + 1):
            out, at = out + 1, at + 1
    assert list(walk.histogram) == histogram
    assert walk.tokens == (out if limit is None else min(out, limit))
